import { S3Error } from './errors/s3-error.js'

/** The decoded query of a request, in order and with repeats. `?acl` and `?acl=` both have the value ''. */
export class Query {
  readonly entries: readonly (readonly [name: string, value: string])[]

  constructor(raw: string) {
    this.entries = raw === '' ? [] : raw.split('&').filter(Boolean).map(decodePair)
  }

  has(name: string): boolean {
    return this.entries.some(([n]) => n === name)
  }

  /** Returns the first value, or undefined if the name is absent. */
  get(name: string): string | undefined {
    return this.entries.find(([n]) => n === name)?.[1]
  }
}

/** The error for a repeated parameter that can have only one value. */
export function repeatedParameter(name: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: `The query parameter ${name.slice(0, 100)} is given more than once.`,
    fields: { ArgumentName: name.slice(0, 100) },
  })
}

function decodePair(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new S3Error('InvalidURI', { message: 'The query string is not valid percent-encoded UTF-8.', cause })
  }
}

interface Bounds {
  readonly min: number
  readonly max: number
}

interface WholeNumberRange extends Bounds {
  /** Returned for an absent or empty value. */
  readonly fallback: number
}

/** Parses a whole number. Throws InvalidArgument. */
export function wholeNumber(name: string, value: string | undefined, range: WholeNumberRange): number {
  return value === undefined || value === '' ? range.fallback : requiredNumber(name, value, range)
}

/** Parses a whole number that must not be empty. Throws InvalidArgument. */
export function requiredNumber(name: string, value: string, { min, max }: Bounds): number {
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= min && number <= max)) {
    throw new S3Error('InvalidArgument', {
      message:
        name === 'partNumber'
          ? `Part number must be an integer between ${min} and ${max}, inclusive`
          : `${name} must be a whole number from ${min} to ${max}.`,
      fields: { ArgumentName: name, ArgumentValue: value },
    })
  }
  return number
}

/** Parses max-keys and similar parameters: not negative; like S3, reduces more than 1000 to 1000. */
export function pageSize(name: string, value: string | undefined): number {
  return Math.min(wholeNumber(name, value, { fallback: 1000, min: 0, max: 2_147_483_647 }), 1000)
}
