import { codes, type S3Code } from '../errors/codes.js'
import { S3Error } from '../errors/s3-error.js'
import { type Logger, redact } from '../log.js'

/** How the gateway failed, before anybody has made sense of it. */
export type UpstreamFailure =
  /** An error object in a JSON-RPC reply; `dataCode` is error.data.code, an S3 code on gateways that tell it. */
  | { readonly kind: 'rpc'; readonly text: string; readonly dataCode: string | undefined }
  /** A REST or RPC call answered with an HTTP status that is no success. */
  | { readonly kind: 'http'; readonly status: number; readonly text: string; readonly headerCode: string | undefined }
  /** No answer: refused, reset, timed out, cut off. */
  | { readonly kind: 'transport'; readonly error: unknown }

/** What the failed call was about; goes into the error document. */
export interface Subject {
  readonly bucket?: string
  readonly key?: string
}

/** The gateway did not accept a token: `session.ts` gets a new one and repeats the call once. */
export class TokenRefused extends Error {
  /** What the client is told when a new token does not help. */
  readonly final: S3Error

  constructor(final: S3Error) {
    super('token refused')
    this.final = final
  }
}

const ACCOUNT_REFUSED =
  'The object gateway does not accept the account that this server uses for you. Check its key pair.'
const NOT_ALLOWED = 'The object gateway does not allow this to the account that this server uses for you.'
const FILE_AND_FOLDER =
  'The object gateway cannot hold an object and a folder of the same name. Choose another key, or remove the other one first.'
const NO_SPACE = 'The object gateway has no space left.'
const STARTING = 'The object gateway is starting. Try again.'

type TextRow = readonly [text: RegExp, code: S3Code, message?: string]

/**
 * The texts public deployments of this interface use; their codes tell nothing. Texts may quote bucket and key, so patterns hold on to the ends.
 * Sources: MinIO RELEASE.2019-09-11 and filswan/fs3 v2.0.0, cmd/web-handlers.go, cmd/api-errors.go, cmd/jwt.go, cmd/typed-errors.go.
 */
const texts: readonly TextRow[] = [
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
  [/^Your proposed upload exceeds\b/i, 'EntityTooLarge'],
  [
    /^(Object name already exists as a directory|Object-prefix is already an object)\b/i,
    'InvalidRequest',
    FILE_AND_FOLDER,
  ],
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

/** Codes that are not S3's, from `error.data.code`, `x-cloud-error-code` or an XML body. */
const foreignCodes: Readonly<Record<string, readonly [S3Code, string?]>> = {
  AllAccessDisabled: ['AccessDenied', NOT_ALLOWED],
  WebTokenMissing: ['AccessDenied', ACCOUNT_REFUSED],
  XMinioInvalidObjectName: ['InvalidRequest', 'The object gateway cannot hold this key.'],
  XMinioInvalidResourceName: ['InvalidRequest', 'The object gateway cannot hold a key with this path element.'],
  XMinioObjectExistsAsDirectory: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioParentIsObject: ['InvalidRequest', FILE_AND_FOLDER],
  XMinioServerNotInitialized: ['ServiceUnavailable', STARTING],
  XMinioStorageFull: ['ServiceUnavailable', NO_SPACE],
}

/** HTTP statuses whose body said nothing known. 404 is absent on purpose: a wrong address must never pass for "no such object". */
const statuses: Readonly<Record<number, readonly [S3Code, string?]>> = {
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

/** Seconds; long enough for a restart, short enough for the retries of SDKs. */
const RETRY_AFTER = '2'

/** Makes the one S3Error that a client gets for an upstream failure. What could not be recognised is logged and answered InternalError. */
export function translate(failure: UpstreamFailure, subject: Subject, log: Logger): S3Error {
  if (failure.kind === 'transport') return unavailable(failure.error)
  const text = plainText(failure.text)
  const known = recognise(failure, text)
  if (!known) {
    log.warn({ upstream: { ...failure, text: redact(text.slice(0, 500)) } }, 'unknown answer of the object gateway')
    return new S3Error('InternalError', {
      message: 'The object gateway failed in a way this server does not know. Its answer is in the log.',
    })
  }
  const [code, message] = known
  return new S3Error(code, {
    ...(message === undefined ? {} : { message }),
    fields: fieldsFor(code, subject),
    headers: code === 'ServiceUnavailable' || code === 'SlowDown' ? { 'retry-after': RETRY_AFTER } : {},
    cause: new Error(redact(text.slice(0, 500))),
  })
}

/** For failures that say the token is not (or no longer) good, wherever they say it. */
export function isTokenRefusal(failure: UpstreamFailure): boolean {
  if (failure.kind === 'transport') return false
  if (failure.kind === 'http' && failure.status === 401) return true
  return /^(JWT token missing|Authentication failed\b)/i.test(plainText(failure.text))
}

/** ServiceUnavailable for a gateway that cannot be reached, went away or takes too long. An S3Error passes unchanged. */
export function unavailable(error: unknown, message = transportMessage(error)): S3Error {
  if (error instanceof S3Error) return error
  return new S3Error('ServiceUnavailable', {
    message,
    headers: { 'retry-after': RETRY_AFTER },
    cause: error,
  })
}

/** For an answer that is no answer of this interface: the console's page, broken JSON, a success that contradicts itself. */
export function nonsense(what: string): S3Error {
  return new S3Error('InternalError', {
    message: `The object gateway ${what}. Check that the gateway's address and brand words are right.`,
  })
}

export function noSuchKey(bucket: string, key: string): S3Error {
  return new S3Error('NoSuchKey', { fields: fieldsFor('NoSuchKey', { bucket, key }) })
}

function recognise(
  failure: Exclude<UpstreamFailure, { kind: 'transport' }>,
  text: string,
): readonly [S3Code, string?] | undefined {
  const told = (failure.kind === 'rpc' ? failure.dataCode : failure.headerCode) ?? xmlCode(failure.text)
  const said = texts.find(([pattern]) => pattern.test(text))
  if (told !== undefined) {
    // The text may say more than the code: whose access is denied.
    if (Object.hasOwn(codes, told)) return [told as S3Code, said?.[1] === told ? said[2] : undefined]
    const foreign = foreignCodes[told]
    if (foreign) return foreign
  }
  if (said) return [said[1], said[2]]
  return failure.kind === 'http' ? statuses[failure.status] : undefined
}

/** The sentence inside the body of an error: plain text, `{"message":...}` as FS3 sends it, or XML. */
function plainText(body: string): string {
  const trimmed = body.trim()
  if (trimmed.startsWith('{')) {
    try {
      const parsed: unknown = JSON.parse(trimmed)
      if (typeof parsed === 'object' && parsed !== null && 'message' in parsed && typeof parsed.message === 'string') {
        return parsed.message.trim()
      }
    } catch {
      return trimmed
    }
  }
  return /<Message>([^<]*)<\/Message>/.exec(trimmed)?.[1] ?? trimmed
}

function xmlCode(body: string): string | undefined {
  return /<Error>[\s\S]*?<Code>(\w+)<\/Code>/.exec(body)?.[1]
}

function fieldsFor(code: S3Code, subject: Subject): Record<string, string> {
  if (code === 'NoSuchKey' && subject.key !== undefined) return { Key: subject.key }
  if (/Bucket/.test(code) && subject.bucket !== undefined) return { BucketName: subject.bucket }
  return {}
}

function transportMessage(error: unknown): string {
  const code = errorCode(error)
  if (code === 'ECONNREFUSED') return 'The object gateway does not answer: the connection was refused. Try again.'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return "The object gateway's host name cannot be resolved. Try again."
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return 'The object gateway took too long to answer. Try again.'
  if (/CERT|TLS|SSL/.test(code)) return "The object gateway's TLS certificate was not accepted."
  return 'The connection to the object gateway was lost. Try again.'
}

/** `code` of a node or undici error, also of the first error inside an AggregateError. */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return errorCode(error.errors[0])
  return ''
}

/** True when the connection was lost, not refused or timed out: what a kept-alive socket does that the gateway has closed meanwhile. */
export function isLostConnection(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(errorCode(error))
}

/** True when no connection was made at all: what was to be sent on it was not. */
export function isNotConnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isNotConnected)
  const syscall = typeof error === 'object' && error !== null && 'syscall' in error ? error.syscall : undefined
  return syscall === 'connect' || syscall === 'getaddrinfo' || errorCode(error) === 'UND_ERR_CONNECT_TIMEOUT'
}

/** A time limit of ours ran out; `code` as node and undici name theirs. */
export function timedOut(what: string): Error {
  return Object.assign(new Error(`${what} timed out`), { code: 'ETIMEDOUT' })
}
