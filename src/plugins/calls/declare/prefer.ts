/** Default and longest time that a call waits for its job, ms. */
const DEFAULT_WAIT_MS = 20_000
export const MAX_WAIT_MS = 300_000

export interface Preference {
  readonly waitMs: number
  /** Value of Preference-Applied; undefined if the request stated no preference. */
  readonly applied: string | undefined
}

/**
 * Reads `Prefer: wait=10` or `Prefer: respond-async`. Ignores unknown preferences, as
 * https://www.rfc-editor.org/rfc/rfc7240#section-2 requires.
 */
export function readPrefer(header: string | string[] | undefined): Preference {
  const preferences = String(header ?? '')
    .split(',')
    .map((one) => (one.split(';')[0] ?? '').trim().toLowerCase())
  const asked = preferences.map((one) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(one)?.[1]).find(Boolean)
  if (asked !== undefined) {
    const waitMs = Math.min(Number(asked) * 1000, MAX_WAIT_MS)
    return { waitMs, applied: `wait=${waitMs / 1000}` }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return { waitMs: DEFAULT_WAIT_MS, applied: undefined }
}
