import type { Logger } from '../log.js'
import { type CodeRow, codes, type S3Code } from './codes.js'

/** Further elements of an error document. A list repeats the element. */
export type ErrorFields = Readonly<Record<string, string | number | readonly string[]>>

interface S3ErrorOptions {
  /** The problem and its remedy. Sent to the client: must not contain a secret, a path or a stack. */
  message?: string
  /** The cause. Logged, never sent. */
  cause?: unknown
  /** Further elements of the error document, such as BucketName, Key or ArgumentName. */
  fields?: ErrorFields
  /** Further response headers, such as Retry-After. */
  headers?: Record<string, string>
}

/** Options for a code of a plugin, which the table does not contain. */
interface OwnErrorOptions extends S3ErrorOptions {
  /** 400 to 599. */
  status: number
  message: string
}

/** A code of the table (common/errors/codes.ts) or of a plugin. */
export type ErrorCode = S3Code | (string & {})

const MARK: unique symbol = Symbol.for('dealgate.S3Error')

/**
 * The error that operations, authentication and the gateway client throw. It becomes S3's `<Error>` document.
 * `instanceof` also recognises errors of another copy of this package.
 */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly code: ErrorCode
  readonly status: number
  readonly fields: ErrorFields
  readonly headers: Readonly<Record<string, string>>

  constructor(code: S3Code, options?: S3ErrorOptions)
  constructor(code: string, options: OwnErrorOptions)
  constructor(code: ErrorCode, options: S3ErrorOptions & { status?: number } = {}) {
    const row: CodeRow = Object.hasOwn(codes, code) ? codes[code as S3Code] : codes.InternalError
    super(options.message ?? row.message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status ?? row.status
    this.fields = options.fields ?? {}
    this.headers = options.headers ?? {}
  }

  get [MARK](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this, and is recognised by its class
    return this === S3Error ? isMarked(value, MARK) : isOfClass(this, value)
  }
}

/**
 * A plugin may bring its own copy of this package, with its own classes. Values that cross between copies are
 * recognised by marks in the registry of symbols, which all copies share.
 */
export function isMarked(value: unknown, mark: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[mark] === true
}

/** Implements `value instanceof type` for subclasses of classes that are recognised by marks. */
function isOfClass(type: unknown, value: unknown): boolean {
  return Function.prototype[Symbol.hasInstance].call(type, value)
}

const UNKNOWN_MARK: unique symbol = Symbol.for('dealgate.OutcomeUnknown')

/**
 * A request was sent, and no answer tells whether it was carried out: the answer was lost, or does not come from the
 * service itself, such as the 408, 429 or HTML page of an intermediate proxy. Must never be answered with a 5xx status,
 * because clients repeat such requests.
 */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'

  get [UNKNOWN_MARK](): true {
    return true
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, UNKNOWN_MARK)
  }
}

/** What `asked` resolves to; `instead` where it rejects with an S3Error of one of these codes. */
export async function unless<T, U>(codes: S3Code | readonly S3Code[], asked: Promise<T>, instead: U): Promise<T | U> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof S3Error && [codes].flat().some((code) => code === error.code)) return instead
    throw error
  }
}

/** Seconds until a client may retry. */
const RETRY_AFTER = 5

/** 503 for a client that this server has no capacity for at present. */
export function slowDown(message: string, { seconds = RETRY_AFTER, cause }: SlowDownFacts = {}): S3Error {
  return new S3Error('SlowDown', { message, cause, headers: { 'retry-after': String(seconds) } })
}

interface SlowDownFacts {
  /** Time until the client may retry, seconds. */
  readonly seconds?: number
  readonly cause?: unknown
}

/**
 * The cause of an S3Error for a failure that has one line in the log, whatever number of requests fail because of it.
 * Has no stack.
 */
export class ReportedAlready extends Error {
  override readonly name = 'ReportedAlready'

  readonly #report: ((log: Logger, facts: object) => void) | undefined

  /** @param report logs the failure, unless that was done before; absent: it has been logged */
  constructor(message: string, report?: (log: Logger, facts: object) => void) {
    super(message)
    this.stack = message
    this.#report = report
  }

  /** @param facts of the request that failed, for the line if one is due */
  report(log: Logger, facts: object = {}): void {
    this.#report?.(log, facts)
  }
}

/** True if the failure needs no further line: if its one line is still due, `log` gets it. */
export function isReported(error: unknown, log: Logger): boolean {
  if (!(error instanceof Error && error.cause instanceof ReportedAlready)) return false
  error.cause.report(log)
  return true
}
