import { jobsPlugin } from './jobs/plugin.js'
import { s3Plugin } from './operations/index.js'
import { notificationOperations } from './operations/notifications/index.js'
import type { Plugin } from './registry/plugin.js'
import { selfPlugin } from './virtual-bucket/plugin.js'

/** What every server answers whatever its plugins are, for those who tell of it; `createProxy` makes the ones that run. */
export const corePlugins: readonly Pick<Plugin, 'name' | 'operations'>[] = [
  s3Plugin,
  jobsPlugin,
  selfPlugin(() => []),
  {
    name: 'notifications',
    operations: notificationOperations({ knows: () => false, send: async () => undefined }),
  },
]
