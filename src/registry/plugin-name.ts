/** First segments below `/-/` that are the server's own, or kept for it, and names of plugins that it always has. */
const RESERVED = new Set([
  'live',
  'ready',
  'metrics',
  'version',
  'capabilities',
  'docs',
  'console',
  'reload',
  'plugins',
  'jobs',
  'events',
  'auth',
  'sts',
  'inbox',
  'outbox',
  's3',
  'self',
  'notifications',
  'share',
  'policy',
])

/** `?x-id` and `?x-amz-...` are never sub-resources: extension endpoints begin with `x-` and the plugin's name. */
const TAKEN = /^(id|amz|cloud|dealgate)(-|$)/

/** What is wrong with it as the name of a plugin, in words that follow "the plugin x"; undefined for nothing. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,31}$/.test(name))
    return 'must be named with lower-case letters, digits and -, a letter first, 32 at most'
  if (RESERVED.has(name) || TAKEN.test(name)) return 'has a name that the server keeps for itself: choose another'
  return undefined
}
