import type { Answer } from '../../calls/rest-client.js'
import { isLostConnection, unavailable } from '../../errors.js'
import type { WriteOrder } from '../../gateway.js'
import { UploadBase } from './upload-base.js'

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
    const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
    return this.client.session.withLogin(async (token) => this.check(await this.#send(token, body, order, ordered)))
  }

  async #send(
    token: string | undefined,
    body: Buffer | undefined,
    order: WriteOrder,
    ordered: boolean,
  ): Promise<Answer> {
    const headers = ordered ? this.#orderHeaders(order) : {}
    const put = await this.begin(token, headers, !ordered && !this.client.rest.uploadedLately)
    try {
      return await this.#whole(put, body, order, ordered)
    } catch (error) {
      // Without an order, the first copy may still be on its way and take effect after a later write.
      if (!(ordered && put.reused && isLostConnection(error))) throw unavailable(error)
    }
    const again = await this.begin(token, headers, true)
    try {
      return await this.#whole(again, body, order, ordered)
    } catch (error) {
      throw unavailable(error)
    }
  }

  #whole(
    put: Awaited<ReturnType<SmallUpload['begin']>>,
    body: Buffer | undefined,
    order: WriteOrder,
    ordered: boolean,
  ) {
    order.ensure()
    this.complete = true
    put.end(body)
    return this.answered(put, ordered)
  }

  #orderHeaders({ fence, expected }: WriteOrder): Record<string, string> {
    const { names } = this.client
    return {
      [names.header('fence')]: String(fence),
      [names.header('write-id')]: this.target.writeId,
      ...(expected !== undefined && { [names.header('expected-generation')]: expected ?? 'none' }),
    }
  }
}
