import type { S3Error } from '../../../common/errors/s3-error.js'
import type { WriteOrder } from '../../api/gateway.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { isLostConnection, TokenRefused, unavailable, WriteRefused } from '../errors.js'
import { AnsweredEarly, aborted, early, type PutRequest } from './put-request.js'
import { GatewayUpload } from './upload.js'

/** Longest wait for the answer to `Expect: 100-continue` before the body is sent anyway, ms. */
const MAX_CONTINUE_MS = 1000

/**
 * Uploads a body that passes through. Asks the gateway before the first byte, and keeps the last bytes back until
 * commit.
 */
export class StreamedUpload extends GatewayUpload {
  #last: Buffer | undefined
  #stream: PutRequest | undefined
  #token: string | undefined
  #open = false

  protected take(chunk: Buffer, release?: () => void): void | Promise<void> {
    if (this.received === this.length) {
      this.#last = chunk
      return undefined
    }
    if (!this.#open || !this.#stream) return this.#connect().then(() => this.#send(chunk, release))
    return this.#send(chunk, release)
  }

  protected forget(): void {
    this.#last = undefined
  }

  protected async finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    if (!this.#open) await this.#connect()
    const put = this.#stream
    if (!put) throw aborted()
    if (ordered) await this.#declareOrder(order)
    order.ensure()
    this.complete = true
    this.arrived = true
    put.end(this.#last)
    try {
      return this.check(await this.answered(put, ordered))
    } catch (error) {
      if (!(error instanceof WriteRefused)) throw await this.#explain(error)
      this.arrived = false
      throw new WriteRefused(error.last, false)
    }
  }

  /**
   * Sends the order of the write. The headers were sent before the key was locked and could not hold it. A refusal
   * costs nothing while the last bytes are kept back.
   */
  async #declareOrder({ fence, expected }: WriteOrder): Promise<void> {
    const { writeId } = this
    const { bucket, key } = this.subject
    await this.client.session.call({
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
      this.abort()
      throw explained
    })
  }

  async #connect(): Promise<void> {
    const late: Record<string, string> = (await this.ordered())
      ? { [this.client.names.header('fence')]: 'late', [this.client.names.header('write-id')]: this.writeId }
      : {}
    if (await this.#canExpect()) {
      await this.client.session.withLogin(async (token) => {
        this.#token = token
        const answer = await this.#ask(token, late)
        if (!answer) return
        this.put?.destroy()
        this.check(answer)
        throw early()
      })
    } else {
      // Without `Expect`, this call detects an ended session in time.
      await this.client.session.call({ method: 'web.ServerInfo', params: {}, repeatable: true })
      await this.client.session.withLogin(async (token) => {
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
    return Object.values(await this.headers()).every((value) => /^[\0-\x7f]*$/.test(value))
  }

  async #start(token: string | undefined, extra: Record<string, string>, fresh: boolean): Promise<PutRequest> {
    this.#stream = this.begin(await this.headersWith(token, extra), fresh)
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
      this.check((await this.#stream?.answer) as SmallAnswer)
      return early()
    } catch (refusal) {
      return refusal instanceof TokenRefused ? this.#expired(refusal) : unavailable(refusal)
    }
  }

  #expired(refusal: TokenRefused): S3Error {
    if (this.#token === undefined) return refusal.final
    this.client.session.forgetLogin(this.#token)
    return unavailable(undefined, 'The session at the object gateway ended during the upload. Try again.')
  }
}
