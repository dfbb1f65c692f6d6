import { S3Error } from '../../errors/s3-error.js'

/** A whole number from the query, or `fallback` when absent or empty. Throws InvalidArgument. */
export function wholeNumber(
  name: string,
  value: string | undefined,
  fallback: number,
  min: number,
  max: number,
): number {
  if (value === undefined || value === '') return fallback
  const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= min && number <= max)) {
    throw new S3Error('InvalidArgument', {
      message: `${name} must be a whole number from ${min} to ${max}.`,
      fields: { ArgumentName: name, ArgumentValue: value },
    })
  }
  return number
}

/** max-keys and its like: whole, not negative; more than 1000 means 1000, as S3 does it. */
export function pageSize(name: string, value: string | undefined): number {
  return Math.min(wholeNumber(name, value, 1000, 0, 2_147_483_647), 1000)
}
