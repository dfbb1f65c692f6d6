/**
 * True when arrays and objects of a parsed JSON value are nested more than `levels` deep. Looks no deeper, so that a
 * body of a million brackets does not exhaust the stack: `JSON.parse` reads such a body, but `JSON.stringify` cannot
 * write it.
 */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}

/**
 * True when an object of a parsed JSON value has a member `__proto__`. `JSON.parse` makes it an own property like any
 * other; code that copies members by assignment, and schemas that guard against that, drop it silently.
 */
export function hasPrototypeKey(value: unknown): boolean {
  const open = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one !== 'object' || one === null) continue
    if (Object.hasOwn(one, '__proto__')) return true
    for (const member of Object.values(one)) if (typeof member === 'object') open.push(member)
  }
  return false
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
