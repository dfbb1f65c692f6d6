/** Lifetime assumed for a token that does not state its own, ms: a third of 60 s, the shortest known lifetime. */
const ASSUMED_LIFE_MS = 20_000
/** Longest time before its expiry at which a token is no longer sent, ms. */
const MARGIN_MS = 15_000

/**
 * The time until which a token that arrived at `now` may be sent, milliseconds since 1970 by the local clock. Reads
 * `exp` and `iat` of a JWT. Both come from the gateway's clock: with `iat`, the local clock does not matter; an `exp`
 * in the local past means that the clocks differ rather than that the token is invalid.
 */
export function usableUntil(token: string, now: number): number {
  const claims = claimsOf(token)
  if (claims?.exp === undefined) return now + ASSUMED_LIFE_MS
  const lifeMs = claims.iat === undefined ? claims.exp * 1000 - now : (claims.exp - claims.iat) * 1000
  if (lifeMs <= 0) return now + ASSUMED_LIFE_MS
  return now + lifeMs - Math.min(MARGIN_MS, lifeMs / 4)
}

function claimsOf(token: string): { exp?: number; iat?: number } | undefined {
  const payload = token.split('.')[1]
  if (payload === undefined) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    if (typeof claims !== 'object' || claims === null) return undefined
    return { ...numeric(claims, 'exp'), ...numeric(claims, 'iat') }
  } catch {
    return undefined
  }
}

function numeric<Name extends string>(claims: object, name: Name): { [K in Name]?: number } {
  const value: unknown = Reflect.get(claims, name)
  return typeof value === 'number' && Number.isFinite(value) ? ({ [name]: value } as { [K in Name]?: number }) : {}
}
