import { codes, type S3Code } from './codes.js'

/** Further elements of an error document; a list is an element repeated. */
export type ErrorFields = Readonly<Record<string, string | number | readonly string[]>>

export interface S3ErrorOptions {
  /** What went wrong and what to do about it. Goes to the client: never a secret, a path or a stack. */
  message?: string
  /** What led to it. Logged, never sent. */
  cause?: unknown
  /** Further elements of the error document, such as BucketName, Key or ArgumentName. */
  fields?: ErrorFields
  /** Further response headers, such as Retry-After. */
  headers?: Record<string, string>
}

/** The one error that operations, authentication and the gateway client throw; it becomes S3's `<Error>` document. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly code: S3Code
  readonly status: number
  readonly fields: ErrorFields
  readonly headers: Readonly<Record<string, string>>

  constructor(code: S3Code, options: S3ErrorOptions = {}) {
    super(options.message ?? codes[code].message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = codes[code].status
    this.fields = options.fields ?? {}
    this.headers = options.headers ?? {}
  }
}
