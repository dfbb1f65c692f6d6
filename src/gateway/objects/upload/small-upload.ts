import type { OutgoingHttpHeaders } from 'node:http'
import type { Answer } from '../../calls/answer.js'
import { isLostConnection, unavailable } from '../../errors.js'
import type { WriteOrder } from '../../gateway.js'
import { sendable, UploadBase } from './upload-base.js'
import { type PutOnWire, WholePut } from './whole-put.js'

/** Uploads a body that fits in memory. Sends nothing before commit. */
export class SmallUpload extends UploadBase {
  readonly #chunks: Buffer[] = []

  protected take(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  protected forget(): void {
    this.#chunks.length = 0
  }

  protected finish(order: WriteOrder, ordered: boolean): Promise<Answer> {
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
    return this.client.session.withLogin(async (token) => this.check(await this.#send(token, body, order, ordered)))
  }

  async #send(token: string | undefined, body: Buffer, order: WriteOrder, ordered: boolean): Promise<Answer> {
    const headers = await this.headersWith(token, ordered ? this.#orderHeaders(order) : {})
    const first = this.#whole(headers, body, order, ordered ? 'any' : 'lately')
    try {
      return await this.answered(first, ordered)
    } catch (error) {
      // Without an order, the first copy may still be on its way and take effect after a later write.
      if (!(ordered && first.reused && isLostConnection(error))) throw unavailable(error)
    }
    const again = this.#whole(headers, body, order, 'none')
    try {
      return await this.answered(again, ordered)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** Sends the whole request within this call. */
  #whole(headers: OutgoingHttpHeaders, body: Buffer, order: WriteOrder, reuse: 'any' | 'lately' | 'none'): PutOnWire {
    const { rest } = this.client
    const { connections } = rest
    order.ensure()
    if (connections) {
      const sent = sendable(() => rest.putWhole(connections, this.target.path, headers, body, reuse))
      this.put = new WholePut(sent, rest.idleMs)
    } else {
      this.begin(headers, reuse === 'none' || (reuse === 'lately' && !rest.uploadedLately)).end(body)
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
