/**
 * True when arrays and objects of a parsed JSON value are nested more than `levels` deep. Looks no deeper, so that a
 * body of a million brackets does not exhaust the stack: `JSON.parse` reads such a body, but `JSON.stringify` cannot
 * write it.
 */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}
