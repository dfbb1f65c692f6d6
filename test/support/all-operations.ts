import { jobsPlugin } from '../../src/jobs/plugin.js'
import { s3Plugin } from '../../src/operations/index.js'
import { notificationOperations } from '../../src/operations/notifications/index.js'
import { selfPlugin } from '../../src/virtual-bucket/plugin.js'

/** Every operation of a proxy without further plugins. */
export const allOperations = [
  ...s3Plugin.operations,
  ...jobsPlugin.operations,
  ...selfPlugin(() => []).operations,
  ...notificationOperations({ knows: () => false, send: async () => undefined }),
]
