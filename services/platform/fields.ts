import type { Field } from '../http/body.js'
import { HttpError } from '../http/errors.js'

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

  /** Throws HttpError 400 for a field that is given twice or has a text that cannot be stored. */
  constructor(fields: readonly Field[], files: ReadonlyMap<string, UploadedFile> = new Map()) {
    for (const [name, value] of fields) {
      if (this.#values.has(name)) throw new HttpError(400, `The field ${name} is given twice.`)
      // SQLite cuts texts at NUL.
      if (value.includes('\0') || !value.isWellFormed()) {
        throw new HttpError(400, `The field ${name} has characters that no text may have.`)
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

  /** Throws HttpError 400 when the field is absent or empty. */
  required(name: string): string {
    const value = this.#values.get(name)
    if (value === undefined || value === '') throw new HttpError(400, `The field ${name} is missing.`)
    return value
  }
}

/**
 * Reads a parameter that has one of some values, in any case; undefined when it is absent or empty. Throws
 * HttpError 400 for another value.
 */
export function choice<T extends string>(query: URLSearchParams, name: string, values: readonly T[]): T | undefined {
  const text = query.get(name) ?? ''
  if (text === '') return undefined
  const value = values.find((one) => one.toLowerCase() === text.toLowerCase())
  if (value === undefined) throw new HttpError(400, `${name} must be one of ${values.join(', ')}.`)
  return value
}
