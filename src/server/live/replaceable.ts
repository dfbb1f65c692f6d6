/** Values that a reload can replace while others hold `values`. */
export interface Replaceable<T extends object> {
  /** Shows the present values. It cannot be written to. */
  readonly values: T
  /** @param next with the same members */
  replace(next: T): void
}

export function replaceable<T extends object>(first: T): Replaceable<T> {
  let present = first
  const getters = Object.keys(first).map((name) => [
    name,
    { enumerable: true, get: () => present[name as keyof T] } satisfies PropertyDescriptor,
  ])
  return {
    values: Object.freeze(Object.defineProperties({}, Object.fromEntries(getters))) as T,
    replace(next) {
      present = next
    },
  }
}
