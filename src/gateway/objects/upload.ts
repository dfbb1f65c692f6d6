import { randomUUID } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'
import type { GatewayFeatures, Upload, UploadAttributes, UploadResult, WriteOrder } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { formatTimestamp } from '../../common/sigv4.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { type GatewayClient, lookupClient } from '../client.js'
import { isLostConnection, isNotConnected, unavailable, WriteRefused } from '../errors.js'
import { refusal } from '../keys.js'
import { stat } from '../listing/look-up.js'
import { factsFromHeaders, uploadHeaders } from '../object-facts.js'
import { confirm, locate, resultOf } from './confirm-upload.js'
import { type PutOnWire, WholePut } from './put-request.js'
import { StreamedUpload } from './streamed-upload.js'
import { sendable, UploadBase, type UploadTarget } from './upload-base.js'

/** Largest body that is kept in memory until commit and sent in one piece, so that it can be sent again, bytes. */
const REPLAYABLE_BYTES = 256 * 1024

/**
 * See Gateway.upload. The way of a body to the gateway, from top to bottom:
 *
 * 1. This file names the write, describes its target and chooses how to send it. It keeps a small body until commit;
 *   `streamed-upload.ts` passes a large one through.
 * 2. `upload-base.ts` holds the steps that both share: count bytes, open the request, read the answer.
 * 3. `put-request.ts` is one PUT on the wire, in one piece or with a body that follows its head.
 * 4. `confirm-upload.ts` finds the stored object where the answer to the upload does not describe it.
 */
export function upload(
  client: GatewayClient,
  bucket: string,
  key: string,
  length: number,
  attributes: UploadAttributes,
): Upload {
  const writeId = attributes.writeId ?? randomUUID()
  let features: GatewayFeatures | undefined
  const known = async () => {
    features ??= await client.features.get(lookupClient(client).session)
    return features
  }
  const target: UploadTarget = {
    bucket,
    key,
    length,
    writeId,
    path: client.names.uploadPath(bucket, key),
    ordered: async () => (await known()).writeFences,
    async headers() {
      const can = await known()
      if (!can.anyKey) refuse(key, length)
      const headers = uploadHeaders(client.names, can, attributes, can.objectHead ? undefined : writeId)
      headers[client.names.header('date')] = formatTimestamp(new Date())
      return headers
    },
    async stored(answer, logger) {
      const can = await known()
      return (
        (can.objectHead && reportedResult(client, can, key, length, answer)) ||
        confirm(lookupClient(client), can, { bucket, key, writeId, logger })
      )
    },
    async look() {
      const can = await known()
      if (!can.objectHead) return locate(lookupClient(client), can, bucket, key, writeId)
      const found = await stat(lookupClient(client), can, bucket, key)
      return found?.writeId === writeId ? resultOf(found) : undefined
    },
    objectMayHaveChanged: () => client.snapshots.changed(bucket, key),
  }
  return length <= REPLAYABLE_BYTES ? new SmallUpload(client, target) : new StreamedUpload(client, target)
}

/** Reads the stored object from the headers of the answer, on gateways with objectHead. */
function reportedResult(
  client: GatewayClient,
  features: GatewayFeatures,
  key: string,
  length: number,
  answer: SmallAnswer,
): UploadResult | undefined {
  const facts = factsFromHeaders(client.names, features, answer.headers, key, length)
  return facts && resultOf(facts)
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

/** Uploads a body that fits in memory. Sends nothing before commit. */
class SmallUpload extends UploadBase {
  readonly #chunks: Buffer[] = []
  /** A copy was lost on its way: what the gateway says about another one says nothing about it. */
  #lostCopy = false

  protected take(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  protected forget(): void {
    this.#chunks.length = 0
  }

  protected async finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
    try {
      return await this.client.session.withLogin(async (token) =>
        this.check(await this.#send(token, body, order, ordered)),
      )
    } catch (error) {
      // The gateway has the bytes, and has not stored them.
      if (error instanceof WriteRefused && !this.#lostCopy) this.arrived = false
      throw error
    }
  }

  async #send(token: string | undefined, body: Buffer, order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    const headers = await this.headersWith(token, ordered ? this.#orderHeaders(order) : {})
    const first = this.#whole(headers, body, order, ordered ? 'any' : 'recent')
    try {
      return await this.#answered(first, ordered)
    } catch (error) {
      // Without an order, the first copy may still be on its way and take effect after a later write.
      if (!(ordered && first.reused && isLostConnection(error))) throw unavailable(error)
      this.#lostCopy = true
    }
    const again = this.#whole(headers, body, order, 'none')
    try {
      return await this.#answered(again, ordered)
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #answered(put: PutOnWire, ordered: boolean): Promise<SmallAnswer> {
    try {
      const answer = await this.answered(put, ordered)
      this.arrived = true
      return answer
    } catch (error) {
      this.arrived ||= !isNotConnected(error)
      throw error
    }
  }

  /** Sends the whole request within this call. */
  #whole(headers: OutgoingHttpHeaders, body: Buffer, order: WriteOrder, reuse: 'any' | 'recent' | 'none'): PutOnWire {
    const { rest } = this.client
    const { connections } = rest
    order.ensure()
    if (connections) {
      const sent = sendable(() => rest.putWhole(connections, this.target.path, headers, body, reuse))
      this.put = new WholePut(sent, rest.idleMs)
    } else {
      this.begin(headers, reuse === 'none' || (reuse === 'recent' && !rest.uploadedLately)).end(body)
    }
    this.complete = true
    return this.put as PutOnWire
  }

  #orderHeaders({ fence, expected }: WriteOrder): Record<string, string> {
    const { names } = this.client
    const headers: Record<string, string> = {}
    headers[names.header('fence')] = String(fence)
    headers[names.header('write-id')] = this.target.writeId
    if (expected !== undefined) headers[names.header('expected-generation')] = expected ?? 'none'
    return headers
  }
}
