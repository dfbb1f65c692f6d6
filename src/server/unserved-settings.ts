import type { Logger } from '../../common/log.js'
import type { ProxyOptions } from './proxy-options.js'

/** What no longer happens in a bucket that has such settings if the plugin of this name does not run. */
const SERVED_BY = {
  notifications: 'events of the bucket are not announced, also later',
  inventory: 'its inventories are not written',
} as const

/** Most buckets that are named in the log of a process. */
const MAX_NAMED = 1000

/**
 * Returns what is called with the kinds of settings that a bucket has, whenever they are read. It warns once of each
 * bucket whose settings are for a plugin that does not run. Undefined if all of these plugins run.
 */
export function warnOfUnserved(
  { plugins = [] }: Pick<ProxyOptions, 'plugins'>,
  log: Logger,
): ((bucket: string, kinds: object) => void) | undefined {
  const absent = Object.entries(SERVED_BY).filter(([name]) => plugins.every((plugin) => plugin.name !== name))
  if (absent.length === 0) return undefined
  const named = new Set<string>()
  return (bucket, kinds) => {
    for (const [plugin, effect] of absent) {
      const line = `${plugin} ${bucket}`
      if (!Object.hasOwn(kinds, plugin) || named.has(line) || named.size >= MAX_NAMED) continue
      named.add(line)
      log.warn({ bucket, plugin }, `the bucket has settings for a plugin that does not run: ${effect}`)
    }
  }
}
