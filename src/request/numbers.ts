import { S3Error } from '../common/errors/s3-error.js'

export interface Bounds {
  readonly min: number
  readonly max: number
}

export interface WholeNumberRange extends Bounds {
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
      message: `${name} must be a whole number from ${min} to ${max}.`,
      fields: { ArgumentName: name, ArgumentValue: value },
    })
  }
  return number
}

/** Parses max-keys and similar parameters: not negative; like S3, reduces more than 1000 to 1000. */
export function pageSize(name: string, value: string | undefined): number {
  return Math.min(wholeNumber(name, value, { fallback: 1000, min: 0, max: 2_147_483_647 }), 1000)
}
