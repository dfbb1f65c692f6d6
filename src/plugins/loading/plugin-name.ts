/** First segments below `/-/` that the server uses or reserves, and names of plugins that it always has. */
const RESERVED = new Set([
  'live',
  'ready',
  'health',
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
  'gateway',
  'share',
  'policy',
])

/**
 * Names that would collide with `?x-id` and `?x-amz-...`, because sub-resources of plugins begin with `x-` and the
 * plugin's name.
 */
const TAKEN = /^(id|amz|cloud|dealgate)(-|$)/

/** Returns the problem of a plugin's name, as a predicate after "the plugin x"; undefined if there is none. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,31}$/.test(name))
    return 'must have a name of at most 32 lower-case letters, digits and -, a letter first'
  if (RESERVED.has(name) || TAKEN.test(name)) return 'has a reserved name: choose another'
  return undefined
}
