import { createHash } from 'node:crypto'
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { readAtMost } from '../../common/bounded-text.js'
import {
  ALGORITHM,
  canonicalQuery,
  canonicalRequest,
  credentialScope,
  formatTimestamp,
  signature,
  signingKey,
  stringToSign,
  uriEncode,
} from '../../common/sigv4.js'
import { childText, parseDocument, type XmlNode } from '../../common/xml.js'
import { BodyError } from './bodies.js'
import type { S3Credentials, S3Location } from './s3-location.js'
import type { BodyRequestOutcome, BodyStoreWatch } from './store-metrics.js'

/** What a store answers in place of what it was asked for. */
export class S3Refusal extends Error {
  override readonly name = 'S3Refusal'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(`The store answered ${status} ${code}: ${message}`)
    this.status = status
    this.code = code
  }
}

/** Codes of refusals that say nothing about the request. */
const PASSING = new Set(['RequestTimeout', 'SlowDown', 'BadDigest', 'XAmzContentSHA256Mismatch', 'OperationAborted'])

/** Codes of Node for a host that does not exist, and for certificates that do not hold. */
const LASTING = /^(ENOTFOUND$|CERT_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|HOSTNAME_MISMATCH)/

/** True when the same request may have another outcome later: the store, or the way to it, has failed. */
export function isPassing(error: unknown): boolean {
  if (error instanceof S3Refusal) {
    const { status, code } = error
    return (status >= 500 && status !== 501) || status === 429 || status === 408 || PASSING.has(code)
  }
  // Of credentials that are not there.
  if (error instanceof RangeError) return false
  return !LASTING.test((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

export function unavailable(cause: unknown): BodyError {
  if (cause instanceof BodyError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  const kind = isPassing(cause) ? 'unavailable' : 'refused'
  return new BodyError(kind, `The store of bodies cannot be used now: ${message}`, { cause })
}

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
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2000

/** Sends requests to one bucket. Bodies are signed with their SHA-256, which the store compares. */
export class S3Client {
  readonly #location: S3Location
  readonly #credentials: () => S3Credentials
  readonly #limits: S3Limits
  readonly #watch: BodyStoreWatch | undefined
  readonly #agent: HttpAgent | HttpsAgent
  readonly #request: typeof httpRequest
  readonly #url: URL
  readonly #underway = new Set<AbortController>()
  #closed = false
  #current: S3Credentials
  /** By what the request was signed that was refused. Not a member of the refusal, which is logged. */
  readonly #signedBy = new WeakMap<S3Refusal, S3Credentials>()
  #key: { readonly date: string; readonly key: Buffer } | undefined

  /** @param credentials asked again after the store has refused those it gave */
  constructor(location: S3Location, credentials: () => S3Credentials, limits: S3Limits, watch?: BodyStoreWatch) {
    this.#watch = watch
    this.#location = location
    this.#credentials = credentials
    this.#limits = limits
    this.#url = new URL(location.endpoint)
    const isPlain = this.#url.protocol === 'http:'
    this.#request = isPlain ? httpRequest : httpsRequest
    this.#agent = new (isPlain ? HttpAgent : HttpsAgent)({ keepAlive: true })
    this.#current = credentials()
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
    // Not AbortSignal.any: Node 20 may collect the signals that it joins, which then never fire.
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
          const pause = Math.min(FIRST_PAUSE_MS * 2 ** n, MAX_PAUSE_MS) * (0.5 + Math.random() / 2)
          // An attempt that took longer than `maxWaitMs` has another one, too.
          const isLast = n > 0 && performance.now() + pause > end
          if (signal.aborted || !(this.#renewed(error) || (isPassing(error) && !isLast))) throw error
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
    const credentials = this.#current
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const { hostname, port } = this.#url
      const host = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port || undefined }
      const { path, headers } = this.#signed(asked, credentials)
      const options = { agent: this.#agent, method, path, headers, timeout: idleMs, ...host }
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
    this.#signedBy.set(refusal, credentials)
    throw refusal
  }

  /** As `send`, and reads the answer. */
  async ask(asked: S3Request, signal: AbortSignal): Promise<{ readonly head: IncomingMessage; readonly body: Buffer }> {
    const head = await this.send(asked, signal)
    return { head, body: await this.#read(head, asked.idleMs) }
  }

  /** As `ask`, for an answer that is a document with this root. Throws S3Refusal for an error in its place. */
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

  /** True when there are other credentials than those by which the refused request was signed. */
  #renewed(error: unknown): boolean {
    if (!(error instanceof S3Refusal) || (error.status !== 403 && error.status !== 400)) return false
    const signedBy = this.#signedBy.get(error)
    if (signedBy === undefined) return false
    // Of many requests that are refused at once, the first one finds the new credentials.
    if (isSame(signedBy, this.#current)) this.#renew()
    return !isSame(signedBy, this.#current)
  }

  #renew(): void {
    let now: S3Credentials
    try {
      now = this.#credentials()
    } catch {
      // A program that writes the file anew may have removed it for a moment.
      return
    }
    if (isSame(now, this.#current)) return
    this.#current = now
    this.#key = undefined
  }

  #signed(
    { method, key, query = {}, headers = {}, body = [] }: S3Request,
    { accessKeyId, secretAccessKey, sessionToken }: S3Credentials,
  ): { path: string; headers: Record<string, string> } {
    const { region, bucket } = this.#location
    const timestamp = formatTimestamp(new Date())
    const date = timestamp.slice(0, 8)
    if (this.#key?.date !== date) this.#key = { date, key: signingKey(secretAccessKey, date, region, 's3') }
    const digest = createHash('sha256')
    for (const part of body) digest.update(part)
    const payloadHash = digest.digest('hex')
    const signedHeaders = {
      host: this.#url.host,
      'x-amz-content-sha256': payloadHash,
      'x-amz-date': timestamp,
      ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
    }
    const path = `/${bucket}/${uriEncode(key, true)}`.replace(/\/$/, '')
    const asked = Object.entries(query).map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`)
    const inOrder = canonicalQuery(asked.join('&'))
    const names = Object.keys(signedHeaders).sort().join(';')
    const parts = {
      method,
      path,
      query: inOrder,
      headers: Object.entries(signedHeaders),
      signedHeaders: names,
      payloadHash,
    }
    const scope = credentialScope(date, region, 's3')
    const signed = signature(this.#key.key, stringToSign(ALGORITHM, timestamp, scope, canonicalRequest(parts)))
    return {
      path: inOrder === '' ? path : `${path}?${inOrder}`,
      headers: {
        ...headers,
        ...signedHeaders,
        authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signed}`,
        ...((method === 'PUT' || method === 'POST') && { 'content-length': String(lengthOf(body)) }),
      },
    }
  }
}

function lengthOf(body: readonly Uint8Array[] = []): number {
  return body.reduce((sum, part) => sum + part.length, 0)
}

function isSame(one: S3Credentials, other: S3Credentials): boolean {
  return (
    one.accessKeyId === other.accessKeyId &&
    one.secretAccessKey === other.secretAccessKey &&
    one.sessionToken === other.sessionToken
  )
}
