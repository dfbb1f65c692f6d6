import { compareUtf8 } from '../common/byte-order.js'

/** A position in the order of names at which reading begins. */
export type Bound =
  /** At `name` itself. */
  | { readonly kind: 'from'; readonly name: string }
  /** After `name`. */
  | { readonly kind: 'after'; readonly name: string }
  /** After everything that begins with `name`. */
  | { readonly kind: 'past'; readonly name: string }

export const start: Bound = { kind: 'from', name: '' }

/** True for names beyond the bound. In sorted names all of them come last, so that a binary search finds the first. */
export function admits(bound: Bound, name: string): boolean {
  const order = compareUtf8(name, bound.name)
  if (bound.kind === 'from') return order >= 0
  return order > 0 && !(bound.kind === 'past' && name.startsWith(bound.name))
}
