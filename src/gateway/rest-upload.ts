import type { ClientRequest, OutgoingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'
import type { Logger } from '../log.js'
import type { BrandNames } from './brand.js'
import {
  isLostConnection,
  isTokenRefusal,
  nonsense,
  type Subject,
  TokenRefused,
  translate,
  unavailable,
} from './errors.js'
import type { Upload, UploadResult } from './gateway.js'
import { AnsweredEarly, PutRequest } from './put-request.js'
import { type Answer, httpFailure, type RestClient } from './rest-client.js'
import type { Session } from './session.js'

/** Bodies up to this size are kept until commit and sent in one piece, so that they can be sent again, bytes. */
export const REPLAYABLE_BYTES = 256 * 1024
/** How long a gateway may think about `Expect: 100-continue` before the body goes out unasked, ms. */
const GO_AHEAD_MS = 1000
/** A gateway makes a large object durable before it answers: it gets a millisecond more for this many bytes. */
const BYTES_PER_MS = 20 * 1024

export interface UploadTarget extends Subject {
  readonly path: string
  /** Exact, bytes. */
  readonly length: number
  /** All headers but authorization and content-length. Asked once, before the first request. */
  headers(): Promise<Record<string, string>>
  /** Turns the gateway's success into what the caller wants to know. */
  stored(answer: Answer): Promise<UploadResult>
  /** Called when the object may have changed, whatever came of it. */
  settled(): void
}

export interface UploadTools {
  readonly rest: RestClient
  readonly names: BrandNames
  readonly session: Session
  readonly log: Logger
}

export function createUpload(tools: UploadTools, target: UploadTarget): Upload {
  return target.length <= REPLAYABLE_BYTES ? new SmallUpload(tools, target) : new StreamedUpload(tools, target)
}

/** What both kinds do alike: count bytes, open requests, read answers. */
abstract class UploadBase implements Upload {
  protected received = 0
  protected put: PutRequest | undefined
  protected readonly tools: UploadTools
  protected readonly target: UploadTarget
  #headers: Record<string, string> | undefined
  #aborted = false

  constructor(tools: UploadTools, target: UploadTarget) {
    this.tools = tools
    this.target = target
  }

  write(chunk: Buffer): void | Promise<void> {
    if (this.#aborted) return Promise.reject(aborted())
    this.received += chunk.length
    if (this.received > this.target.length) {
      this.abort()
      return Promise.reject(new S3Error('InvalidRequest', { message: 'The body is longer than its declared length.' }))
    }
    return this.take(chunk)
  }

  async commit(): Promise<UploadResult> {
    if (this.#aborted) throw aborted()
    if (this.received !== this.target.length) {
      this.abort()
      throw new S3Error('IncompleteBody')
    }
    try {
      return await this.target.stored(await this.finish())
    } catch (error) {
      this.put?.destroy()
      throw error
    } finally {
      this.target.settled()
    }
  }

  abort(): void {
    this.#aborted = true
    this.put?.destroy()
  }

  protected abstract take(chunk: Buffer): void | Promise<void>
  protected abstract finish(): Promise<Answer>

  protected async headers(): Promise<Record<string, string>> {
    this.#headers ??= await this.target.headers()
    return this.#headers
  }

  /** `fresh`: not on one of the kept connections, which may all have been closed by a gateway that was started anew. */
  protected async begin(token: string | undefined, extra: Record<string, string>, fresh = false): Promise<PutRequest> {
    const own = await this.headers()
    if (this.#aborted) throw aborted()
    const headers = {
      ...own,
      ...extra,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'content-length': this.target.length,
    }
    this.put = new PutRequest(this.#open(headers, fresh), this.tools.rest.idleMs)
    return this.put
  }

  #open(headers: OutgoingHttpHeaders, fresh: boolean): ClientRequest {
    try {
      return this.tools.rest.put(this.target.path, headers, fresh)
    } catch (cause) {
      // Node refuses control characters, and names that are no tokens.
      throw new S3Error('InvalidArgument', { message: 'A header or metadata entry cannot be sent over HTTP.', cause })
    }
  }

  /** Throws what an answer that is no success means: TokenRefused or S3Error. */
  protected check(answer: Answer): Answer {
    if (answer.status >= 200 && answer.status < 300) {
      if (/^\s*</.test(answer.text)) throw nonsense('answered an upload with a page')
      if (!/^\s*\{.*"status"\s*:\s*"fail"/s.test(answer.text)) return answer
    }
    const failure = httpFailure(this.tools.names, answer)
    const error = refusalOf(translate(failure, this.target, this.tools.log))
    throw isTokenRefusal(failure) ? new TokenRefused(error) : error
  }

  protected patienceMs(): number {
    return this.tools.rest.timeoutMs + this.target.length / BYTES_PER_MS
  }
}

/** A body that fits in memory: nothing is sent before commit, and then as often as it takes to get it through. */
class SmallUpload extends UploadBase {
  readonly #chunks: Buffer[] = []

  protected take(chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  protected finish(): Promise<Answer> {
    const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
    return this.tools.session.withLogin(async (token) => this.check(await this.#send(token, body)))
  }

  async #send(token: string | undefined, body: Buffer | undefined): Promise<Answer> {
    const put = await this.begin(token, {})
    put.end(body)
    try {
      return await put.answered(this.patienceMs())
    } catch (error) {
      if (!(put.reused && isLostConnection(error))) throw unavailable(error)
    }
    try {
      const again = await this.begin(token, {}, true)
      again.end(body)
      return await again.answered(this.patienceMs())
    } catch (error) {
      throw unavailable(error)
    }
  }
}

/** A body that passes through: the gateway is asked before the first byte, and the last bytes stay here until commit. */
class StreamedUpload extends UploadBase {
  #last: Buffer | undefined
  #token: string | undefined
  #open = false

  protected take(chunk: Buffer): void | Promise<void> {
    if (this.received === this.target.length) {
      this.#last = chunk
      return undefined
    }
    if (!this.#open || !this.put) return this.#connect().then(() => this.#send(chunk))
    return this.#send(chunk)
  }

  protected async finish(): Promise<Answer> {
    if (!this.#open) await this.#connect()
    const put = this.put
    if (!put) throw aborted()
    put.end(this.#last)
    try {
      return this.check(await put.answered(this.patienceMs()))
    } catch (error) {
      throw await this.#explain(error)
    }
  }

  #send(chunk: Buffer): void | Promise<void> {
    const waiting = this.put?.write(chunk)
    return waiting?.catch(async (error: unknown) => {
      const explained = await this.#explain(error)
      this.abort()
      throw explained
    })
  }

  async #connect(): Promise<void> {
    if (await this.#canExpect()) {
      await this.tools.session.withLogin(async (token) => {
        this.#token = token
        const answer = await this.#ask(token)
        if (!answer) return
        this.put?.destroy()
        this.check(answer)
        throw early()
      })
    } else {
      // The next best way to learn of an ended session in time.
      await this.tools.session.call({ method: 'web.ServerInfo', params: {}, repeatable: true })
      await this.tools.session.withLogin(async (token) => {
        this.#token = token
        await this.begin(token, {}, true)
      })
    }
    this.#open = true
  }

  /** Node sends the head of a request with `Expect` as UTF-8 and that of any other as latin-1 (`_storeHeader`), which would change text beyond ASCII. */
  async #canExpect(): Promise<boolean> {
    return Object.values(await this.headers()).every((value) => /^[\0-\x7f]*$/.test(value))
  }

  /** Resolves undefined when the body may go out. */
  async #ask(token: string | undefined): Promise<Answer | undefined> {
    const expect = { expect: '100-continue' }
    const put = await this.begin(token, expect)
    try {
      return await put.goAhead(GO_AHEAD_MS)
    } catch (error) {
      if (!(put.reused && isLostConnection(error))) throw unavailable(error)
    }
    try {
      return await (await this.begin(token, expect, true)).goAhead(GO_AHEAD_MS)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /** The S3Error for a failure after bytes have gone out: they cannot be sent again, so the client has to. */
  async #explain(error: unknown): Promise<S3Error> {
    if (error instanceof TokenRefused) return this.#expired(error)
    if (!(error instanceof AnsweredEarly)) return unavailable(error)
    try {
      this.check((await this.put?.answer) as Answer)
      return early()
    } catch (refusal) {
      return refusal instanceof TokenRefused ? this.#expired(refusal) : unavailable(refusal)
    }
  }

  #expired(refusal: TokenRefused): S3Error {
    if (this.#token === undefined) return refusal.final
    this.tools.session.forgetLogin(this.#token)
    return unavailable(undefined, 'The log-in at the object gateway ended during the upload. Try again.')
  }
}

/** Gateways of files answer "no such key" when they cannot make the file, most often because part of its path is an object. */
function refusalOf(error: S3Error): S3Error {
  if (error.code !== 'NoSuchKey') return error
  const message =
    'The object gateway cannot hold this key. Part of its path may be the key of an object, or the key that of a folder.'
  return new S3Error('InvalidRequest', { message, fields: error.fields, cause: error })
}

function early(): S3Error {
  return nonsense('took an upload for complete before it had all of it')
}

function aborted(): S3Error {
  return new S3Error('RequestTimeout', { message: 'The upload was given up.' })
}
