import type { HeaderList } from '../http/errors.js'
import type { Names } from './brand.js'
import { type ErrorRow, type ErrorSubject, row } from './error-row.js'

/**
 * The only error that the gateway's own code throws. It is answered as a JSON-RPC error, a text or an XML document,
 * depending on the interface.
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly kind: ErrorKind
  readonly subject: ErrorSubject
  readonly #row: ErrorRow

  /** @param as how it is told, if not as errors of its kind are */
  constructor(kind: ErrorKind, subject: ErrorSubject = {}, cause?: unknown, as: ErrorRow = errorTable[kind]) {
    super(as.rpc(subject), cause === undefined ? undefined : { cause })
    this.kind = kind
    this.subject = subject
    this.#row = as
  }

  get code(): string {
    return this.#row.code
  }

  get status(): number {
    return this.#row.status
  }

  get number(): number {
    return this.#row.number
  }

  /** The text on REST endpoints; `message` is that of JSON-RPC. */
  get restText(): string {
    return (this.#row.rest ?? this.#row.rpc)(this.subject)
  }
}

/** How errors are written into answers. */
export interface ErrorForms {
  /** The text on REST endpoints. */
  text(error: GatewayError): string
  /** The member `error` of an answer of JSON-RPC. */
  rpc(error: GatewayError): object
  /** The body on REST endpoints without a document of their own. */
  body(error: GatewayError): string
  /** Headers that name the error on REST endpoints. */
  headers(error: GatewayError, names: Pick<Names, 'header'>): HeaderList
}

export const plainErrors: ErrorForms = {
  text: (error) => error.restText,
  rpc: ({ number, message, code, subject: { fence } }) => ({ code: number, message, data: { code, fence } }),
  body: (error) => error.restText,
  headers: ({ code }, { header }) => [`${header}error-code`, code],
}

/**
 * All errors of the gateway. Texts are those of public deployments, because clients can only go by the text there
 * (MinIO RELEASE.2019-09-11T19-53-16Z, cmd/web-handlers.go `toWebAPIError`, cmd/api-errors.go, cmd/typed-errors.go;
 * filswan/fs3, same files).
 */
export const errorTable = {
  NoToken: row(-32001, 403, 'AccessDenied', 'JWT token missing'),
  Authentication: row(-32002, 403, 'AccessDenied', 'Authentication failed, check your access credentials'),
  ShortAccessKey: row(-32004, 400, 'AccessDenied', 'access key must be minimum 3 or more characters long'),
  ShortSecretKey: row(-32005, 400, 'AccessDenied', 'secret key must be minimum 8 or more characters long'),
  WrongCurrentKeys: row(-32006, 403, 'AccessDenied', 'Current access key or secret key is incorrect'),
  TooManyLogIns: row(
    -32008,
    429,
    'SlowDown',
    'Too many log-ins with wrong keys have come from this address. Try again later.',
  ),
  NotPermitted: row(-32009, 403, 'AccessDenied', 'Do not have enough permissions to access this resource'),
  InvalidToken: row(-32007, 401, 'AccessDenied', 'Authentication failed, check your access credentials'),

  NoSuchBucket: row(-32010, 404, 'NoSuchBucket', ({ bucket }) => `The specified bucket ${bucket} does not exist.`, {
    rest: () => 'The specified bucket does not exist',
  }),
  BucketExists: row(
    -32011,
    409,
    'BucketAlreadyOwnedByYou',
    'Your previous request to create the named bucket succeeded and you already own it.',
  ),
  BucketTaken: row(
    -32014,
    409,
    'BucketAlreadyExists',
    'The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.',
  ),
  BucketNotEmpty: row(-32012, 409, 'BucketNotEmpty', 'The bucket you tried to delete is not empty'),
  InvalidBucketName: row(
    -32013,
    400,
    'InvalidBucketName',
    ({ bucket }) =>
      `Bucket Name ${bucket} is invalid. Lowercase letters, period, hyphen, numerals are the only allowed characters and should be minimum 3 characters in length.`,
    { rest: () => 'The specified bucket is not valid' },
  ),

  NoSuchKey: row(-32020, 404, 'NoSuchKey', 'The specified key does not exist.'),
  KeyTooLong: row(-32022, 400, 'KeyTooLongError', 'Object names have at most 1024 bytes of UTF-8.'),
  InvalidURI: row(-32023, 400, 'InvalidURI', 'The path is not percent-encoded UTF-8.'),

  InvalidArguments: row(-32030, 400, 'InvalidArgument', 'Invalid arguments specified'),
  InvalidPolicy: row(-32031, 400, 'InvalidArgument', ({ value }) => `Invalid policy type ${value}`),
  ShareNeedsNames: row(-32032, 400, 'InvalidArgument', 'Bucket and Object are mandatory arguments.'),
  ShareNotPermitted: row(
    -32035,
    403,
    'AccessDenied',
    'Unable to generate shareable URL due to lack of read permissions',
  ),
  AccessKeyTaken: row(-32036, 409, 'InvalidArgument', 'Another account has this access key: choose another one.'),
  FirstAccount: row(
    -32037,
    409,
    'InvalidRequest',
    'The first account is that of the gateway itself and cannot be removed.',
  ),
  AccountOwnsBuckets: row(
    -32038,
    409,
    'InvalidRequest',
    ({ value }) => `The account still owns buckets, such as ${value}: delete them first.`,
  ),
  InvalidHeader: row(-32033, 400, 'InvalidArgument', ({ value }) => `The value of ${value} is not valid.`),
  UnsupportedAuthorization: row(
    -32034,
    400,
    'InvalidRequest',
    'This is an object gateway, which takes bearer tokens of web.Login and no S3 requests. Send these to the S3 endpoint of dealgate, which has port 9000 by default.',
  ),

  NoLength: row(-32040, 400, 'InvalidRequest', 'Data size is unspecified'),
  IncompleteBody: row(
    -32041,
    400,
    'IncompleteBody',
    'You did not provide the number of bytes specified by the Content-Length HTTP header.',
  ),
  EntityTooLarge: row(-32042, 400, 'EntityTooLarge', 'Your proposed upload exceeds the maximum allowed object size.'),
  MetadataTooLarge: row(
    -32043,
    400,
    'MetadataTooLarge',
    'Your metadata headers exceed the maximum allowed metadata size.',
  ),
  Stalled: row(
    -32044,
    400,
    'RequestTimeout',
    'Your socket connection to the server was not read from or written to within the timeout period.',
  ),

  Overtaken: row(-32045, 409, 'WriteOvertaken', 'The key has had a later write. Nothing was changed.'),
  OtherGeneration: row(
    -32046,
    412,
    'OtherGeneration',
    'The object is not of the expected generation. Nothing was changed.',
  ),
  WriteIdReused: row(
    -32047,
    409,
    'IdempotencyParameterMismatch',
    'The fence and the write id belong to another write: take a higher fence and another id. Nothing was changed.',
  ),
  // 503, because the cause is mostly an earlier copy of the same write, whose client has given it up: it takes the
  // order that is meant for the repeated one.
  FenceMissing: row(
    -32048,
    503,
    'ServiceUnavailable',
    'No web.FenceUpload came before the last bytes of the upload, or another upload with its write id has taken the fence. Nothing was changed. Try again.',
  ),

  NoSuchVersion: row(-32063, 404, 'NoSuchVersion', 'The specified version does not exist.'),
  IsDeleteMarker: row(-32064, 405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.'),
  ObjectLocked: row(-32065, 403, 'AccessDenied', 'Access Denied because object protected by object lock.'),
  LockTooShort: row(
    -32066,
    403,
    'AccessDenied',
    'Access Denied because the retention of the object can be neither shortened nor ended.',
  ),
  RetainInPast: row(-32067, 400, 'InvalidArgument', 'The retain until date must be in the future!'),
  NoLockConfiguration: row(-32068, 400, 'InvalidRequest', 'Bucket is missing Object Lock Configuration'),
  InvalidBucketState: row(-32069, 409, 'InvalidBucketState', ({ value }) => String(value)),

  PreconditionFailed: row(
    -32050,
    412,
    'PreconditionFailed',
    'At least one of the pre-conditions you specified did not hold',
  ),
  InvalidRange: row(-32051, 416, 'InvalidRange', 'The requested range is not satisfiable'),
  MethodNotAllowed: row(-32052, 405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.'),
  NotFound: row(-32053, 404, 'InvalidRequest', 'There is nothing at this path.'),
  AccessDenied: row(-32055, 403, 'AccessDenied', 'Access Denied.'),
  ShareParameters: row(
    -32056,
    400,
    'AuthorizationQueryParametersError',
    ({ value }) => `The share link's ${value} is missing or not valid.`,
  ),
  ShareExpired: row(-32057, 403, 'AccessDenied', 'Request has expired'),
  SignatureMismatch: row(
    -32058,
    403,
    'SignatureDoesNotMatch',
    'The request signature we calculated does not match the signature you provided. Check your key and signing method.',
  ),

  InvalidObjectState: row(
    -32070,
    403,
    'InvalidObjectState',
    'The object has no copy here, only in deals: bring it back with GET retrieve first.',
  ),
  InvalidDeal: row(-32071, 200, 'InvalidArgument', ({ value }) => String(value)),
  DealFailed: row(-32072, 200, 'DealFailed', ({ value }) => String(value)),
  BucketEmpty: row(-32073, 200, 'BucketEmpty', 'The bucket is empty: upload objects before making a deal of it.'),
  InvalidBody: row(-32080, 400, 'InvalidRequest', ({ value }) => String(value)),
  TokenReused: row(
    -32074,
    409,
    'IdempotencyParameterMismatch',
    'The client token belongs to another deal: send the same request again, or a new token with a new one.',
  ),
  UnknownToken: row(-32075, 404, 'NoSuchDeal', 'No deal was asked for with this client token.'),
  NoSuchDeal: row(-32076, 404, 'NoSuchDeal', 'There is no such deal.'),
  RetrievalFailed: row(-32077, 200, 'RetrievalFailed', ({ value }) => String(value)),
  EvictionRefused: row(-32078, 409, 'EvictionRefused', ({ value }) => String(value)),
  VerificationFailed: row(-32081, 409, 'VerificationFailed', ({ value }) => String(value)),
  OfflineDealRefused: row(-32082, 400, 'DealRefused', ({ value }) => String(value)),
  NoPlatformUser: row(
    -32083,
    403,
    'AccessDenied',
    'This account belongs to no user of the task platform: use the key pair that GET on the gateway hands out.',
  ),
  TooManyOfflineDeals: row(-32084, 503, 'SlowDown', 'Too many offline deals are being prepared. Try again later.'),
  NoSuchTask: row(-32085, 404, 'NoSuchTask', 'There is no such task of this bucket.'),
  NetworkUnavailable: row(-32079, 503, 'ServiceUnavailable', ({ value }) => String(value)),

  PlatformUnavailable: row(-32090, 503, 'ServiceUnavailable', 'The task platform does not answer. Try again later.'),
  PlatformTrustsAll: row(
    -32091,
    501,
    'NotImplemented',
    'The task platform accepts wrong tokens, so that no token of it can be trusted here.',
  ),
  UnnamedPlatformUser: row(
    -32092,
    403,
    'AccessDenied',
    'The token does not name a user of the task platform: use the JWT of a sign-in.',
  ),
  PlatformKeyRefused: row(-32093, 503, 'ServiceUnavailable', 'The task platform refuses the API key of this gateway.'),

  QuotaExceeded: row(-32094, 403, 'QuotaExceeded', ({ value }) => String(value)),
  BodyLost: row(-32095, 500, 'BodyLost', 'The bytes of the object are lost: its gateway has them no more.'),
  BodyChanged: row(
    -32096,
    500,
    'BodyChanged',
    'The bytes of the object are not those that were stored: they have changed where the gateway keeps them.',
  ),
  BodiesUnavailable: row(
    -32097,
    503,
    'ServiceUnavailable',
    'The store of bodies does not answer, or refuses this. Nothing was changed. Try again later.',
  ),
  DatabaseUnavailable: row(
    -32098,
    503,
    'ServiceUnavailable',
    'The database of the gateway does not answer. A change may have taken place. Try again later.',
  ),
  StorageFull: row(
    -32060,
    507,
    'XMinioStorageFull',
    'Storage backend has reached its minimum free disk threshold. Please delete a few objects to proceed.',
  ),
  TooManyFiles: row(-32087, 503, 'SlowDown', 'The gateway has too many files and connections open. Try again later.'),
  StorageReadOnly: row(-32088, 503, 'ServiceUnavailable', 'The disk of the gateway is read-only.'),
  StorageBroken: row(-32089, 500, 'InternalError', 'The disk of the gateway failed. Its log has the file.'),
  Stopping: row(-32061, 503, 'XMinioServerNotInitialized', 'Server not initialized, please try again'),
  Internal: row(-32062, 500, 'InternalError', 'We encountered an internal error, please try again.'),
} as const satisfies Record<string, ErrorRow>

export type ErrorKind = keyof typeof errorTable
