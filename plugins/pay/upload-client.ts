import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { AnswerLost, readAnswer, type ServiceAnswer, type ServiceClient } from 'dealgate/plugin'

export interface FilePost {
  readonly path: readonly string[]
  readonly token: string | undefined
  /** Key by which services recognise a repeated request; those that do not know it ignore the header. */
  readonly idempotencyKey: string
  /** Texts of the form, before the file. */
  readonly fields: Readonly<Record<string, string>>
  readonly name: string
  /** Bytes; undefined when they are known at the end alone. */
  readonly size: number | undefined
  /** Passes all bytes of the file to the sink, which applies back-pressure. */
  readonly content: (sink: (chunk: Buffer) => Promise<void>) => Promise<void>
  /**
   * Awaited between the last byte of the file and the end of the form, without which the service has no upload.
   * @param size bytes of the file
   */
  readonly beforeEnd: (size: number) => Promise<void>
  /** How long the service may accept no byte, and how long its answer may take, ms. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The connection broke before the end of the form was sent, so that the service stored nothing. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

/** The service answered before the end of the form. */
class AnsweredEarly extends Error {}

/**
 * Posts a file as a multipart form, as it arrives, in flat memory. It uses node:http and not the one client, because it
 * waits between the last byte of the file and the end of the form.
 * @throws S3Error UpstreamUnavailable if the service cannot be reached, Interrupted, AnswerLost once the end was sent,
 * and what `content` and `beforeEnd` throw
 */
export async function postFile(client: ServiceClient, post: FilePost): Promise<ServiceAnswer> {
  const { head, tail, boundary } = formAround(post)
  const url = client.urlOf(post.path)
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const request = send(url, {
    method: 'POST',
    agent: false,
    signal: post.signal,
    headers: {
      ...client.headersOf(post.token),
      'idempotency-key': post.idempotencyKey,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      ...(post.size !== undefined && { 'content-length': head.length + post.size + tail.length }),
    },
  })
  request.setTimeout(post.timeoutMs, () => request.destroy(new Error('the payment service is silent')))
  const sending = new Sending(request)
  let ended = false
  let size = 0
  try {
    await sending.write(head)
    await post.content((chunk) => {
      size += chunk.length
      return sending.write(chunk)
    })
    await post.beforeEnd(size)
    sending.requireOpen()
    ended = true
    request.end(tail)
    return await sending.answer
  } catch (error) {
    if (error instanceof AnsweredEarly) return await sending.answer.catch(interrupted)
    const cause = sending.failure
    if (cause === undefined) throw error
    if (ended) throw new AnswerLost('payment service', /silent/.test(String(cause)), { cause })
    const failure = client.failure(cause, false)
    throw failure instanceof AnswerLost ? interrupted(cause) : failure
  } finally {
    request.destroy()
  }
}

/** A request while its body is sent. */
class Sending {
  readonly answer: Promise<ServiceAnswer>
  readonly #request: ClientRequest
  /**
   * Ends the wait of the one writer. A reaction on a promise for the whole upload instead would stay until its end, one
   * for each wait.
   */
  #giveUp: ((error: unknown) => void) | undefined
  failure: unknown
  #answered = false

  constructor(request: ClientRequest) {
    this.#request = request
    const failed = once(request, 'error').then(([error]) => this.#fail(error))
    const response = once(request, 'response') as Promise<[IncomingMessage]>
    this.answer = Promise.race([
      failed,
      response.then(async ([message]) => {
        this.#answered = true
        return await readAnswer(message.statusCode ?? 0, message.headers, message).catch((error) => this.#fail(error))
      }),
    ])
    this.answer.catch(() => {})
    const over = Promise.race([
      failed,
      response.then(() => {
        throw new AnsweredEarly()
      }),
    ])
    over.catch((error) => this.#giveUp?.(error))
  }

  /** Throws once there is an answer, or the connection has broken. */
  requireOpen(): void {
    if (this.#answered) throw new AnsweredEarly()
    if (this.failure !== undefined) throw this.failure
  }

  async write(chunk: Buffer): Promise<void> {
    this.requireOpen()
    if (!this.#request.write(chunk)) await this.#drained()
  }

  async #drained(): Promise<void> {
    const request = this.#request
    let drained = () => {}
    try {
      await new Promise<void>((resolve, reject) => {
        drained = resolve
        request.once('drain', drained)
        this.#giveUp = reject
      })
    } finally {
      this.#giveUp = undefined
      request.off('drain', drained)
    }
  }

  #fail(error: unknown): never {
    this.failure ??= error
    throw error
  }
}

function interrupted(cause: unknown): never {
  throw new Interrupted('The connection to the payment service broke before the file had arrived.', { cause })
}

/** https://www.rfc-editor.org/rfc/rfc7578 */
function formAround({ fields, name }: Pick<FilePost, 'fields' | 'name'>) {
  const boundary = `dealgate-${randomBytes(16).toString('hex')}`
  const texts = Object.entries(fields).map(
    ([field, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/octet-stream\r\n\r\n`
  return { head: Buffer.from(texts.join('') + file), tail: Buffer.from(`\r\n--${boundary}--\r\n`), boundary }
}
