/**
 * As the cause of an S3Error: the code that threw it has already logged the failure, once for all requests that fail
 * because of it. Has no stack.
 */
export class ToldAlready extends Error {
  override readonly name = 'ToldAlready'

  constructor(message: string) {
    super(message)
    this.stack = message
  }
}

export function isTold(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof ToldAlready
}
