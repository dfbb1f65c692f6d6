import { isMarked, isOfClass } from './across-copies.js'
import { type CodeRow, codes, type S3Code } from './codes.js'

/** Further elements of an error document. A list repeats the element. */
export type ErrorFields = Readonly<Record<string, string | number | readonly string[]>>

export interface S3ErrorOptions {
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
export interface OwnErrorOptions extends S3ErrorOptions {
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
    // biome-ignore lint/complexity/noThisInStatic: a subclass inherits this, and is to be told by its class
    return this === S3Error ? isMarked(value, MARK) : isOfClass(this, value)
  }
}
