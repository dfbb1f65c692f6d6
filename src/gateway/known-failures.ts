import type { S3Code } from '../common/errors/codes.js'

const ACCOUNT_REFUSED =
  'The object gateway does not accept the account that this server uses for you. Check its key pair.'
const NOT_ALLOWED = 'The object gateway does not allow this to the account that this server uses for you.'
const FILE_AND_FOLDER =
  'The object gateway cannot hold an object and a folder of the same name. Choose another key, or remove the other one first.'
const NO_WAY =
  'The object gateway cannot reach this key on its drives. Choose another key if part of it is the key of an object; else check the permissions of its folders.'
const NO_SPACE = 'The object gateway has no space left.'
const TOO_MANY_LOG_INS =
  'The object gateway refuses log-ins for a while because too many with wrong keys came from this server. Try again later.'
const STARTING = 'The object gateway is starting. Try again.'

type TextRow = readonly [text: RegExp, code: S3Code, message?: string]

/**
 * The texts that public deployments of this interface use; their codes are not specific. Texts may quote bucket and
 * key, so the patterns match their beginning or end. Sources: MinIO RELEASE.2019-09-11 and filswan/fs3 v2.0.0,
 * cmd/web-handlers.go, cmd/api-errors.go, cmd/jwt.go, cmd/typed-errors.go.
 */
export const texts: readonly TextRow[] = [
  [/^The specified bucket( \S*)? does not exist\.?$/i, 'NoSuchBucket'],
  [/^Bucket not found\b/i, 'NoSuchBucket'],
  [/^The specified key does not exist\.?$/i, 'NoSuchKey'],
  [/^The specified key .* does not exist\.?$/is, 'NoSuchKey'],
  [/^Object name invalid\b/i, 'NoSuchKey'],
  [/^Your previous request to create the named bucket succeeded\b/i, 'BucketAlreadyOwnedByYou'],
  [/^The requested bucket name is not available\b/i, 'BucketAlreadyExists'],
  [/^The bucket you tried to delete is not empty\b/i, 'BucketNotEmpty'],
  [/^Bucket Name .* is invalid\b/is, 'InvalidBucketName'],
  [/^The specified bucket is not valid\b/i, 'InvalidBucketName'],
  [/^(JWT token missing|Authentication failed\b)/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^Too many log-ins with wrong keys\b/i, 'SlowDown', TOO_MANY_LOG_INS],
  [/^The access key ID you provided does not exist\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^(access|secret) key (must be|length should be)\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^Do not have enough permissions\b/i, 'AccessDenied', NOT_ALLOWED],
  [/^Access Denied\.?$/i, 'AccessDenied', NOT_ALLOWED],
  [/^Unable to generate shareable URL due to lack of read permissions\b/i, 'AccessDenied', NOT_ALLOWED],
  [/^Changing access key and secret key not allowed\b/i, 'MethodNotAllowed'],
  [/^Current access key or secret key is incorrect\b/i, 'AccessDenied'],
  [
    /^(Invalid arguments specified|Bucket and Object are mandatory arguments|Invalid policy type)\b/i,
    'InvalidArgument',
  ],
  [/^Data size is unspecified\b/i, 'MissingContentLength'],
  [/^You did not provide the number of bytes specified\b/i, 'IncompleteBody'],
  [/^Your metadata headers exceed\b/i, 'MetadataTooLarge'],
  [/^The quota of the account is\b/i, 'QuotaExceeded'],
  [/^Your proposed upload exceeds\b/i, 'EntityTooLarge'],
  [
    /^(Object name already exists as a directory|Object-prefix is already an object|Parent is object|Object exists on) ?\b/i,
    'InvalidRequest',
    FILE_AND_FOLDER,
  ],
  [/^Prefix access is denied: /i, 'InvalidRequest', NO_WAY],
  [
    /^Resource name contains bad components\b/i,
    'InvalidRequest',
    'The object gateway cannot hold a key with this path element.',
  ],
  [/^Storage backend has reached its minimum free disk threshold\b/i, 'ServiceUnavailable', NO_SPACE],
  [/^Server not initialized\b/i, 'ServiceUnavailable', STARTING],
  [
    /^(rpc: can't find (service|method)\b|Method not found\b)/i,
    'NotImplemented',
    'The object gateway does not know this call.',
  ],
]

/** Codes other than those of S3, from `error.data.code`, `x-cloud-error-code` or an XML body. */
export const foreignCodes: Readonly<Record<string, readonly [S3Code, string?]>> = {
  AllAccessDisabled: ['AccessDenied', NOT_ALLOWED],
  WebTokenMissing: ['AccessDenied', ACCOUNT_REFUSED],
  XMinioInvalidObjectName: ['InvalidRequest', 'The object gateway cannot hold this key.'],
  XMinioInvalidResourceName: ['InvalidRequest', 'The object gateway cannot hold a key with this path element.'],
  XMinioObjectExistsAsDirectory: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioParentIsObject: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioServerNotInitialized: ['ServiceUnavailable', STARTING],
  XMinioStorageFull: ['ServiceUnavailable', NO_SPACE],
}

/**
 * HTTP statuses of answers with an unknown body. 404 is absent on purpose: a wrong address must never pass for "no such
 * object".
 */
export const statuses: Readonly<Record<number, readonly [S3Code, string?]>> = {
  401: ['AccessDenied', ACCOUNT_REFUSED],
  403: ['AccessDenied', NOT_ALLOWED],
  408: ['ServiceUnavailable'],
  411: ['MissingContentLength'],
  413: ['EntityTooLarge'],
  429: ['SlowDown'],
  502: ['ServiceUnavailable'],
  503: ['ServiceUnavailable'],
  504: ['ServiceUnavailable'],
  507: ['ServiceUnavailable', NO_SPACE],
}
