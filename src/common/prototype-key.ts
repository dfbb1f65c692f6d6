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
