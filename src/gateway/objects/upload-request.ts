import { randomUUID } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { formatTimestamp } from '../../../common/sigv4.js'
import type { UploadAttributes } from '../../api/gateway.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import type { Subject } from '../errors.js'
import { refusal } from '../keys.js'
import { uploadHeaders } from '../object-facts.js'
import { openPut } from './open-put.js'
import { aborted, checkAnswer, type PutOnWire, type StreamedPut } from './put-request.js'
import { notLocked } from './versions.js'

/**
 * A gateway makes a large object durable before it answers: each of this many bytes adds one millisecond to its
 * timeout.
 */
const BYTES_PER_MS = 20 * 1024

/** The requests of one upload, and what the gateway may have of it. */
export class UploadRequest {
  /** The request that was sent last. */
  put: PutOnWire | undefined
  /** True once `put` has the last bytes: the gateway may have received all of them. */
  complete = false
  /** True once the gateway may have all bytes of any request of this upload. */
  arrived = false
  readonly client: GatewayClient
  readonly subject: Required<Subject>
  /** Bytes, exact. */
  readonly length: number
  /** Identifies the write. */
  readonly writeId: string
  readonly path: string
  /** See `digestOf`. Present once a small body is complete, at gateways that do not describe what they have stored. */
  digest: string | undefined
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

  get isAborted(): boolean {
    return this.#aborted
  }

  abort(): void {
    this.#aborted = true
    // The answer to a complete body may still arrive, and it decides the outcome.
    if (!this.complete) this.put?.destroy()
  }

  /** What the gateway can do. */
  async features(): Promise<GatewayFeatures> {
    this.#features ??= await this.client.features.get(lookupClient(this.client).session)
    return this.#features
  }

  /** True when the gateway carries out writes in the order of their fences: see docs/consistency.md. */
  async ordered(): Promise<boolean> {
    return (await this.features()).writeFences
  }

  /** All headers except authorization, content-length and those of the order. */
  async headers(): Promise<Record<string, string>> {
    this.#headers ??= await this.#makeHeaders()
    return this.#headers
  }

  /** All headers but the length. `extra` are those of the order. */
  async headersWith(token: string | undefined, extra: Record<string, string>): Promise<OutgoingHttpHeaders> {
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
  begin(headers: OutgoingHttpHeaders, fresh: boolean): StreamedPut {
    const { rest } = this.client
    const all = { ...headers, 'content-length': this.length }
    const put = openPut(rest, this.path, all, fresh)
    this.put = put
    return put
  }

  /**
   * Waits for the answer to a complete body. Without an order, the connection stays open after the timeout, because a
   * late answer still decides the outcome.
   */
  answered(put: PutOnWire, ordered: boolean): Promise<SmallAnswer> {
    return put.answered(this.client.rest.timeoutMs + this.length / BYTES_PER_MS, !ordered)
  }

  /** Throws TokenRefused or S3Error for an answer that is no success. */
  check(answer: SmallAnswer): SmallAnswer {
    return checkAnswer(answer, this.client.names, this.subject)
  }

  async #makeHeaders(): Promise<Record<string, string>> {
    const can = await this.features()
    const { names } = this.client
    if (!can.anyKey) refuse(this.subject.key, this.length)
    if (this.#attributes.lock && !can.locks) throw notLocked('Object lock')
    const headers = uploadHeaders(names, can, this.#attributes, can.objectHead ? undefined : this.writeId)
    headers[names.header('date')] = formatTimestamp(new Date())
    return headers
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
