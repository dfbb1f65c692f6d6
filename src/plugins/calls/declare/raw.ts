/** Registered globally, because a plugin may bring its own copy of this package. */
const RAW: unique symbol = Symbol.for('dealgate.raw')

/** Attaches the upstream answer to a result, for `?raw=1`. Text is sent as it is, any other value as JSON. */
export function withRaw<Result extends object>(result: Result, raw: unknown): Result {
  return { ...result, [RAW]: raw }
}

/** Returns the value that `withRaw` attached; undefined if there is none. */
export function rawOf(result: object): unknown {
  return (result as { readonly [RAW]?: unknown })[RAW]
}
