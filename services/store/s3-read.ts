import type { IncomingMessage } from 'node:http'
import { crc32 } from '@node-rs/crc32'
import { BodyError, type Compared, type StoredBody } from './bodies.js'
import { bare, type S3Client } from './s3-client.js'
import { S3Refusal, unavailable } from './s3-refusal.js'
import { parseMark } from './s3-upload.js'

/** Times that a body is asked for again while nothing of it comes. */
const MAX_RESUMES = 8

/** Reads one body, of which the store may end an answer early. */
export class S3Reader {
  readonly #client: S3Client
  readonly #key: string
  readonly #body: StoredBody
  readonly #compared: Compared
  readonly #begun: IncomingMessage[] = []

  /** @param key of the body in the store */
  constructor(client: S3Client, key: string, body: StoredBody, compared: Compared) {
    this.#client = client
    this.#key = key
    this.#body = body
    this.#compared = compared
  }

  /** Resolves when the store has begun to answer. Throws BodyError. */
  async stream(first: number, last: number): Promise<AsyncIterable<Buffer>> {
    if (last < first) return none()
    const answer = await this.#begin(first, last)
    this.#begun.push(answer)
    return this.#chunks(first, last, answer)
  }

  close(): void {
    for (const answer of this.#begun) if (!answer.readableEnded) answer.destroy()
  }

  /** Gives the last chunk once all bytes have come and are those that were stored. */
  async *#chunks(first: number, last: number, begun: IncomingMessage): AsyncGenerator<Buffer> {
    const body = this.#body
    const isSummed = this.#compared !== 'nothing' && first === 0 && last === body.size - 1
    const { crc: expected } = parseMark(body)
    let answer = begun
    let position = first
    let crc = 0
    let held: Buffer | undefined
    for (let resumes = 0; ; resumes++) {
      const from = position
      let failure: unknown
      try {
        for await (const chunk of this.#client.chunks(answer)) {
          position += chunk.length
          if (position > last + 1) throw changed(body, 'is longer than its object')
          if (isSummed) crc = crc32(chunk, crc)
          if (held !== undefined) yield held
          held = chunk
        }
      } catch (error) {
        if (error instanceof BodyError) throw error
        failure = error
      }
      if (position > last) break
      // Bodies do not change: what is missing can be asked for again.
      if (position > from) resumes = 0
      if (resumes >= MAX_RESUMES) throw unavailable(failure ?? new Error('The store ends bodies before their ends.'))
      answer = await this.#begin(position, last)
    }
    if (isSummed && crc !== expected) throw changed(body, 'has another CRC-32 than its object')
    if (held !== undefined) yield held
  }

  /** The answer with exactly these bytes of exactly this body. */
  async #begin(first: number, last: number): Promise<IncomingMessage> {
    const body = this.#body
    const isWhole = first === 0 && last === body.size - 1
    const etag = this.#compared === 'mark' ? parseMark(body).etag : undefined
    const range = isWhole ? undefined : { range: `bytes=${first}-${last}` }
    const condition = etag === undefined ? undefined : { 'if-match': `"${etag}"` }
    const asked = { method: 'GET', key: this.#key, headers: { ...condition, ...range } } as const
    let answer: IncomingMessage
    try {
      answer = await this.#client.retry((_, signal) => this.#client.send(asked, signal))
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw unavailable(error)
      if (error.status === 404 && error.code !== 'NoSuchBucket') {
        throw new BodyError('lost', `The store has lost the body ${body.name}.`, { cause: error })
      }
      if (error.status === 412 || error.status === 416) throw changed(body, 'has another ETag or length', error)
      throw unavailable(error)
    }
    const { headers, statusCode } = answer
    const found = isWhole ? headers['content-length'] : headers['content-range']
    const right = isWhole ? `${body.size}` : `bytes ${first}-${last}/${body.size}`
    const isRight = found === right || (isWhole && found === undefined)
    const isMarked = etag === undefined || bare(headers.etag) === etag
    if (statusCode === (isWhole ? 200 : 206) && isRight && isMarked) return answer
    answer.destroy()
    const wanted = etag === undefined ? right : `${right} "${etag}"`
    throw changed(body, `is said to be ${statusCode} ${found} ${headers.etag}, not ${wanted}`)
  }
}

async function* none(): AsyncGenerator<Buffer> {}

function changed({ name }: StoredBody, how: string, cause?: unknown): BodyError {
  return new BodyError('changed', `The body ${name} ${how}.`, { cause })
}
