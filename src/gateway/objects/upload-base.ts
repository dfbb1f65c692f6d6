import type { OutgoingHttpHeaders } from 'node:http'
import type { Upload, UploadResult, WriteOrder } from '../../api/gateway.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { Session } from '../account/session.js'
import type { BrandNames } from '../brand.js'
import { InDoubt, type InDoubtWrites, LATE_ANSWER_MS, leavesOpen, type WriteOutcome } from '../calls/in-doubt.js'
import { httpFailure, type SmallAnswer } from '../calls/rest-call.js'
import type { RestClient } from '../calls/rest-client.js'
import { isTokenRefusal, nonsense, type Subject, TokenRefused, translate, WriteRefused } from '../errors.js'
import { type PutOnWire, PutRequest } from './put-request.js'

/**
 * A gateway makes a large object durable before it answers: each of this many bytes adds one millisecond to its
 * timeout.
 */
const BYTES_PER_MS = 20 * 1024

export interface UploadTarget extends Required<Subject> {
  readonly path: string
  /** Bytes, exact. */
  readonly length: number
  /** Identifies the write. */
  readonly writeId: string
  /** True when the gateway carries out writes in the order of their fences: see docs/consistency.md. */
  ordered(): Promise<boolean>
  /** All headers except authorization, content-length and those of the order. Called once, before the first request. */
  headers(): Promise<Record<string, string>>
  /** Converts the gateway's success into the result of the upload. */
  stored(answer: SmallAnswer, logger: WriteOrder['logger']): Promise<UploadResult>
  /** Asks the gateway whether it holds the bytes of this upload. Resolves undefined when it does not. */
  look(): Promise<UploadResult | undefined>
  /** Called when the object may have changed, whatever the outcome. */
  objectMayHaveChanged(): void
}

interface UploadClient {
  readonly rest: RestClient
  readonly names: BrandNames
  readonly session: Session
  readonly inDoubt: InDoubtWrites
  readonly log: Logger
}

/** The steps that all uploads share: count bytes, open requests, read answers. */
export abstract class UploadBase implements Upload {
  protected received = 0
  protected put: PutOnWire | undefined
  /** True once `put` has the last bytes: the gateway may have received all of them. */
  protected complete = false
  /** True once the gateway may have all bytes of any request of this upload. */
  protected arrived = false
  protected readonly client: UploadClient
  protected readonly target: UploadTarget
  #headers: Record<string, string> | undefined
  #aborted = false

  constructor(client: UploadClient, target: UploadTarget) {
    this.client = client
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

  async commit(order: WriteOrder): Promise<UploadResult> {
    if (this.#aborted) throw aborted()
    if (this.received !== this.target.length) {
      this.abort()
      throw new S3Error('IncompleteBody')
    }
    const { target } = this
    const ordered = await target.ordered()
    if (!ordered) this.client.inDoubt.admit()
    this.complete = false
    try {
      return await target.stored(await this.finish(order, ordered), order.logger)
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
      target.objectMayHaveChanged()
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

  protected abstract take(chunk: Buffer): void | Promise<void>
  /**
   * Sends the remaining bytes. Implementations call `order.ensure` and set `complete` right before they send the last
   * bytes.
   */
  protected abstract finish(order: WriteOrder, ordered: boolean): Promise<SmallAnswer>

  /** Releases the buffered bytes. */
  protected abstract forget(): void

  protected async headers(): Promise<Record<string, string>> {
    this.#headers ??= await this.target.headers()
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
    const all = { ...headers, 'content-length': this.target.length }
    const put = new PutRequest(
      sendable(() => rest.put(this.target.path, all, fresh)),
      rest.idleMs,
    )
    this.put = put
    return put
  }

  /**
   * Waits for the answer to a complete body. Without an order, the connection stays open after the timeout, because a
   * late answer still decides the outcome.
   */
  protected answered(put: PutOnWire, ordered: boolean): Promise<SmallAnswer> {
    const { rest } = this.client
    return put.answered(rest.timeoutMs + this.target.length / BYTES_PER_MS, !ordered)
  }

  /** Throws TokenRefused or S3Error for an answer that is no success. */
  protected check(answer: SmallAnswer): SmallAnswer {
    if (answer.status >= 200 && answer.status < 300) {
      if (answer.early) throw early()
      if (/^\s*</.test(answer.text)) throw nonsense('answered an upload with a page')
      if (!/^\s*\{.*"status"\s*:\s*"fail"/s.test(answer.text)) return answer
    }
    const failure = httpFailure(this.client.names, answer)
    const error = refusalOf(translate(failure, this.target), this.target.key)
    throw isTokenRefusal(failure) ? new TokenRefused(error) : error
  }

  #findOutcome({ logger }: WriteOrder): Promise<WriteOutcome> {
    const { put, target, client } = this
    const late = async () => {
      try {
        if (!put) throw aborted()
        return await target.stored(this.check(await put.answered(LATE_ANSWER_MS)), logger)
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
      .findOutcome(late(), () => target.look(), doubt)
      .finally(() => {
        // The request has ended by now, unless the server is stopping.
        put?.destroy()
        target.objectMayHaveChanged()
      })
  }
}

/** The error for a gateway that acknowledges what it cannot have. The outcome of the write is unknown. */
export function early(): S3Error {
  return nonsense('acknowledged an upload before it had received the whole body')
}

/** Converts the error for a header that cannot be sent. */
export function sendable<T>(send: () => T): T {
  try {
    return send()
  } catch (cause) {
    // Control characters, and header names that are not tokens.
    throw new S3Error('InvalidArgument', { message: 'A header or metadata entry cannot be sent over HTTP.', cause })
  }
}

/**
 * MinIO RELEASE.2019-09-11 does not take a path with a line feed for one of the interface's, and parses the body as an
 * S3 document (cmd/web-router.go).
 */
function isLineFeedRefusal(error: S3Error, key: string): boolean {
  return error.code === 'MalformedXML' && key.includes('\n')
}

/**
 * Gateways that keep objects as files answer "no such key" when they cannot create the file, mostly because a part of
 * its path is an object.
 */
function refusalOf(error: S3Error, key: string): S3Error {
  if (isLineFeedRefusal(error, key)) {
    const message = 'The object gateway cannot hold this key: it has a line feed. Choose another key.'
    return new S3Error('InvalidArgument', { message, fields: { Key: key }, cause: error })
  }
  if (error.code !== 'NoSuchKey') return error
  const message =
    'The object gateway cannot hold this key. Part of its path may be the key of an object, or the key that of a folder.'
  return new S3Error('InvalidRequest', { message, fields: error.fields, cause: error })
}

export function aborted(): S3Error {
  return new S3Error('RequestTimeout', { message: 'The upload was aborted.' })
}
