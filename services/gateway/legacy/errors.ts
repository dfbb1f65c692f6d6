import { row } from '../error-row.js'
import { type ErrorForms, type ErrorKind, GatewayError, plainErrors } from '../errors.js'
import { SERVER_ERROR } from '../rpc/protocol.js'
import type { QuirkName } from './quirks.js'

/** Errors of public gateways alone, and the kind of ours that each of them is (MinIO cmd/api-errors.go). */
const rows = {
  UnknownAccessKey: [
    'Authentication',
    row(-32003, 403, 'AccessDenied', 'The access key ID you provided does not exist in our records'),
  ],
  NoSuchBucketInListing: [
    'NoSuchBucket',
    row(-32010, 404, 'NoSuchBucket', ({ bucket }) => `Bucket not found: ${bucket}`),
  ],
  NoSuchBucketUnnamed: ['NoSuchBucket', row(-32010, 404, 'NoSuchBucket', 'The specified bucket does not exist')],
  InvalidListPrefix: [
    'NoSuchKey',
    row(-32021, 404, 'NoSuchKey', ({ bucket, value }) => `Object name invalid: ${bucket}#${value}`),
  ],
  MalformedXML: [
    'InvalidArguments',
    row(
      ...([-32019, 400, 'MalformedXML'] as const),
      'The XML you provided was not well-formed or did not validate against our published schema.',
    ),
  ],
  BadComponents: [
    'InvalidArguments',
    row(-32026, 400, 'XMinioInvalidResourceName', 'Resource name contains bad components such as ".." or ".".'),
  ],
  IsFolder: [
    'NoSuchKey',
    row(-32024, 409, 'XMinioObjectExistsAsDirectory', 'Object name already exists as a directory.'),
  ],
  ParentIsObject: [
    'NoSuchKey',
    row(
      ...([-32025, 400, 'XMinioParentIsObject'] as const),
      'Object-prefix is already an object, please choose a different object-prefix name.',
    ),
  ],
  ParentNamed: ['NoSuchKey', row(-32028, 500, 'XMinioParentIsObject', ({ value }) => `Parent is object ${value}`)],
  PrefixDenied: ['NoSuchKey', row(-32029, 500, 'AccessDenied', ({ value }) => `Prefix access is denied: ${value}`)],
  PrefixIsFolder: [
    'NoSuchKey',
    row(-32027, 409, 'XMinioObjectExistsAsDirectory', ({ bucket, value }) => {
      return `Object exists on : ${bucket} as directory ${value}`
    }),
  ],
  AllAccessDisabled: [
    'AccessDenied',
    row(-32054, 403, 'AllAccessDisabled', 'All access to this bucket has been disabled.'),
  ],
} as const satisfies Record<string, readonly [ErrorKind, ReturnType<typeof row>]>

/** An error that our gateway does not have. */
export class LegacyError extends GatewayError {
  constructor(name: keyof typeof rows, subject: GatewayError['subject'] = {}) {
    const [kind, as] = rows[name]
    super(kind, subject, undefined, as)
  }
}

/** The error of a listing that the caller may not see: public gateways give it code -32000, not 0. */
export class ListingRefused extends GatewayError {
  constructor(cause: GatewayError) {
    super('NotPermitted', cause.subject, cause)
  }
}

/** Texts of FS3 where they differ from MinIO's. */
const fs3Texts: Partial<Record<ErrorKind, string>> = {
  Authentication: 'Authentication failed, check your FS3 credentials',
  InvalidToken: 'Authentication failed, check your FS3 token',
  NoSuchKey: 'The specified object does not exist.',
}

/** How errors are written by a gateway with these quirks. */
export function errorFormsOf(quirks: ReadonlySet<QuirkName>): ErrorForms {
  const fs3 = quirks.has('fs3-texts')
  const codeZero = quirks.has('code-zero-errors')
  const other = (error: GatewayError) => (fs3 && !(error instanceof LegacyError) ? fs3Texts[error.kind] : undefined)
  const text: ErrorForms['text'] = (error) => other(error) ?? plainErrors.text(error)
  return {
    text,
    rpc(error) {
      const message = other(error) ?? error.message
      if (!codeZero) return { ...plainErrors.rpc(error), message }
      const named = error instanceof ListingRefused || error.kind === 'WrongCurrentKeys'
      return { code: named ? SERVER_ERROR : 0, message, data: null }
    },
    body: (error) => (fs3 ? JSON.stringify({ data: {}, status: 'fail', message: text(error) }) : text(error)),
    headers: (error, names) => (codeZero ? [] : plainErrors.headers(error, names)),
  }
}
