import { codes, type S3Code } from '../../common/errors/codes.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { parseObject } from '../../common/json.js'
import { redact } from '../../common/log.js'
import { absences, foreignCodes, isOwnText, ownStatuses, statuses, texts } from './known-failures.js'

/** A failure of the gateway before it is interpreted. */
export type UpstreamFailure =
  /** An error object in a JSON-RPC reply. `dataCode` is error.data.code, an S3 code on gateways that send it. */
  | {
      readonly kind: 'rpc'
      readonly text: string
      readonly dataCode: string | undefined
      readonly fence?: number | undefined
    }
  /** A REST or RPC call answered with an HTTP status other than success. */
  | {
      readonly kind: 'http'
      readonly status: number
      readonly text: string
      readonly headerCode: string | undefined
      readonly fence?: number | undefined
      /** True for an answer to a call of JSON-RPC, where the status says nothing about objects. */
      readonly toCall?: boolean
    }
  /** No answer: connection refused, reset, timed out or cut off. */
  | { readonly kind: 'transport'; readonly error: unknown }

/** The subject of the failed call, which goes into the error document. */
export interface Subject {
  readonly bucket?: string
  readonly key?: string
}

/** The gateway did not accept a token. `session.ts` gets a new token and repeats the call once. */
export class TokenRefused extends Error {
  /** The error for the client when a new token does not help. */
  readonly final: S3Error

  constructor(final: S3Error) {
    super('token refused')
    this.final = final
  }
}

/**
 * The gateway has no JSON-RPC service of the requested name and has done nothing. `rpc.ts` repeats the call with the
 * other name.
 */
export class ServiceUnknown extends Error {
  /** The error for the client when the other name does not help. */
  readonly final: S3Error

  constructor(final: S3Error) {
    super('JSON-RPC service unknown')
    this.final = final
  }
}

/** Seconds. Long enough for a restart, short enough for the retries of SDKs. */
const RETRY_AFTER = '2'

/**
 * Translates a failure of the gateway to the S3Error for the client. An unknown failure becomes InternalError. Its
 * cause has the gateway's answer: this client does not know the request, and the server logs the cause with the
 * request's id.
 */
export function translate(failure: UpstreamFailure, subject: Subject): S3Error {
  if (failure.kind === 'transport') return unavailable(failure.error)
  const reported = failure.kind === 'rpc' ? failure.dataCode : failure.headerCode
  if (reported === 'WriteOvertaken' || reported === 'OtherGeneration') return new WriteRefused(failure.fence)
  const text = plainText(failure.text)
  const known = recognise(failure, text, subject)
  if (!known) {
    return new S3Error('InternalError', {
      message: 'The object gateway failed in a way this server does not know. Its answer is in the log.',
      cause: new Error(`unknown answer of the object gateway: ${[...factsOf(failure), quoted(text)].join(' ')}`),
    })
  }
  const [code, message] = known
  return new S3Error(code, {
    ...(message === undefined ? {} : { message }),
    fields: fieldsFor(code, subject),
    headers: code === 'ServiceUnavailable' || code === 'SlowDown' ? { 'retry-after': RETRY_AFTER } : {},
    cause: new Error(quoted(text)),
  })
}

/** True for failures that mean that the token is invalid or has expired, wherever they say so. */
export function isTokenRefusal(failure: UpstreamFailure): boolean {
  if (failure.kind === 'transport') return false
  if (failure.kind === 'http' && failure.status === 401) return true
  return /^(JWT token missing|Authentication failed\b)/i.test(plainText(failure.text))
}

/**
 * True for a failed listing that has no entry: no key can have the prefix; or MinIO RELEASE.2021-06-17 on one folder
 * finds nothing in a bucket that holds an object `fs.json` (cmd/object-api-errors.go, `ObjectExistsAsDirectory`). False
 * for `Object not found`: an object that vanishes under the listing says nothing about the others.
 */
export function isEmptyListing(error: unknown, bucket: string, prefix: string): boolean {
  if (!(error instanceof S3Error)) return false
  const text = error.cause instanceof Error ? error.cause.message : ''
  if (error.code === 'NoSuchKey') return !/^Object not found\b/i.test(text)
  return text === quoted(`Object exists on : ${bucket} as directory ${prefix}`)
}

/** Truncates a text of the gateway for an error or the log. */
function quoted(text: string): string {
  return redact(text.slice(0, 500))
}

/** True for the text of gorilla/rpc v2 (map.go) about an unregistered service. */
export function isUnknownService(failure: UpstreamFailure): boolean {
  return failure.kind === 'rpc' && /^rpc: can't find service\b/i.test(failure.text)
}

/** ServiceUnavailable for a gateway that is unreachable, disconnects or takes too long. An S3Error passes unchanged. */
export function unavailable(error: unknown, message = transportMessage(error)): S3Error {
  if (error instanceof S3Error) return error
  return new S3Error('ServiceUnavailable', {
    message,
    headers: { 'retry-after': RETRY_AFTER },
    cause: error,
  })
}

/**
 * The error for an answer outside this interface: the page of a console, broken JSON, or a success that contradicts
 * itself.
 */
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
  subject: Subject,
): readonly [S3Code, string?] | undefined {
  const reported = (failure.kind === 'rpc' ? failure.dataCode : failure.headerCode) ?? xmlCode(failure.text)
  const said = texts.find(([pattern]) => pattern.test(text))
  if (reported !== undefined) {
    // The text may be more specific than the code and name the account that was denied.
    if (Object.hasOwn(codes, reported)) return [reported as S3Code, said?.[1] === reported ? said[2] : undefined]
    const foreign = Object.hasOwn(foreignCodes, reported) ? foreignCodes[reported] : undefined
    if (foreign) return foreign
  }
  if (said) return [said[1], said[2]]
  return failure.kind === 'http' ? byStatus(failure, text, subject) : undefined
}

/** What the status of an answer with an unknown text says. */
function byStatus(
  { status, text: body, toCall }: UpstreamFailure & { kind: 'http' },
  text: string,
  subject: Subject,
): readonly [S3Code, string?] | undefined {
  if (toCall || !isOwnText(body, text)) return statuses[status]
  if (status !== 404) return statuses[status] ?? ownStatuses[status]
  if (subject.key !== undefined) return absences.key
  return subject.bucket === undefined ? undefined : absences.bucket
}

/** The status and the code of an answer, as far as it has them. */
function factsOf(failure: Exclude<UpstreamFailure, { kind: 'transport' }>): readonly (string | number)[] {
  const code = failure.kind === 'rpc' ? failure.dataCode : failure.headerCode
  return [...(failure.kind === 'http' ? [failure.status] : []), ...(code === undefined ? [] : [quoted(code)])]
}

/** Extracts the message from the body of an error: plain text, `{"message":...}` as FS3 sends it, or XML. */
function plainText(body: string): string {
  const trimmed = body.trim()
  if (trimmed.startsWith('{')) {
    const document = parseObject(trimmed)
    if (document === undefined) return trimmed
    if (typeof document.message === 'string') return document.message.trim()
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
  if (/CERT|TLS|SSL|UNABLE_TO_|EPROTO/.test(code))
    return `No secure connection to the object gateway: ${code}. Check its certificate, and the authority and client certificate that this server is configured with.`
  return 'The connection to the object gateway was lost. Try again.'
}

/** `code` of an error of Node, or of the first error inside an AggregateError. */
function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return errorCode(error.errors[0])
  return ''
}

/**
 * True when the connection was lost, not refused or timed out. This happens on a kept-alive socket that the gateway has
 * closed.
 */
export function isLostConnection(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(errorCode(error))
}

/** True when no connection was made, so that nothing was sent. */
export function isNotConnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isNotConnected)
  const syscall = typeof error === 'object' && error !== null && 'syscall' in error ? error.syscall : undefined
  return syscall === 'connect' || syscall === 'getaddrinfo'
}

/** Marks the error of a connection that was not made or not secured: nothing was sent. */
export function notConnected(error: Error): Error {
  return isNotConnected(error) ? error : Object.assign(error, { syscall: 'connect' })
}

/** The error for an expired time limit of this client. Its `code` is the one that Node uses. */
export function timedOut(what: string): Error {
  return Object.assign(new Error(`${what} timed out`), { code: 'ETIMEDOUT' })
}

/** The gateway has refused a write because of an earlier write to its key. Nothing was changed. */
export class WriteRefused extends S3Error {
  /** Fence of the last write to the key; undefined when the object had another generation than expected. */
  readonly last: number | undefined
  /** False when the upload has consumed bytes that cannot be sent again, so that another `commit` is useless. */
  readonly repeatable: boolean

  constructor(last: number | undefined, repeatable = true) {
    super('ServiceUnavailable', {
      message: 'Another write to this key came first. Try again.',
      headers: { 'retry-after': '1' },
    })
    this.last = last
    this.repeatable = repeatable
  }
}
