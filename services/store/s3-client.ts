import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { jitteredPause } from '../../common/backoff.js'
import { readAtMost } from '../../common/bounded-text.js'
import { childText, parseDocument, type XmlNode } from '../../common/xml.js'
import type { S3Credentials, S3Location } from './s3-location.js'
import { isPassing, S3Refusal } from './s3-refusal.js'
import { S3Signer } from './s3-signer.js'
import type { BodyRequestOutcome, BodyStoreWatch } from './store-metrics.js'

/** An ETag without its quotes; empty for none. */
export function bare(etag: string | undefined): string {
  return (etag ?? '').replace(/^"|"$/g, '')
}

interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Within the bucket; empty for the bucket itself. */
  readonly key: string
  /** Decoded. */
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: readonly Uint8Array[]
  /** In place of that of the limits, for an answer that takes its time. */
  readonly idleMs?: number
}

export interface S3Limits {
  /** Time after the begin of an operation in which more than a second attempt may begin, ms. */
  readonly maxWaitMs: number
  /** Time in which nothing moves until an attempt is given up, ms: the only bound of one. */
  readonly idleMs: number
}

/** Largest answer that is read into memory: a page of a listing, or an error. Bytes. */
const MAX_DOCUMENT = 8 * 1024 * 1024
const BACKOFF = { firstMs: 100, longestMs: 2000 }

/** Sends requests to one bucket. Bodies are signed with their SHA-256, which the store compares. */
export class S3Client {
  readonly #signer: S3Signer
  readonly #limits: S3Limits
  readonly #watch: BodyStoreWatch | undefined
  readonly #agent: HttpAgent | HttpsAgent
  readonly #request: typeof httpRequest
  readonly #url: URL
  readonly #underway = new Set<AbortController>()
  #closed = false

  /** @param credentials asked again after the store has refused those it gave */
  constructor(location: S3Location, credentials: () => S3Credentials, limits: S3Limits, watch?: BodyStoreWatch) {
    this.#watch = watch
    this.#signer = new S3Signer(location, credentials)
    this.#limits = limits
    this.#url = new URL(location.endpoint)
    const isPlain = this.#url.protocol === 'http:'
    this.#request = isPlain ? httpRequest : httpsRequest
    this.#agent = new (isPlain ? HttpAgent : HttpsAgent)({ keepAlive: true })
  }

  /** Ends what is under way. */
  close(): void {
    this.#closed = true
    for (const over of this.#underway) over.abort()
    this.#agent.destroy()
  }

  /**
   * Calls `attempt` until it succeeds, fails for good, or fails again after `maxWaitMs`; rejects with its last
   * error. An attempt in which bytes move is not cut.
   * @param attempt gets its number, from 0
   */
  async retry<T>(attempt: (n: number, signal: AbortSignal) => Promise<T>): Promise<T> {
    // AbortSignal.any does not fit: Node 20 may collect the signals that it joins, which then never fire.
    const over = new AbortController()
    const { signal } = over
    const end = performance.now() + this.#limits.maxWaitMs
    this.#underway.add(over)
    if (this.#closed) over.abort()
    try {
      for (let n = 0; ; n++) {
        try {
          return await attempt(n, signal)
        } catch (error) {
          const pause = jitteredPause(n + 1, BACKOFF)
          // An attempt that took longer than `maxWaitMs` has another one, too.
          const isLast = n > 0 && performance.now() + pause > end
          if (signal.aborted || !(this.#signer.renewed(error) || (isPassing(error) && !isLast))) throw error
          await sleep(pause, undefined, { signal }).catch(() => {
            throw error
          })
        }
      }
    } finally {
      this.#underway.delete(over)
    }
  }

  /** Sends a request, and resolves with the head of its answer. Throws S3Refusal, and what the connection throws. */
  async send(asked: S3Request, signal: AbortSignal): Promise<IncomingMessage> {
    const began = performance.now()
    const end = (outcome: BodyRequestOutcome) =>
      this.#watch?.request(asked.method, outcome, (performance.now() - began) / 1000)
    try {
      const answer = await this.#send(asked, signal)
      end('ok')
      this.#watch?.bytes('sent', lengthOf(asked.body))
      return answer
    } catch (error) {
      end(error instanceof S3Refusal && error.status < 500 ? 'refused' : 'failed')
      throw error
    }
  }

  async #send(asked: S3Request, signal: AbortSignal): Promise<IncomingMessage> {
    const { body = [], method, idleMs = this.#limits.idleMs } = asked
    const signed = this.#signer.sign(asked)
    const headers = {
      ...asked.headers,
      ...signed.headers,
      ...((method === 'PUT' || method === 'POST') && { 'content-length': String(lengthOf(body)) }),
    }
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const { hostname, port } = this.#url
      const host = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port || undefined }
      const options = { agent: this.#agent, method, path: signed.path, headers, timeout: idleMs, ...host }
      const request = this.#request(options, (answer) => {
        signal.removeEventListener('abort', abort)
        resolve(answer)
      })
      const abort = () => request.destroy(new Error('The gateway stops.'))
      signal.addEventListener('abort', abort)
      if (signal.aborted) abort()
      request.on('timeout', () => request.destroy(new Error('The store does not answer.')))
      request.on('error', (error) => {
        signal.removeEventListener('abort', abort)
        reject(error)
      })
      for (const part of body) request.write(part)
      request.end()
    })
    answer.socket.setTimeout(0)
    // What breaks it later is an error of its reader.
    answer.on('error', () => {})
    const { statusCode: status = 0 } = answer
    if (status >= 200 && status < 300) return answer
    const { code, message } = await this.#refusal(answer, idleMs)
    const refusal = new S3Refusal(status, code, message)
    this.#signer.refused(refusal, signed)
    throw refusal
  }

  /** Sends a request and reads the answer. */
  async ask(asked: S3Request, signal: AbortSignal): Promise<{ readonly head: IncomingMessage; readonly body: Buffer }> {
    const head = await this.send(asked, signal)
    return { head, body: await this.#read(head, asked.idleMs) }
  }

  /** Asks for a document with this root. Throws S3Refusal for an error in its place. */
  async document(asked: S3Request, root: string, signal: AbortSignal): Promise<XmlNode> {
    const { body } = await this.ask(asked, signal)
    const found = await parseDocument(body)
    if (found.root === root) return found.node
    // A store that has begun to answer 200 reports an error so.
    throw new S3Refusal(500, childText(found.node, 'Code') ?? found.root, childText(found.node, 'Message') ?? '')
  }

  /**
   * The chunks of an answer, each with its own memory. Rejects when the store sends nothing for too long while a chunk
   * is awaited, and when the answer is cut.
   */
  async *chunks(answer: IncomingMessage, idleMs = this.#limits.idleMs): AsyncGenerator<Buffer> {
    let waiting = true
    const idle = setTimeout(() => {
      if (waiting) answer.destroy(new Error('The store has stopped sending.'))
    }, idleMs)
    try {
      for await (const chunk of answer) {
        waiting = false
        this.#watch?.bytes('received', (chunk as Buffer).length)
        yield chunk as Buffer
        waiting = true
        idle.refresh()
      }
    } finally {
      clearTimeout(idle)
    }
  }

  async #read(answer: IncomingMessage, idleMs?: number): Promise<Buffer> {
    const document = await readAtMost(this.chunks(answer, idleMs), MAX_DOCUMENT)
    if (document === undefined) throw new Error('The answer of the store is too long.')
    return document
  }

  async #refusal(answer: IncomingMessage, idleMs: number): Promise<{ code: string; message: string }> {
    try {
      const { node } = await parseDocument(await this.#read(answer, idleMs))
      return { code: childText(node, 'Code') ?? '', message: childText(node, 'Message') ?? '' }
    } catch {
      return { code: '', message: answer.statusMessage ?? '' }
    }
  }
}

function lengthOf(body: readonly Uint8Array[] = []): number {
  return body.reduce((sum, part) => sum + part.length, 0)
}
