/** In the registry that all copies of this package share: a plugin may bring its own. */
const RAW: unique symbol = Symbol.for('dealgate.raw')

/** The result with what upstream said, for `?raw=1`: text goes out as it is, anything else as JSON. */
export function withRaw<Result extends object>(result: Result, raw: unknown): Result {
  return { ...result, [RAW]: raw }
}

/** What `withRaw` has put there; undefined for nothing. */
export function rawOf(result: object): unknown {
  return (result as { readonly [RAW]?: unknown })[RAW]
}
