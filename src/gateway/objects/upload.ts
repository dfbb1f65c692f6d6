import { S3Error } from '../../../common/errors/s3-error.js'
import type { Upload, UploadResult, WriteOrder } from '../../api/gateway.js'
import { InDoubt, LATE_ANSWER_MS, leavesOpen, type WriteOutcome } from '../calls/in-doubt.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { lookupClient } from '../client.js'
import { TokenRefused, WriteRefused } from '../errors.js'
import { factsFromHeaders } from '../object-facts.js'
import { confirm, locate, resultOf } from './confirm-upload.js'
import { aborted } from './put-request.js'
import { stat } from './stat.js'
import type { UploadRequest } from './upload-request.js'

/** How the bytes of an upload reach the gateway: `SmallBody` keeps them until commit, `StreamedBody` passes them on. */
export interface UploadBody {
  /** @param isLast the chunk is the last one of the body */
  take(chunk: Buffer, isLast: boolean, release?: () => void): void | Promise<void>
  /**
   * Sends the remaining bytes. Implementations call `order.ensure` and set `complete` of the request right before they
   * send the last bytes.
   */
  finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer>
  /** Releases the buffered bytes. */
  forget(): void
}

/** See Gateway.upload. Counts the bytes, commits them once, and finds out what became of them. */
export class GatewayUpload implements Upload {
  readonly #request: UploadRequest
  readonly #body: UploadBody
  #received = 0

  constructor(request: UploadRequest, body: UploadBody) {
    this.#request = request
    this.#body = body
  }

  write(chunk: Buffer, release?: () => void): void | Promise<void> {
    const { length, isAborted } = this.#request
    if (isAborted) return Promise.reject(aborted())
    this.#received += chunk.length
    if (this.#received > length) {
      this.abort()
      return Promise.reject(new S3Error('InvalidRequest', { message: 'The body is longer than its declared length.' }))
    }
    return this.#body.take(chunk, this.#received === length, release)
  }

  async commit(order: WriteOrder): Promise<UploadResult> {
    const request = this.#request
    if (request.isAborted) throw aborted()
    if (this.#received !== request.length) {
      this.abort()
      throw new S3Error('IncompleteBody')
    }
    const ordered = await request.ordered()
    if (!ordered) request.client.inDoubt.admit()
    request.complete = false
    try {
      return await this.#stored(await this.#body.finish(order, ordered), order.logger)
    } catch (error) {
      if (!ordered && request.complete && leavesOpen(error)) {
        // The bytes are not sent again, and the outcome may stay unknown for minutes.
        this.#body.forget()
        throw new InDoubt(error, this.#findOutcome(order))
      }
      // A refusal before the last bytes leaves the upload open for another `commit` with a higher fence.
      const again = error instanceof WriteRefused && error.repeatable && !request.complete
      if (!again) request.put?.destroy()
      throw error
    } finally {
      this.#objectMayHaveChanged()
    }
  }

  get unsent(): boolean {
    return !this.#request.arrived
  }

  abort(): void {
    this.#request.abort()
  }

  /** Converts the gateway's success into the result of the upload. */
  async #stored({ headers }: SmallAnswer, logger: WriteOrder['logger']): Promise<UploadResult> {
    const can = await this.#request.features()
    const { client, length, writeId, subject, digest } = this.#request
    const { bucket, key } = subject
    const described = can.objectHead ? factsFromHeaders(client.names, can, headers, key, length) : undefined
    return described
      ? resultOf(described)
      : confirm(lookupClient(client), can, { bucket, key, writeId, digest, logger })
  }

  /** Asks the gateway whether it holds the bytes of this upload. Resolves undefined when it does not. */
  async #look(): Promise<UploadResult | undefined> {
    const can = await this.#request.features()
    const { writeId, subject, digest } = this.#request
    const client = lookupClient(this.#request.client)
    const { bucket, key } = subject
    if (!can.objectHead) return locate(client, can, { bucket, key, writeId, digest })
    const found = await stat(client, can, bucket, key)
    return found?.writeId === writeId ? resultOf(found) : undefined
  }

  #objectMayHaveChanged(): void {
    const { client, subject } = this.#request
    client.snapshots.changed(subject.bucket, subject.key)
  }

  #findOutcome({ logger }: WriteOrder): Promise<WriteOutcome> {
    const { put, client } = this.#request
    const late = async () => {
      try {
        if (!put) throw aborted()
        return await this.#stored(this.#request.check(await put.answered(LATE_ANSWER_MS)), logger)
      } catch (error) {
        // A refusal also decides the outcome.
        if (error instanceof TokenRefused || (error instanceof S3Error && !leavesOpen(error))) return undefined
        throw error
      } finally {
        put?.destroy()
      }
    }
    const doubt = { bytes: put?.unsentBytes ?? 0, cut: () => put?.destroy(), logger }
    return client.inDoubt
      .findOutcome(late(), () => this.#look(), doubt)
      .finally(() => {
        // The request has ended by now, unless the server is stopping.
        put?.destroy()
        this.#objectMayHaveChanged()
      })
  }
}
