import { stsError } from './sts-error.js'

/** The parameters of a call in the query protocol of AWS: each name once. */
export class Parameters {
  readonly #values: ReadonlyMap<string, string>

  /** Throws ValidationError for a repeated name. */
  constructor(body: string) {
    const values = new Map<string, string>()
    for (const [name, value] of new URLSearchParams(body)) {
      if (values.has(name)) throw stsError('ValidationError', `The parameter ${name.slice(0, 100)} is given twice.`)
      values.set(name, value)
    }
    this.#values = values
  }

  get(name: string): string | undefined {
    return this.#values.get(name)
  }

  /**
   * A text within bounds, counted in characters; undefined if it is absent. Throws ValidationError without the value,
   * which may be a secret.
   */
  text(name: string, { min, max, pattern }: TextBounds): string | undefined {
    const value = this.#values.get(name)
    if (value === undefined) return undefined
    if (value.length < min || value.length > max) {
      throw invalid(name, `Member must have a length of ${min} to ${max} characters`)
    }
    if (pattern && !pattern.test(value))
      throw invalid(name, `Member must satisfy the regular expression ${pattern.source}`)
    return value
  }

  required(name: string, bounds: TextBounds): string {
    return this.text(name, bounds) ?? missing(name)
  }

  /** Throws ValidationError for parameters other than these. */
  refuseOthers(names: readonly string[]): void {
    for (const name of this.#values.keys()) {
      if (!names.includes(name)) {
        throw stsError('ValidationError', `The parameter ${name.slice(0, 100)} is not supported for this action.`)
      }
    }
  }
}

export interface TextBounds {
  readonly min: number
  readonly max: number
  readonly pattern?: RegExp
}

function missing(name: string): never {
  throw invalid(name, 'Member must not be null')
}

function invalid(name: string, constraint: string) {
  const shown = name.charAt(0).toLowerCase() + name.slice(1)
  return stsError(
    'ValidationError',
    `1 validation error detected: Value at '${shown}' failed to satisfy constraint: ${constraint}`,
  )
}
