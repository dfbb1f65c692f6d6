/**
 * A plugin may bring its own copy of this package along, whose classes are others than ours. What passes between the two is known by marks in the registry of
 * symbols that all copies share.
 */
export function isMarked(value: unknown, mark: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[mark] === true
}

/** `value instanceof type`, for a subclass of a class that tells by marks. */
export function isOfClass(type: unknown, value: unknown): boolean {
  return Function.prototype[Symbol.hasInstance].call(type, value)
}
