import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { copySourcePath } from '../../http/addressing.js'
import { isKeyId } from '../../objects/encryption/key-file.js'
import { GRANTS, granteeTexts, readCannedName, readOwnership } from './acl-values.js'
import { HOLD, MODE, readLegalHold, readLockMode, readRetainUntil, UNTIL } from './lock-values.js'

export const STORAGE_CLASS = 'x-amz-storage-class'
const COPY_SOURCE = 'x-amz-copy-source'
export const METADATA_DIRECTIVE = 'x-amz-metadata-directive'
export const OWNERSHIP = 'x-amz-object-ownership'
/** Where a web site sends visitors of the object. S3 returns it, and does not redirect, where it serves its API. */
export const REDIRECT = 'x-amz-website-redirect-location'
/** The header by which a write asks for encryption, and an answer states it. */
export const SSE = 'x-amz-server-side-encryption'
export const KEY_ID = `${SSE}-aws-kms-key-id`
const CUSTOMER_ALGORITHM = `${SSE}-customer-algorithm`

const MAX_REDIRECT_CHARACTERS = 2048

/**
 * ONE VALUE, ONE PARSER. Every header that a condition key of a policy and an operation both read stands here with the
 * reader that the operation uses. It returns the texts that conditions compare: they say what the operation does,
 * however the client spells it. A reader throws S3Error for a text that the operation could not read either.
 */
const READERS: ReadonlyMap<string, (text: string) => readonly string[]> = new Map([
  ['x-amz-acl', (text) => [readCannedName(text)]],
  ...Object.keys(GRANTS).map((name) => [name, (text: string) => granteeTexts(name, text)] as const),
  [MODE, (text) => [readLockMode(text)]],
  [UNTIL, (text) => [dateText(readRetainUntil(text))]],
  [HOLD, (text) => [readLegalHold(text) ? 'ON' : 'OFF']],
  [COPY_SOURCE, (text) => [readCopyPath(text).path]],
  [METADATA_DIRECTIVE, (text) => [readMetadataDirective(text)]],
  [OWNERSHIP, (text) => [readOwnership(text)]],
  [REDIRECT, (text) => [readRedirect(text)]],
  [KEY_ID, (text) => [readKeyId(text)]],
  // The operation compares these words exactly, as conditions do, and refuses the unknown ones after a Deny: as S3.
  [SSE, (text) => [text]],
  [CUSTOMER_ALGORITHM, (text) => [text]],
  // The operation asks the plugins for the class by this text.
  [STORAGE_CLASS, (text) => [text]],
])

/** The headers with a reader, in lower case. */
export const READ_HEADERS: readonly string[] = [...READERS.keys()]

export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(',') : value
}

/**
 * Returns what conditions compare with; undefined if the request does not have the header.
 * @throws S3Error if the header cannot be read
 */
export function headerValues(headers: IncomingHttpHeaders, name: string): readonly string[] | undefined {
  const text = headerText(headers, name)
  if (text === undefined) return undefined
  const read = READERS.get(name)
  return read ? read(text) : [text]
}

/**
 * Refuses headers with a text that cannot be read, before a policy decides by it.
 * @throws S3Error InvalidArgument, InvalidRedirectLocation, InvalidEncryptionAlgorithmError, KMS.NotFoundException,
 *   MethodNotAllowed for a grant by e-mail
 */
export function requireHeaders(headers: IncomingHttpHeaders): void {
  for (const name in headers) if (READERS.has(name)) headerValues(headers, name)
}

/** In the form in which clients of S3 send dates, so that a policy can also compare it as a text. */
function dateText(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z')
}

/** Returns the decoded `bucket/key`, and the query with the version. Throws InvalidArgument. */
export function readCopyPath(text: string): { readonly path: string; readonly query: string } {
  const source = copySourcePath(text)
  if (source) return source
  throw malformedSource()
}

export function malformedSource(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'Copy Source must mention the source bucket and key: sourcebucket/sourcekey, percent-encoded.',
    fields: { ArgumentName: COPY_SOURCE },
  })
}

/** Throws InvalidArgument. */
export function readMetadataDirective(text: string): 'COPY' | 'REPLACE' {
  if (text === 'COPY' || text === 'REPLACE') return text
  throw new S3Error('InvalidArgument', {
    message: 'Unknown metadata directive.',
    fields: { ArgumentName: METADATA_DIRECTIVE, ArgumentValue: text.slice(0, 100) },
  })
}

/** Throws InvalidRedirectLocation. */
export function readRedirect(location: string): string {
  if (!/^(https?:\/)?\//.test(location)) throw new S3Error('InvalidRedirectLocation')
  if (location.length > MAX_REDIRECT_CHARACTERS) {
    throw new S3Error('InvalidRedirectLocation', {
      message: `The length of website redirect location cannot exceed ${MAX_REDIRECT_CHARACTERS} characters.`,
    })
  }
  return location
}

const ALGORITHMS = ['AES256', 'aws:kms', 'aws:kms:dsse'] as const

export type EncryptionName = (typeof ALGORITHMS)[number]

/** Throws InvalidArgument, or `wrong`. */
export function readEncryption(text: string, wrong: S3Error = unknownEncryption()): EncryptionName {
  const algorithm = ALGORITHMS.find((one) => one === text)
  if (algorithm) return algorithm
  throw wrong
}

function unknownEncryption(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'The encryption method specified is not supported',
    fields: { ArgumentName: SSE },
  })
}

/** Throws KMS.NotFoundException. */
export function readKeyId(text: string): string {
  if (isKeyId(text)) return text
  throw new S3Error('KMS.NotFoundException', { message: `Invalid keyId '${text.slice(0, 100)}'` })
}

/** Throws InvalidEncryptionAlgorithmError. */
export function readCustomerAlgorithm(text: string): 'AES256' {
  if (text === 'AES256') return text
  throw new S3Error('InvalidEncryptionAlgorithmError')
}
