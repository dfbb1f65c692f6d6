/**
 * A plugin may bring its own copy of this package, with its own classes. Values that cross between copies are
 * recognised by marks in the registry of symbols, which all copies share.
 */
export function isMarked(value: unknown, mark: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[mark] === true
}

/** Implements `value instanceof type` for subclasses of classes that are recognised by marks. */
export function isOfClass(type: unknown, value: unknown): boolean {
  return Function.prototype[Symbol.hasInstance].call(type, value)
}
