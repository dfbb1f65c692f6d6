import { invalidArgument, memberPath, normalized } from './names.js'
import type { ObjectShape, Shape } from './shape.js'

/**
 * Adds a member. A member may appear by two names, as in the specification's own documents, if both values are equal.
 * Throws InvalidArgument.
 */
export function putOnce(members: Map<string, unknown>, name: string, value: unknown, at: string): void {
  if (members.has(name) && JSON.stringify(members.get(name)) !== JSON.stringify(value)) {
    throw invalidArgument(at, `is given twice, as ${name} with another value`)
  }
  members.set(name, value)
}

/** Finds a member by one of its names. Throws InvalidArgument for an unknown name. */
export function memberNamed(
  { members, names, rest }: ObjectShape,
  given: string,
  path: string,
  aliases?: ReadonlyMap<string, string>,
): { readonly name: string; readonly shape: Shape } {
  const name = members.has(given) ? given : (names.get(normalized(given)) ?? aliases?.get(normalized(given)))
  const member = name === undefined ? undefined : members.get(name)
  if (name !== undefined && member) return { name, shape: member.shape }
  // zod silently drops a member `__proto__` from a record.
  if (rest && given !== '__proto__') return { name: given, shape: rest }
  const known = [...members.keys()]
  const choice = known.length > 0 ? `the members are ${known.join(', ')}` : 'no members are allowed here'
  throw invalidArgument(memberPath(path, given), `is not a member: ${choice}`)
}
