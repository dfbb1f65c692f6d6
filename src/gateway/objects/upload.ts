import { randomUUID } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { formatTimestamp } from '../../../common/sigv4.js'
import type { Upload, UploadAttributes, UploadResult, WriteOrder } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import { InDoubt, LATE_ANSWER_MS, leavesOpen, type WriteOutcome } from '../calls/in-doubt.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { type Subject, TokenRefused, WriteRefused } from '../errors.js'
import { refusal } from '../keys.js'
import { factsFromHeaders, uploadHeaders } from '../object-facts.js'
import { confirm, locate, resultOf } from './confirm-upload.js'
import { aborted, checkAnswer, type PutOnWire, PutRequest } from './put-request.js'
import { stat } from './stat.js'
import { notLocked } from './versions.js'

/**
 * A gateway makes a large object durable before it answers: each of this many bytes adds one millisecond to its
 * timeout.
 */
const BYTES_PER_MS = 20 * 1024

/**
 * See Gateway.upload. The steps that all uploads share: count bytes, open requests, read answers. `SmallUpload`
 * keeps its body until commit, `StreamedUpload` passes it through.
 */
export abstract class GatewayUpload implements Upload {
  protected received = 0
  protected put: PutOnWire | undefined
  /** True once `put` has the last bytes: the gateway may have received all of them. */
  protected complete = false
  /** True once the gateway may have all bytes of any request of this upload. */
  protected arrived = false
  protected readonly client: GatewayClient
  protected readonly subject: Required<Subject>
  /** Bytes, exact. */
  protected readonly length: number
  /** Identifies the write. */
  protected readonly writeId: string
  protected readonly path: string
  readonly #attributes: UploadAttributes
  #features: GatewayFeatures | undefined
  #headers: Record<string, string> | undefined
  #aborted = false

  constructor(client: GatewayClient, bucket: string, key: string, length: number, attributes: UploadAttributes) {
    this.client = client
    this.subject = { bucket, key }
    this.length = length
    this.writeId = attributes.writeId ?? randomUUID()
    this.path = client.names.uploadPath(bucket, key)
    this.#attributes = attributes
  }

  write(chunk: Buffer, release?: () => void): void | Promise<void> {
    if (this.#aborted) return Promise.reject(aborted())
    this.received += chunk.length
    if (this.received > this.length) {
      this.abort()
      return Promise.reject(new S3Error('InvalidRequest', { message: 'The body is longer than its declared length.' }))
    }
    return this.take(chunk, release)
  }

  async commit(order: WriteOrder): Promise<UploadResult> {
    if (this.#aborted) throw aborted()
    if (this.received !== this.length) {
      this.abort()
      throw new S3Error('IncompleteBody')
    }
    const ordered = await this.ordered()
    if (!ordered) this.client.inDoubt.admit()
    this.complete = false
    try {
      return await this.#stored(await this.finish(order, ordered), order.logger)
    } catch (error) {
      if (!ordered && this.complete && leavesOpen(error)) {
        // The bytes are not sent again, and the outcome may stay unknown for minutes.
        this.forget()
        throw new InDoubt(error, this.#findOutcome(order))
      }
      // A refusal before the last bytes leaves the upload open for another `commit` with a higher fence.
      const again = error instanceof WriteRefused && error.repeatable && !this.complete
      if (!again) this.put?.destroy()
      throw error
    } finally {
      this.#objectMayHaveChanged()
    }
  }

  get unsent(): boolean {
    return !this.arrived
  }

  abort(): void {
    this.#aborted = true
    // The answer to a complete body may still arrive, and it decides the outcome.
    if (!this.complete) this.put?.destroy()
  }

  protected abstract take(chunk: Buffer, release?: () => void): void | Promise<void>
  /**
   * Sends the remaining bytes. Implementations call `order.ensure` and set `complete` right before they send the last
   * bytes.
   */
  protected abstract finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer>

  /** Releases the buffered bytes. */
  protected abstract forget(): void

  /** True when the gateway carries out writes in the order of their fences: see docs/consistency.md. */
  protected async ordered(): Promise<boolean> {
    return (await this.#known()).writeFences
  }

  /** All headers except authorization, content-length and those of the order. */
  protected async headers(): Promise<Record<string, string>> {
    this.#headers ??= await this.#makeHeaders()
    return this.#headers
  }

  /** All headers but the length. `extra` are those of the order. */
  protected async headersWith(token: string | undefined, extra: Record<string, string>): Promise<OutgoingHttpHeaders> {
    const own = await this.headers()
    if (this.#aborted) throw aborted()
    const all: OutgoingHttpHeaders = {}
    for (const headers of [own, extra]) for (const name in headers) all[name] = headers[name]
    if (token !== undefined) all.authorization = `Bearer ${token}`
    return all
  }

  /**
   * Opens a request whose body follows.
   * @param fresh use a new connection: a restarted gateway may have closed all kept ones
   */
  protected begin(headers: OutgoingHttpHeaders, fresh: boolean): PutRequest {
    const { rest } = this.client
    const all = { ...headers, 'content-length': this.length }
    const put = new PutRequest(rest.put(this.path, all, fresh), rest.idleMs)
    this.put = put
    return put
  }

  /**
   * Waits for the answer to a complete body. Without an order, the connection stays open after the timeout, because a
   * late answer still decides the outcome.
   */
  protected answered(put: PutOnWire, ordered: boolean): Promise<SmallAnswer> {
    return put.answered(this.client.rest.timeoutMs + this.length / BYTES_PER_MS, !ordered)
  }

  /** Throws TokenRefused or S3Error for an answer that is no success. */
  protected check(answer: SmallAnswer): SmallAnswer {
    return checkAnswer(answer, this.client.names, this.subject)
  }

  async #known(): Promise<GatewayFeatures> {
    this.#features ??= await this.client.features.get(lookupClient(this.client).session)
    return this.#features
  }

  async #makeHeaders(): Promise<Record<string, string>> {
    const can = await this.#known()
    const { names } = this.client
    if (!can.anyKey) refuse(this.subject.key, this.length)
    if (this.#attributes.lock && !can.locks) throw notLocked('Object lock')
    const headers = uploadHeaders(names, can, this.#attributes, can.objectHead ? undefined : this.writeId)
    headers[names.header('date')] = formatTimestamp(new Date())
    return headers
  }

  /** Converts the gateway's success into the result of the upload. */
  async #stored({ headers }: SmallAnswer, logger: WriteOrder['logger']): Promise<UploadResult> {
    const can = await this.#known()
    const { client, length, writeId } = this
    const { bucket, key } = this.subject
    const described = can.objectHead ? factsFromHeaders(client.names, can, headers, key, length) : undefined
    return described ? resultOf(described) : confirm(lookupClient(client), can, { bucket, key, writeId, logger })
  }

  /** Asks the gateway whether it holds the bytes of this upload. Resolves undefined when it does not. */
  async #look(): Promise<UploadResult | undefined> {
    const can = await this.#known()
    const client = lookupClient(this.client)
    const { bucket, key } = this.subject
    if (!can.objectHead) return locate(client, can, bucket, key, this.writeId)
    const found = await stat(client, can, bucket, key)
    return found?.writeId === this.writeId ? resultOf(found) : undefined
  }

  #objectMayHaveChanged(): void {
    this.client.snapshots.changed(this.subject.bucket, this.subject.key)
  }

  #findOutcome({ logger }: WriteOrder): Promise<WriteOutcome> {
    const { put, client } = this
    const late = async () => {
      try {
        if (!put) throw aborted()
        return await this.#stored(this.check(await put.answered(LATE_ANSWER_MS)), logger)
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

function refuse(key: string, length: number): void {
  const message = refusal(key)
  if (message !== undefined) throw new S3Error('InvalidArgument', { message, fields: { Key: key } })
  if (key.endsWith('/') && length > 0) {
    throw new S3Error('InvalidArgument', {
      message: 'The object gateway cannot hold bytes under a key that ends in "/".',
      fields: { Key: key },
    })
  }
}
