import type { HeaderList } from '../http/reply.js'

/** A refusal of the platform: the status and the message of its answer. Any other error is answered with 500. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError'
  readonly status: number
  readonly headers: HeaderList

  constructor(status: number, message: string, headers: HeaderList = []) {
    super(message)
    this.status = status
    this.headers = headers
  }
}
