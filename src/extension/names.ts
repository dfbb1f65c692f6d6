import { S3Error } from '../errors/s3-error.js'

/** What is compared of the name of a member: `Task_Name`, `taskName` and `task-name` are TaskName. */
export function normalized(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase()
}

/** Longest name or value that an error repeats, characters. */
const MAX_SHOWN = 200

/**
 * An argument that cannot be taken.
 * @param name where it stands: `Terms[1].MinerId`
 * @param what follows the name: `must be a number`
 */
export function invalidArgument(name: string, what: string, value?: unknown): S3Error {
  const shown = ['string', 'number', 'boolean'].includes(typeof value) ? String(value).slice(0, MAX_SHOWN) : undefined
  return new S3Error('InvalidArgument', {
    message: `${name.slice(0, MAX_SHOWN) || 'The document'} ${what}.`,
    fields: { ArgumentName: name.slice(0, MAX_SHOWN), ...(shown !== undefined && { ArgumentValue: shown }) },
  })
}

/** Where a member stands. */
export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
