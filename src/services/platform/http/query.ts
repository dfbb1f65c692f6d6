import { PlatformError } from '../errors.js'

/**
 * Reads a parameter that has one of some values, in any case; undefined when it is absent or empty. Throws
 * PlatformError 400 for another value.
 */
export function choice<T extends string>(query: URLSearchParams, name: string, values: readonly T[]): T | undefined {
  const text = query.get(name) ?? ''
  if (text === '') return undefined
  const value = values.find((one) => one.toLowerCase() === text.toLowerCase())
  if (value === undefined) throw new PlatformError(400, `${name} must be one of ${values.join(', ')}.`)
  return value
}
