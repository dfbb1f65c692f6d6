import { invalidArgument, memberPath, normalized } from './names.js'
import type { ObjectShape, Shape } from './shape.js'

/** A member may be there by two names, as the specification's own documents have it, if it says the same twice. Throws InvalidArgument. */
export function putOnce(members: Map<string, unknown>, name: string, value: unknown, at: string): void {
  if (members.has(name) && JSON.stringify(members.get(name)) !== JSON.stringify(value)) {
    throw invalidArgument(at, `is given twice, as ${name} with another value`)
  }
  members.set(name, value)
}

/** The member that is meant by a name. Throws InvalidArgument where there is none. */
export function memberNamed(
  { members, names, rest }: ObjectShape,
  given: string,
  path: string,
  aliases?: ReadonlyMap<string, string>,
): { readonly name: string; readonly shape: Shape } {
  const name = members.has(given) ? given : (names.get(normalized(given)) ?? aliases?.get(normalized(given)))
  const member = name === undefined ? undefined : members.get(name)
  if (name !== undefined && member) return { name, shape: member.shape }
  if (rest) return { name: given, shape: rest }
  const known = [...members.keys()]
  const choice = known.length > 0 ? `known are ${known.join(', ')}` : 'there are none here'
  throw invalidArgument(memberPath(path, given), `is no member: ${choice}`)
}
