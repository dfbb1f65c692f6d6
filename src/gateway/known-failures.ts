import type { S3Code } from '../../common/errors/codes.js'

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
const BAD_KEY = 'The object gateway cannot hold this key.'
const LOCKED = 'The object gateway has locked this object: it can be neither replaced nor removed.'
const OBJECT_LOCK = 'Access Denied because object protected by object lock.'
const RETENTION = 'Access Denied because the retention of the object can be neither shortened nor ended.'
const NO_OBJECT_LOCK = 'Bucket is missing Object Lock Configuration'
const HAS_OBJECT_LOCK =
  'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.'
const NOT_ENABLED = "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"
const EARLIER_PROCESS = 'A gateway process of an earlier dealgate still uses its database: stop it first.'
const RETAIN_IN_PAST = 'The retain until date must be in the future!'
const ENCRYPTED =
  'The object gateway has encrypted this object with a key that another client holds, so that it cannot be read here.'
const BUCKET_QUOTA = 'The quota of the bucket is used up: remove objects from it, or raise the quota.'
const DAMAGED = 'The object gateway finds this object damaged on its drives.'
const BROKE_DOWN = 'The object gateway failed by itself: see its own log.'
const READ_ONLY = 'The disk of the object gateway is read-only. Try again later.'
const DISK_BROKE = 'The disk of the object gateway failed: see its own log.'
const TOO_MANY_FILES = 'The object gateway has too many files and connections open. Try again later.'
const STARTING = 'The object gateway is starting. Try again.'

type TextRow = readonly [text: RegExp, code: S3Code, message?: string]

/**
 * The texts that public deployments of this interface use; their codes are not specific. Texts may quote bucket and
 * key, so the patterns match their beginning or end. Sources: MinIO RELEASE.2019-09-11 and RELEASE.2021-06-17,
 * filswan/fs3 v2.0.0; cmd/web-handlers.go, cmd/api-errors.go, cmd/jwt.go, cmd/typed-errors.go,
 * cmd/object-api-errors.go. Older versions send the text of an internal error type where later ones send that of S3.
 */
export const texts: readonly TextRow[] = [
  [/^The specified bucket( \S*)? does not exist\.?$/i, 'NoSuchBucket'],
  [/^Bucket not found\b/i, 'NoSuchBucket'],
  // FS3 says "object" where MinIO says "key".
  [/^The specified (key|object) (.* )?does not exist\.?$/is, 'NoSuchKey'],
  [/^Object (not found|name invalid)\b/i, 'NoSuchKey'],
  [/^(The specified version does not exist\.?$|Version not found: )/i, 'NoSuchVersion'],
  [/^(Your key is too long\b|Object name too long: |Object names have at most \d+ bytes\b)/i, 'KeyTooLongError'],
  [/^Object name contains (unsupported characters|a leading slash|forward slash)\b/i, 'InvalidRequest', BAD_KEY],
  [/^Your previous request to create the named bucket succeeded\b/i, 'BucketAlreadyOwnedByYou'],
  [/^The requested bucket name is not available\b/i, 'BucketAlreadyExists'],
  [/^Bucket (exists|already owned by you): /i, 'BucketAlreadyOwnedByYou'],
  [/^(The bucket you tried to delete is not empty\b|Bucket not empty: )/i, 'BucketNotEmpty'],
  [/^Bucket Name .* is invalid\b/is, 'InvalidBucketName'],
  [/^(The specified bucket is not valid\b|Bucket name invalid: )/i, 'InvalidBucketName'],
  [/^(JWT token missing|Authentication failed\b)/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^Too many log-ins with wrong keys\b/i, 'SlowDown', TOO_MANY_LOG_INS],
  [/^The access key ID you provided does not exist\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^(access|secret) key (must be|length should be)\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^The (access|secret) key is invalid\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [
    /^(The specified|Specified) (user|service account) (does not exist|is not found)\b/i,
    'AccessDenied',
    ACCOUNT_REFUSED,
  ],
  [/^(The specified|Specified) group does not exist\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^(The|Specified) canned policy does not exist\b/i, 'AccessDenied', ACCOUNT_REFUSED],
  [/^(Do not have enough permissions\b|Specified IAM action is not allowed\b)/i, 'AccessDenied', NOT_ALLOWED],
  [/^Access Denied\.?$/i, 'AccessDenied', NOT_ALLOWED],
  [/^All access to this (bucket|object)( \S*)? has been disabled\b/i, 'AccessDenied', NOT_ALLOWED],
  [/^Object is WORM protected\b/i, 'AccessDenied', LOCKED],
  [/^Access Denied because object protected by object lock\b/i, 'AccessDenied', OBJECT_LOCK],
  [/^Access Denied because the retention of the object\b/i, 'AccessDenied', RETENTION],
  [/^Bucket is missing Object Lock Configuration$/i, 'InvalidRequest', NO_OBJECT_LOCK],
  [/^An Object Lock configuration is present on this bucket\b/i, 'InvalidBucketState', HAS_OBJECT_LOCK],
  [/^Versioning must be 'Enabled' on the bucket\b/i, 'InvalidBucketState', NOT_ENABLED],
  [/^A gateway process of an earlier dealgate\b/i, 'InvalidBucketState', EARLIER_PROCESS],
  [/^The retain until date must be in the future!$/i, 'InvalidArgument', RETAIN_IN_PAST],
  [/^(Signature does not match\b|The request signature we calculated does not match\b)/i, 'SignatureDoesNotMatch'],
  [/^(Request has expired|Request is not valid yet)\b/i, 'AccessDenied'],
  [/^The difference between the request time\b/i, 'RequestTimeTooSkewed'],
  [/^(The specified method is not allowed\b|Method not allowed\b)/i, 'MethodNotAllowed'],
  [/^Unable to generate shareable URL due to lack of read permissions\b/i, 'AccessDenied', NOT_ALLOWED],
  [/^Changing access key and secret key not allowed\b/i, 'MethodNotAllowed'],
  [/^Current access key or secret key is incorrect\b/i, 'AccessDenied'],
  [
    /^(Invalid arguments (specified|provided)|Bucket and Object are mandatory arguments|Invalid policy type|Invalid version id)\b/i,
    'InvalidArgument',
  ],
  [/^(Your metadata headers are not supported|Unsupported headers in Metadata)\b/i, 'InvalidArgument'],
  [/^Invalid storage class\b/i, 'InvalidStorageClass'],
  [/^The operation is not valid for the current state of the object\b/i, 'InvalidObjectState'],
  [/^Data size is unspecified\b/i, 'MissingContentLength'],
  [/^You did not provide the number of bytes specified\b/i, 'IncompleteBody'],
  [/(^|[^ ])has incomplete body$/is, 'IncompleteBody'],
  [/^(less data available than|more data was sent than)\b/i, 'IncompleteBody'],
  [/^The Content-Md5 you specified did not match\b/i, 'BadDigest'],
  [/^The provided 'x-amz-content-sha256' header does not match\b/i, 'XAmzContentSHA256Mismatch'],
  [/^The XML you provided was not well-formed\b/i, 'MalformedXML'],
  [/^(The requested range .*is not satisfiable|Invalid range$)/is, 'InvalidRange'],
  [/^At least one of the pre-?conditions you specified did not hold\b/i, 'PreconditionFailed'],
  [/^Your metadata headers exceed\b/i, 'MetadataTooLarge'],
  [/^The quota of the account is\b/i, 'QuotaExceeded'],
  [/^(The quota of the bucket is|Bucket quota exceeded)\b/i, 'QuotaExceeded', BUCKET_QUOTA],
  [
    /^(Your proposed upload exceeds|Data size larger than|Object size larger than|size of the object greater than)\b/i,
    'EntityTooLarge',
  ],
  [/^(Your proposed upload is smaller|Object size smaller than|size of the object less than)\b/i, 'EntityTooSmall'],
  [/^The object was stored using a form of (SSE|Server Side Encryption)\b/i, 'InvalidRequest', ENCRYPTED],
  [
    /^(Requests specifying Server Side Encryption|Server side encryption specified|The (provided )?encryption (parameters|method)|The calculated MD5 hash of the key|The SSE-C key)\b/i,
    'InvalidRequest',
    ENCRYPTED,
  ],
  [/^The bucket policy does not exist$|^No bucket policy configuration found\b/i, 'NoSuchBucketPolicy'],
  [/^The TagSet does not exist$|^No bucket tags found\b/i, 'NoSuchTagSet'],
  [
    /^The (bucket )?lifecycle configuration does not exist$|^No bucket lifecycle configuration found\b/i,
    'NoSuchLifecycleConfiguration',
  ],
  [
    /^The server side encryption configuration was not found$|^No bucket encryption configuration found\b/i,
    'ServerSideEncryptionConfigurationNotFoundError',
  ],
  [
    /^Object Lock configuration does not exist\b|^No bucket object lock configuration found\b/i,
    'ObjectLockConfigurationNotFoundError',
  ],
  [/^The replication configuration was not found\b/i, 'ReplicationConfigurationNotFoundError'],
  [/^The specified multipart upload does not exist\b|^Invalid upload id\b/i, 'NoSuchUpload'],
  [/^One or more of the specified parts could not be found\b/i, 'InvalidPart'],
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
  [
    /^Storage (backend has )?reached its minimum free disk threshold\b|^disk path full$/i,
    'ServiceUnavailable',
    NO_SPACE,
  ],
  // Texts of the embedded gateway, whose codes for these failures stand for others, too.
  [/^The disk of the gateway is read-only\b/i, 'ServiceUnavailable', READ_ONLY],
  [/^The disk of the gateway failed\b/i, 'InternalError', DISK_BROKE],
  [/^The gateway has too many files\b/i, 'SlowDown', TOO_MANY_FILES],
  [
    /^(Server not initialized|IAM sub-system is being initialized|STS API not initialized, please try)\b/i,
    'ServiceUnavailable',
    STARTING,
  ],
  [
    /^(Please reduce your request|Resource requested is unreadable|A timeout exceeded while waiting to proceed)\b/i,
    'SlowDown',
  ],
  [
    /^(A timeout occurred while trying to lock a resource|Operation timed out|Storage resources are insufficient|Multiple disk failures|Backend down|Object storage backend is unreachable|The service is unavailable|Client disconnected before)\b/i,
    'ServiceUnavailable',
  ],
  [
    /^(The requested object was modified and may be compromised|The data provided is unfit for decompression)\b/i,
    'InternalError',
    DAMAGED,
  ],
  // RELEASE.2021-06-17 and FS3 append the cause in words of their storage.
  [/^We encountered an internal error\b/i, 'InternalError', BROKE_DOWN],
  [
    /^(rpc: can't find (service|method)\b|Method not found\b|A header you provided implies functionality|Functionality not implemented\b)/i,
    'NotImplemented',
    'The object gateway does not know this call.',
  ],
]

/** Codes other than those of S3, from `error.data.code`, `x-cloud-error-code` or an XML body. */
export const foreignCodes: Readonly<Record<string, readonly [S3Code, string?]>> = {
  AllAccessDisabled: ['AccessDenied', NOT_ALLOWED],
  WebTokenMissing: ['AccessDenied', ACCOUNT_REFUSED],
  BodyChanged: ['InternalError', DAMAGED],
  BodyLost: ['InternalError', DAMAGED],
  Busy: ['ServiceUnavailable'],
  NoSuchBucketLifecycle: ['NoSuchLifecycleConfiguration'],
  XMinioAdminBucketQuotaExceeded: ['QuotaExceeded', BUCKET_QUOTA],
  XMinioBackendDown: ['ServiceUnavailable'],
  XMinioInvalidDecompressedSize: ['InternalError', DAMAGED],
  XMinioInvalidObjectName: ['InvalidRequest', BAD_KEY],
  XMinioObjectTampered: ['InternalError', DAMAGED],
  XMinioServerTimedOut: ['ServiceUnavailable'],
  XMinioInvalidResourceName: ['InvalidRequest', 'The object gateway cannot hold a key with this path element.'],
  XMinioObjectExistsAsDirectory: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioParentIsObject: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioServerNotInitialized: ['ServiceUnavailable', STARTING],
  XMinioStorageFull: ['ServiceUnavailable', NO_SPACE],
}

/** HTTP statuses of answers with an unknown body. */
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

const ABSENT = 'The object gateway does not have this.'

/**
 * HTTP statuses of an answer about an object or a bucket with an unknown text, when that is the gateway's own
 * (`isOwnText`): a wrong address must never pass for "no such object".
 */
export const ownStatuses: Readonly<Record<number, readonly [S3Code, string?]>> = {
  400: ['InvalidRequest', 'The object gateway does not accept this request.'],
  405: ['MethodNotAllowed'],
  409: ['OperationAborted', 'The object gateway refuses this because it conflicts with what it has.'],
  412: ['PreconditionFailed'],
  416: ['InvalidRange'],
  501: ['NotImplemented', 'The object gateway does not support this.'],
}

/** S3 codes for status 404, by what the request was about. */
export const absences = {
  bucket: ['NoSuchBucket', ABSENT],
  key: ['NoSuchKey', ABSENT],
} as const satisfies Record<string, readonly [S3Code, string]>

/**
 * The answers of servers on the way to a gateway, or in its place, to an unknown path: net/http of Go, ingress
 * controllers, Express, Envoy.
 */
const ANSWERS_OF_OTHERS = /^(404 page not found|default backend - 404|not found|cannot (get|head|put|post) .*)\.?$/i

/**
 * True for a text that a gateway may have written about an object: plain text, or the envelope of FS3. False for an
 * empty body, for pages, for other JSON and for answers of other servers.
 * @param text the body
 * @param message the message in it
 */
export function isOwnText(text: string, message: string): boolean {
  const trimmed = text.trim()
  if (trimmed === '' || ANSWERS_OF_OTHERS.test(message)) return false
  if (trimmed.startsWith('<')) return /<Error>/.test(trimmed)
  return !/^[{[]/.test(trimmed) || (message !== trimmed && /"status"\s*:\s*"fail"/i.test(trimmed))
}
