import { PlatformError } from '../errors.js'
import type { Exchange } from './route.js'

/** Name and value. */
export type Field = readonly [name: string, value: string]

export interface UploadedFile {
  /** As the client names it, without folders; '' when it does not. */
  readonly name: string
  /** In blocks of 64 KiB at most. */
  readonly content: readonly Buffer[]
}

/** The fields of a body, whatever its encoding. Names are those of the client: their case matters. */
export class Fields {
  readonly #values = new Map<string, string>()
  readonly files: ReadonlyMap<string, UploadedFile>

  /** Throws PlatformError 400 for a field that is given twice or has a text that cannot be stored. */
  constructor(fields: readonly Field[], files: ReadonlyMap<string, UploadedFile> = new Map()) {
    for (const [name, value] of fields) {
      if (this.#values.has(name)) throw new PlatformError(400, `The field ${name} is given twice.`)
      // SQLite cuts texts at NUL.
      if (value.includes('\0') || !value.isWellFormed()) {
        throw new PlatformError(400, `The field ${name} has characters that no text may have.`)
      }
      this.#values.set(name, value)
    }
    this.files = files
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** Undefined when the field is absent. */
  get(name: string): string | undefined {
    return this.#values.get(name)
  }

  /** Throws PlatformError 400 when the field is absent or empty. */
  required(name: string): string {
    const value = this.#values.get(name)
    if (value === undefined || value === '') throw new PlatformError(400, `The field ${name} is missing.`)
    return value
  }
}

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

const MOST = 1000
const LARGEST_OFFSET = 1_000_000_000

/** A page of a list. */
export interface Page {
  /** Most records, 1 to 1000. */
  readonly limit: number
  /** Records before the page. */
  readonly offset: number
}

/**
 * Reads `limit` and `offset`. Throws PlatformError 400 when one is out of bounds.
 * @param usual limit of a request without one
 */
export function readPage({ context, query }: Pick<Exchange, 'context' | 'query'>, usual = 10): Page {
  const limit = whole(query, 'limit', usual, 1, MOST)
  const offset = whole(query, 'offset', 0, 0, LARGEST_OFFSET)
  return { limit, offset: context.offsets === 'pages' ? offset * limit : offset }
}

function whole(query: URLSearchParams, name: string, usual: number, least: number, most: number): number {
  const text = query.get(name) ?? ''
  if (text === '') return usual
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new PlatformError(400, `${name} must be a whole number from ${least} to ${most}.`)
}
