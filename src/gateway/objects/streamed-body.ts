import type { S3Error } from '../../../common/errors/s3-error.js'
import type { WriteOrder } from '../../api/gateway.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { isLostConnection, TokenRefused, unavailable, WriteRefused } from '../errors.js'
import { AnsweredEarly, aborted, early, type StreamedPut } from './put-request.js'
import type { UploadBody } from './upload.js'
import type { UploadRequest } from './upload-request.js'

/** Longest wait for the answer to `Expect: 100-continue` before the body is sent anyway, ms. */
const MAX_CONTINUE_MS = 1000

/** A body that passes through. Asks the gateway before the first byte, and keeps the last bytes back until commit. */
export class StreamedBody implements UploadBody {
  readonly #request: UploadRequest
  #last: Buffer | undefined
  #stream: StreamedPut | undefined
  #token: string | undefined
  #open = false

  constructor(request: UploadRequest) {
    this.#request = request
  }

  take(chunk: Buffer, isLast: boolean, release?: () => void): void | Promise<void> {
    if (isLast) {
      this.#last = chunk
      return undefined
    }
    if (!this.#open || !this.#stream) return this.#connect().then(() => this.#send(chunk, release))
    return this.#send(chunk, release)
  }

  forget(): void {
    this.#last = undefined
  }

  async finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    if (!this.#open) await this.#connect()
    const put = this.#stream
    if (!put) throw aborted()
    if (ordered) await this.#declareOrder(order)
    order.ensure()
    this.#request.complete = true
    this.#request.arrived = true
    put.end(this.#last)
    try {
      return this.#request.check(await this.#request.answered(put, ordered))
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw await this.#explain(error)
      this.#request.arrived = false
      throw new WriteRefused(error.last, false)
    }
  }

  /**
   * Sends the order of the write. The headers were sent before the key was locked and could not hold it. A refusal
   * costs nothing while the last bytes are kept back.
   */
  async #declareOrder({ fence, expected }: WriteOrder): Promise<void> {
    const { client, writeId, subject } = this.#request
    const { bucket, key } = subject
    await client.session.call({
      method: 'web.FenceUpload',
      params: {
        ...{ bucketName: bucket, objectName: key, fence, writeId },
        ...(expected !== undefined && { expectedGeneration: expected ?? '' }),
      },
      subject: { bucket, key },
      repeatable: true,
    })
  }

  #send(chunk: Buffer, release?: () => void): void | Promise<void> {
    const waiting = this.#stream?.write(chunk, release)
    return waiting?.catch(async (error: unknown) => {
      const explained = await this.#explain(error)
      this.#request.abort()
      throw explained
    })
  }

  async #connect(): Promise<void> {
    const late: Record<string, string> = (await this.#request.ordered())
      ? {
          [this.#request.client.names.header('fence')]: 'late',
          [this.#request.client.names.header('write-id')]: this.#request.writeId,
        }
      : {}
    if (await this.#canExpect()) {
      await this.#request.client.session.withLogin(async (token) => {
        this.#token = token
        const answer = await this.#ask(token, late)
        if (!answer) return
        this.#request.put?.destroy()
        this.#request.check(answer)
        throw early()
      })
    } else {
      // Without `Expect`, this call detects an ended session in time.
      await this.#request.client.session.call({ method: 'web.ServerInfo', params: {}, repeatable: true })
      await this.#request.client.session.withLogin(async (token) => {
        this.#token = token
        await this.#start(token, late, true)
      })
    }
    this.#open = true
  }

  /**
   * Node sends the head of a request with `Expect` as UTF-8 and any other head as latin-1 (`_storeHeader`), which would
   * change non-ASCII text.
   */
  async #canExpect(): Promise<boolean> {
    return Object.values(await this.#request.headers()).every((value) => /^[\0-\x7f]*$/.test(value))
  }

  async #start(token: string | undefined, extra: Record<string, string>, fresh: boolean): Promise<StreamedPut> {
    this.#stream = this.#request.begin(await this.#request.headersWith(token, extra), fresh)
    return this.#stream
  }

  /** Resolves undefined when the body may be sent, or to the gateway's early answer. */
  async #ask(token: string | undefined, late: Record<string, string>): Promise<SmallAnswer | undefined> {
    const expect = { ...late, expect: '100-continue' }
    const put = await this.#start(token, expect, false)
    try {
      return await put.goAhead(MAX_CONTINUE_MS)
    } catch (error) {
      if (!(put.reused && isLostConnection(error))) throw unavailable(error)
    }
    try {
      return await (await this.#start(token, expect, true)).goAhead(MAX_CONTINUE_MS)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * The S3Error for a failure after bytes were sent: this server cannot send them again, so the client has to repeat
   * the request.
   */
  async #explain(error: unknown): Promise<S3Error> {
    if (error instanceof TokenRefused) return this.#expired(error)
    if (!(error instanceof AnsweredEarly)) return unavailable(error)
    try {
      this.#request.check((await this.#stream?.answer) as SmallAnswer)
      return early()
    } catch (refusal) {
      return refusal instanceof TokenRefused ? this.#expired(refusal) : unavailable(refusal)
    }
  }

  #expired(refusal: TokenRefused): S3Error {
    if (this.#token === undefined) return refusal.final
    this.#request.client.session.forgetLogin(this.#token)
    return unavailable(undefined, 'The session at the object gateway ended during the upload. Try again.')
  }
}
