import { S3Error } from '../../../common/errors/s3-error.js'

/** Normalizes the name of a member for comparison: `Task_Name`, `taskName` and `task-name` all mean TaskName. */
export function normalized(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase()
}

/** Longest name or value that an error repeats, characters. */
const MAX_SHOWN = 200

/**
 * Returns the error for an invalid argument.
 * @param name path of the argument: `Terms[1].MinerId`
 * @param what predicate of the sentence, after the name: `must be a number`
 */
export function invalidArgument(name: string, what: string, value?: unknown): S3Error {
  const shown = ['string', 'number', 'boolean'].includes(typeof value) ? String(value).slice(0, MAX_SHOWN) : undefined
  return new S3Error('InvalidArgument', {
    message: `${name.slice(0, MAX_SHOWN) || 'The document'} ${what}.`,
    fields: { ArgumentName: name.slice(0, MAX_SHOWN), ...(shown !== undefined && { ArgumentValue: shown }) },
  })
}

/** Returns the path of a member. */
export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
