import { compareUtf8 } from '../common/byte-order.js'

/** Where in the order of names to begin. */
export type Bound =
  /** With `name` itself. */
  | { readonly kind: 'from'; readonly name: string }
  /** With what comes after `name`. */
  | { readonly kind: 'after'; readonly name: string }
  /** With what comes after everything that begins with `name`. */
  | { readonly kind: 'past'; readonly name: string }

export const start: Bound = { kind: 'from', name: '' }

/** True for names on the far side of the bound. In sorted names all of them come last, so it can be searched for in halves. */
export function admits(bound: Bound, name: string): boolean {
  const order = compareUtf8(name, bound.name)
  if (bound.kind === 'from') return order >= 0
  return order > 0 && !(bound.kind === 'past' && name.startsWith(bound.name))
}
