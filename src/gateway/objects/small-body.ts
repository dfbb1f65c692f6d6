import type { OutgoingHttpHeaders } from 'node:http'
import type { WriteOrder } from '../../api/gateway.js'
import type { SmallAnswer } from '../calls/rest-call.js'
import { isLostConnection, isNotConnected, unavailable, WriteRefused } from '../errors.js'
import { digestOf } from './confirm-upload.js'
import type { PutOnWire } from './put-request.js'
import type { UploadBody } from './upload.js'
import type { UploadRequest } from './upload-request.js'
import { WholePut } from './whole-put.js'

/** A body that fits in memory. Sends nothing before commit. */
export class SmallBody implements UploadBody {
  readonly #request: UploadRequest
  readonly #chunks: Buffer[] = []
  /** A copy was lost on its way: what the gateway says about another one says nothing about it. */
  #lostCopy = false

  constructor(request: UploadRequest) {
    this.#request = request
  }

  take(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  forget(): void {
    this.#chunks.length = 0
  }

  async finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
    if (!(await this.#request.features()).objectHead) this.#request.digest = digestOf(body)
    try {
      return await this.#request.client.session.withLogin(async (token) =>
        this.#request.check(await this.#send(token, body, order, ordered)),
      )
    } catch (error) {
      // The gateway has the bytes, and has not stored them.
      if (error instanceof WriteRefused && !this.#lostCopy) this.#request.arrived = false
      throw error
    }
  }

  async #send(token: string | undefined, body: Buffer, order: WriteOrder, ordered: boolean): Promise<SmallAnswer> {
    const headers = await this.#request.headersWith(token, ordered ? this.#orderHeaders(order) : {})
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
      const answer = await this.#request.answered(put, ordered)
      this.#request.arrived = true
      return answer
    } catch (error) {
      this.#request.arrived ||= !isNotConnected(error)
      throw error
    }
  }

  /**
   * Sends a request with its whole body within this call.
   * @param reuse `recent`: only a connection that is very likely still open
   */
  #whole(headers: OutgoingHttpHeaders, body: Buffer, order: WriteOrder, reuse: 'any' | 'recent' | 'none'): PutOnWire {
    const { client, path } = this.#request
    const { rest } = client
    order.ensure()
    const put = new WholePut(rest.putWhole(path, headers, body, reuse), rest.idleMs)
    this.#request.put = put
    this.#request.complete = true
    return put
  }

  #orderHeaders({ fence, expected }: WriteOrder): Record<string, string> {
    const { names } = this.#request.client
    const headers: Record<string, string> = {}
    headers[names.header('fence')] = String(fence)
    headers[names.header('write-id')] = this.#request.writeId
    if (expected !== undefined) headers[names.header('expected-generation')] = expected ?? 'none'
    return headers
  }
}
