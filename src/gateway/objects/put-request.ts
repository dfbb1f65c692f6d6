import type { ClientRequest, IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { S3Error } from '../../../common/errors/s3-error.js'
import { withinDeadline } from '../../../common/time.js'
import type { BrandNames } from '../brand.js'
import { httpFailure, MAX_TEXT_BYTES, type SmallAnswer } from '../calls/rest-call.js'
import { isTokenRefusal, nonsense, type Subject, TokenRefused, timedOut, translate } from '../errors.js'
import { lost } from '../transport/response.js'

/** Bytes buffered in this process before a writer has to wait. */
const MAX_BUFFERED_BYTES = 512 * 1024

/** One PUT by node:http: sends bytes under back-pressure and receives the answer, which may come at any time. */
export class PutRequest implements StreamedPut {
  readonly answer: Promise<SmallAnswer>
  readonly #request: ClientRequest
  readonly #idleMs: number
  #answered = false
  #failure: unknown
  // At most one writer waits at a time. A reaction on `answer` instead would add one reaction per drain for the whole
  // upload.
  #waiting: { resolve(): void; reject(error: unknown): void } | undefined

  constructor(request: ClientRequest, idleMs: number) {
    this.#request = request
    this.#idleMs = idleMs
    this.answer = new Promise((resolve, reject) => {
      let head: IncomingMessage | undefined
      const fail = (error: unknown) => {
        // A gateway that refuses early closes the connection early: its answer counts, not the failed write.
        if (head) return
        this.#failure ??= error
        reject(error)
        this.#waiting?.reject(error)
      }
      request.once('response', (response: IncomingMessage) => {
        head = response
        Promise.all([answerOf(response, idleMs), isEarly(request)]).then(([answer, early]) => {
          this.#answered = true
          resolve(early ? { ...answer, early } : answer)
          this.#waiting?.reject(new AnsweredEarly())
        })
      })
      request.on('error', fail)
      request.once('close', () => fail(lost()))
    })
    // Prevents an unhandled rejection when no writer awaits the answer.
    this.answer.catch(() => {})
  }

  get reused(): boolean {
    return this.#request.reusedSocket
  }

  get unsentBytes(): number {
    return this.#request.writableLength
  }

  goAhead(maxWaitMs: number): Promise<SmallAnswer | undefined> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const settle = (answer?: SmallAnswer) => {
        clearTimeout(timer)
        resolve(answer)
      }
      this.#request.once('continue', () => settle())
      // The gateway can read the head only once the connection is established.
      this.#request.once('socket', (socket) => {
        const begin = () => {
          timer = setTimeout(settle, maxWaitMs)
        }
        if (socket.connecting) socket.once('connect', begin)
        else begin()
      })
      this.answer.then(settle, (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      })
    })
  }

  write(chunk: Buffer, release?: () => void): void | Promise<void> {
    if (this.#answered) return Promise.reject(new AnsweredEarly())
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const free = this.#request.write(chunk, release)
    if (free || this.#request.writableLength < MAX_BUFFERED_BYTES) return undefined
    return this.#drained()
  }

  end(chunk?: Buffer): void {
    // `end(chunk)` as the first write would make Node encode a non-ASCII Content-Disposition differently
    // (lib/_http_outgoing.js, processHeader).
    if (chunk?.length) this.#request.write(chunk)
    this.#request.end()
  }

  answered(maxWaitMs: number, keepOpen = false): Promise<SmallAnswer> {
    return answeredInTime(this.answer, maxWaitMs, keepOpen ? undefined : (error) => this.#request.destroy(error))
  }

  /** Closes the connection, short of its Content-Length if the body is not complete. */
  destroy(): void {
    this.#request.destroy()
  }

  async #drained(): Promise<void> {
    const timer = setTimeout(() => this.#request.destroy(timedOut('an upload')), this.#idleMs)
    const drained = () => this.#waiting?.resolve()
    this.#request.once('drain', drained)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting = { resolve, reject }
      })
    } finally {
      this.#waiting = undefined
      this.#request.off('drain', drained)
      clearTimeout(timer)
    }
  }
}

/** The first 16 KiB of an answer, or those of its bytes that arrived. */
function answerOf(message: IncomingMessage, idleMs: number): Promise<SmallAnswer> {
  return new Promise((resolve) => {
    const { statusCode: status = 0, headers } = message
    const chunks: Buffer[] = []
    let left = MAX_TEXT_BYTES
    const timer = setTimeout(() => message.destroy(), idleMs)
    message.on('data', (chunk: Buffer) => {
      chunks.push(chunk.subarray(0, left))
      left -= Math.min(left, chunk.length)
      if (left === 0) message.destroy()
    })
    // An unhandled error would end the process.
    message.on('error', () => {})
    message.once('close', () => {
      clearTimeout(timer)
      resolve({ status, headers, text: Buffer.concat(chunks).toString('utf8') })
    })
  })
}

/** True if the whole body has not left yet, at the head of the answer. */
async function isEarly(request: ClientRequest): Promise<boolean> {
  // Node notices the end of a write to a TLS connection in a later turn of its loop.
  for (let turn = 0; turn < 2 && request.writableEnded && !request.writableFinished; turn++) await setImmediate()
  return !request.writableFinished
}

/** The gateway answered before it had the whole body; `PutRequest.answer` holds the answer. */
export class AnsweredEarly extends Error {}

/** A PUT that the connection has, or is receiving. */
export interface PutOnWire {
  /** True when the connection carried another request before: the gateway may have closed it in the meantime. */
  readonly reused: boolean
  /** Bytes that the system has not taken yet, and that are in memory therefore. */
  readonly unsentBytes: number
  /**
   * Waits for the answer, at most `maxWaitMs`. After that it closes the connection, unless `keepOpen` asks to keep it
   * for a later answer.
   */
  answered(maxWaitMs: number, keepOpen?: boolean): Promise<SmallAnswer>
  /** Closes the connection if there is no answer yet. */
  destroy(): void
}

/** A PUT whose body is sent while it arrives. */
export interface StreamedPut extends PutOnWire {
  /** The final answer. Rejects when the connection fails first. */
  readonly answer: Promise<SmallAnswer>
  /**
   * Waits after `Expect: 100-continue`. Resolves undefined when the gateway asks for the body or stays silent for
   * `maxWaitMs` (RFC 9110 section 10.1.1 says not to wait indefinitely); resolves to its answer otherwise. Rejects
   * when the connection fails.
   */
  goAhead(maxWaitMs: number): Promise<SmallAnswer | undefined>
  /**
   * Sends a chunk. A returned promise is back-pressure. It rejects when the connection fails, when the gateway answers
   * early, and when the gateway accepts no byte for the idle time.
   * @param release called once the chunk has left
   */
  write(chunk: Buffer, release?: () => void): void | Promise<void>
  /** Sends the last bytes and ends the request. */
  end(chunk?: Buffer): void
}

/** @param cut closes the connection; absent: it stays open for a later answer */
export async function answeredInTime(
  answer: Promise<SmallAnswer>,
  maxWaitMs: number,
  cut: ((error: Error) => void) | undefined,
): Promise<SmallAnswer> {
  if (!cut) return withinDeadline(answer, maxWaitMs, () => timedOut('the answer to an upload'))
  const timer = setTimeout(() => cut(timedOut('the answer to an upload')), maxWaitMs)
  try {
    return await answer
  } finally {
    clearTimeout(timer)
  }
}

/** Throws TokenRefused or S3Error for an answer that is no success. */
export function checkAnswer(answer: SmallAnswer, names: BrandNames, subject: Required<Subject>): SmallAnswer {
  if (answer.status >= 200 && answer.status < 300) {
    if (answer.early) throw early()
    if (/^\s*</.test(answer.text)) throw nonsense('answered an upload with a page')
    if (!/^\s*\{.*"status"\s*:\s*"fail"/s.test(answer.text)) return answer
  }
  const failure = httpFailure(names, answer)
  const error = refusalOf(translate(failure, subject), subject.key)
  throw isTokenRefusal(failure) ? new TokenRefused(error) : error
}

/** The error for a gateway that acknowledges what it cannot have. The outcome of the write is unknown. */
export function early(): S3Error {
  return nonsense('acknowledged an upload before it had received the whole body')
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
