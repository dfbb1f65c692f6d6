import { PaymentError } from '../errors.js'

/** Name and value. */
export type Field = readonly [name: string, value: string]

/** Longest text of a field. */
const MAX_TEXT = 1024

/** The fields of a body or a query. */
export class Fields {
  readonly #values: ReadonlyMap<string, string>

  /** The first of two fields with one name counts. */
  constructor(fields: Iterable<Field>) {
    this.#values = new Map([...fields].reverse())
  }

  /** The text without spaces around it; undefined when it is absent or empty. Throws PaymentError `value`. */
  get(name: string): string | undefined {
    const text = this.#values.get(name)?.trim() ?? ''
    // SQLite cuts texts at NUL.
    if (text.length > MAX_TEXT || text.includes('\0') || !text.isWellFormed()) {
      throw new PaymentError('value', `${name} must be a text of at most ${MAX_TEXT} characters`)
    }
    return text === '' ? undefined : text
  }

  /** Throws PaymentError `missing` when the field is absent or empty. */
  required(name: string): string {
    const text = this.get(name)
    if (text === undefined) throw new PaymentError('missing', `${name} is required`)
    return text
  }

  /** A number above 0, such as an id. Throws PaymentError: `missing`, `type` or `value`. */
  id(name: string): number {
    const text = this.required(name)
    if (!/^-?\d{1,15}$/.test(text)) throw new PaymentError('type', `${name} must be a valid number`)
    if (Number(text) < 1) throw new PaymentError('value', `${name} must be greater than 0`)
    return Number(text)
  }
}
