/** When a JWT expires, ms since 1970; undefined for one that does not state it. */
export function expiryOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return Number.isSafeInteger(exp) && exp > 0 && exp < 1e11 ? exp * 1000 : undefined
  } catch {
    // Not a JWT.
    return undefined
  }
}
