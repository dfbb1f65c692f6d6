import { S3Error } from '../../../common/errors/s3-error.js'

/**
 * Returns MalformedPolicy.
 * @param problem in the words of S3, such as `Policy has invalid action`
 * @param detail the offending value, and the statement that has it
 */
export function malformed(problem: string, detail = ''): S3Error {
  return new S3Error('MalformedPolicy', { message: detail === '' ? problem : `${problem}: ${detail}` })
}

/** Returns a value of the policy for a message: at most 200 characters, without control characters. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : json(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch (error) {
    // Writing JSON recurses, where reading it does not.
    if (error instanceof RangeError) return 'a value that is nested too deeply'
    throw error
  }
}
