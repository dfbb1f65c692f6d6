import busboy from 'busboy'
import type { LimitFunction } from 'p-limit'
import pLimit from 'p-limit'
import { Blocks } from '../../http/reply.js'
import { PlatformError } from '../errors.js'
import type { PlatformLimits } from '../limits.js'
import type { Field, UploadedFile } from './fields.js'

/** The parts of a multipart form. */
export interface Parts {
  readonly fields: readonly Field[]
  readonly uploads: ReadonlyMap<string, UploadedFile>
}

/**
 * Parses a multipart form as it arrives; its parts are kept in memory. A form is refused with 400 when it is malformed
 * or cut off, with 413 when a part is too large.
 */
export class MultipartParser {
  readonly #parser: busboy.Busboy
  readonly #fields: Field[] = []
  readonly #uploads = new Map<string, UploadedFile>()
  #failure: PlatformError | undefined

  /**
   * Throws PlatformError 400.
   * @param contentType with the boundary
   */
  constructor(contentType: string, { maxFieldBytes, maxFileBytes, maxFields }: PlatformLimits) {
    // The parser takes a part as large as its limit for one that is larger, and counts the end as a part.
    const limits = { fieldSize: maxFieldBytes + 1, fileSize: maxFileBytes + 1, parts: maxFields + 1 }
    try {
      this.#parser = busboy({ headers: { 'content-type': contentType }, defParamCharset: 'utf8', limits })
    } catch {
      throw malformed()
    }
    this.#parser
      .on('field', (name, value, { valueTruncated }) => this.#takeField(name, value, valueTruncated))
      .on('file', (name, stream, { filename }) => this.#takeFile(name, filename, stream))
      .on('partsLimit', () => this.#fail(new PlatformError(400, `A body has at most ${maxFields} fields.`)))
      .on('error', () => this.#fail(malformed()))
  }

  /** Returns the reason to refuse the form, once there is one. */
  write(chunk: Buffer): PlatformError | undefined {
    if (this.#failure === undefined) this.#parser.write(chunk)
    return this.#failure
  }

  /** Call it after the last chunk. Throws PlatformError. */
  end(): Promise<Parts> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        if (this.#failure === undefined) resolve({ fields: this.#fields, uploads: this.#uploads })
        else reject(this.#failure)
      }
      if (this.#failure === undefined) this.#parser.on('close', settle).end()
      else settle()
    })
  }

  /** @param name,value undefined when the part has no name, or a charset that the parser does not know */
  #takeField(name: string | undefined, value: string | undefined, truncated: boolean): void {
    if (name === undefined || value === undefined) this.#fail(malformed())
    else if (truncated) this.#fail(tooLarge(name))
    else this.#fields.push([name, value])
  }

  #takeFile(name: string | undefined, filename: string | undefined, stream: NodeJS.ReadableStream): void {
    stream.on('error', () => this.#fail(malformed()))
    if (name === undefined) {
      this.#fail(malformed())
      stream.resume()
      return
    }
    const content = new Blocks()
    stream.on('data', (chunk: Buffer) => content.add(chunk))
    stream.on('limit', () => this.#fail(tooLarge(name)))
    stream.on('end', () => {
      if (this.#uploads.has(name)) this.#fail(new PlatformError(400, `The field ${name} is given twice.`))
      this.#uploads.set(name, { name: filename ?? '', content: content.all() })
    })
  }

  #fail(error: PlatformError): void {
    this.#failure ??= error
  }
}

function malformed(): PlatformError {
  return new PlatformError(400, 'The body is not a multipart form.')
}

function tooLarge(name: string): PlatformError {
  return new PlatformError(413, `The part ${name} is too large.`)
}

const RETRY_SECONDS = 10

/**
 * Bounds the memory for files: so many are received and read at the same time, and one of each user, so that no user
 * makes all others wait. Some more wait, without a byte of their bodies; further ones are refused.
 */
export class Uploads {
  readonly #limits: PlatformLimits
  readonly #slots: LimitFunction
  readonly #ofUser = new Map<number, LimitFunction>()
  #waiting = 0

  constructor(limits: PlatformLimits) {
    this.#limits = limits
    this.#slots = pLimit(limits.uploadsAtOnce)
  }

  /**
   * Runs `job`, which receives a file, as soon as there is room for it. Throws PlatformError: 429 when the user has too
   * many uploads, 503 when all users have.
   * @param user id
   */
  async run<T>(user: number, job: () => Promise<T>): Promise<T> {
    const { uploadsOfUser, uploadsWaiting } = this.#limits
    const own = this.#ofUser.get(user) ?? pLimit(1)
    const retry = ['Retry-After', RETRY_SECONDS]
    if (own.activeCount + own.pendingCount >= uploadsOfUser) {
      throw new PlatformError(429, `You have ${uploadsOfUser} uploads already. Try again when one is done.`, retry)
    }
    if (this.#waiting >= uploadsWaiting) {
      throw new PlatformError(503, 'Too many uploads wait for others. Try again later.', retry)
    }
    this.#ofUser.set(user, own)
    this.#waiting++
    const begin = (): Promise<T> => {
      this.#waiting--
      return job()
    }
    try {
      return await own(() => this.#slots(begin))
    } finally {
      if (own.activeCount + own.pendingCount === 0) this.#ofUser.delete(user)
    }
  }
}
