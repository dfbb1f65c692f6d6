import { crc32 } from '@node-rs/crc32'
import { childText, element } from '../../common/xml.js'
import { Blocks } from '../http/body.js'
import { BodyError, type NewBody, nameAgain, type StoredBody } from './bodies.js'
import { bare, type S3Client } from './s3-client.js'
import { BodyMemory, type Hold } from './s3-memory.js'
import { S3Refusal, unavailable } from './s3-refusal.js'

const MiB = 1024 * 1024

/** Largest body that is written by one request, bytes. */
const MAX_SINGLE_BYTES = 16 * MiB

/** All parts but the last have this size, which some stores demand, or one that makes do with 10,000 parts. */
const PART_BYTES = 8 * MiB
const MAX_PARTS = 10_000

/** Chunks below this size are joined: each by itself would cost some 100 bytes more, and clients choose their size. */
const SMALL_BYTES = 16 * 1024

/** Longest silence of a store that joins parts, which takes some of them minutes, ms. */
const MAX_COMPLETE_MS = 5 * 60_000

function partBytesOf(size: number): number {
  return Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS))
}

/** The memory of uploads. Those that take several requests have their own, and leave that of all others alone. */
export class UploadMemory {
  readonly #whole: BodyMemory
  readonly #parts: BodyMemory

  constructor(bytes: number, maxWaitMs: number) {
    this.#whole = new BodyMemory(bytes / 2, maxWaitMs)
    this.#parts = new BodyMemory(bytes / 2, maxWaitMs)
  }

  /** Resolves with the memory for the first bytes of a body of this size. Throws BodyError. */
  begin(size: number): Promise<Hold> {
    return size <= MAX_SINGLE_BYTES ? this.#whole.begin(size) : this.#parts.begin(partBytesOf(size))
  }
}

interface UploadContext {
  readonly client: S3Client
  readonly keyOf: (name: string) => string
  /** Names without a row, for the sweep. */
  readonly underway: Set<string>
  /** Removes what an attempt may have left, or an upload that was not completed, in the background. */
  readonly remove: (name: string, uploadId?: string) => void
  /** Time in which a body that others may remove must get its row, ms; undefined when none may. */
  readonly freshMs: number | undefined
}

/**
 * Writes a body. Nothing of it is in the store under its name before `finish`, which is called when all bytes have
 * arrived: it sends a small body by one request, or the last part of a large one.
 */
export class NewS3Body implements NewBody {
  readonly #context: UploadContext
  readonly #size: number
  readonly #hold: Hold
  #name: string
  #waiting: Buffer[] = []
  /** What has arrived in small chunks behind those that wait. */
  #small = new Blocks()
  #waitingBytes = 0
  /** Bytes of the part that is being sent. */
  #sending = 0
  #bytes = 0
  #crc = 0
  #uploadId: string | undefined
  readonly #etags: string[] = []
  #running: Promise<void> | undefined
  #failure: unknown
  #abandoned = false
  /** Before the store has anything of it: the earliest time that it may state, ms since 1970. */
  #begun = 0
  /** True when a body may be in the store under the name. */
  #written = false

  /** @param hold ended with the body */
  constructor(context: UploadContext, name: string, size: number, hold: Hold) {
    this.#context = context
    this.#name = name
    this.#size = size
    this.#hold = hold
    context.underway.add(name)
  }

  write(chunk: Buffer): boolean {
    if (chunk.length < SMALL_BYTES) this.#small.add(chunk)
    else this.#all().push(chunk)
    this.#waitingBytes += chunk.length
    this.#bytes += chunk.length
    this.#crc = crc32(chunk, this.#crc)
    if (this.#bytes > this.#size) this.#failure ??= new Error('The body is longer than was said.')
    if (this.#failure !== undefined) return false
    const hasRoom = this.#hold.grow(this.#sending + this.#waitingBytes)
    if (this.#size <= MAX_SINGLE_BYTES) return hasRoom
    const partBytes = partBytesOf(this.#size)
    if (this.#waitingBytes < partBytes) return hasRoom
    this.#running ??= this.#sendParts(partBytes)
    return hasRoom && this.#waitingBytes < partBytes
  }

  async ready(): Promise<void> {
    // A part that is being sent gives room. Without one, there must be room for the next.
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
    const wanted = this.#size <= MAX_SINGLE_BYTES ? this.#size : partBytesOf(this.#size)
    if (!this.#hold.grow(this.#waitingBytes)) await this.#hold.reserve(Math.max(wanted, this.#waitingBytes))
  }

  async finish(): Promise<StoredBody> {
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
    if (this.#bytes !== this.#size) throw new Error('The body is shorter than was said.')
    try {
      const etag = await (this.#size <= MAX_SINGLE_BYTES ? this.#putWhole() : this.#complete())
      const body = { name: this.#name, size: this.#size, mark: markOf(etag, this.#crc) }
      const { freshMs } = this.#context
      return freshMs === undefined ? body : { ...body, until: this.#begun + freshMs }
    } catch (error) {
      throw unavailable(error)
    } finally {
      this.#release()
    }
  }

  async abandon(): Promise<void> {
    this.#abandoned = true
    await this.#running
    this.#release()
    const { underway, remove } = this.#context
    if (this.#uploadId !== undefined) remove(this.#name, this.#uploadId)
    // An attempt that timed out may have written it nevertheless.
    if (this.#written) remove(this.#name)
    else underway.delete(this.#name)
  }

  /** A body that did not become what was asked for is under a name that nothing names. */
  #again(): void {
    const { underway, remove } = this.#context
    remove(this.#name)
    this.#name = nameAgain(this.#name)
    underway.add(this.#name)
  }

  #putWhole(): Promise<string> {
    const { client, keyOf } = this.#context
    const body = this.#all()
    return client.retry(async (attempt, signal) => {
      if (attempt > 0) this.#again()
      this.#begun = Date.now()
      this.#written = true
      await client.ask({ method: 'PUT', key: keyOf(this.#name), body }, signal)
      return this.#etagOf(signal)
    })
  }

  async #complete(): Promise<string> {
    if (this.#waitingBytes > 0) await this.#sendPart(this.#waitingBytes)
    const { client, keyOf } = this.#context
    const key = keyOf(this.#name)
    const query = { uploadId: this.#uploadId as string }
    const parts = this.#etags.map((etag, index) => {
      return `<Part>${element('PartNumber', index + 1)}${element('ETag', `"${etag}"`)}</Part>`
    })
    const body = [Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)]
    return client.retry(async (attempt, signal) => {
      this.#written = true
      try {
        const asked = { method: 'POST', key, query, body, idleMs: MAX_COMPLETE_MS } as const
        await client.document(asked, 'CompleteMultipartUploadResult', signal)
      } catch (error) {
        // An attempt before may have completed it.
        const isGone = error instanceof S3Refusal && error.status === 404
        if (!isGone || attempt === 0) throw error
      }
      return this.#etagOf(signal)
    })
  }

  /**
   * The ETag of the body in the store, which must have its size. The store is asked for it even where a write was
   * answered with an ETag: that of a read may be another one, as with stores that encrypt or that join parts.
   */
  async #etagOf(signal: AbortSignal): Promise<string> {
    const { client, keyOf } = this.#context
    const { head } = await client.ask({ method: 'HEAD', key: keyOf(this.#name) }, signal)
    const etag = bare(head.headers.etag)
    if (head.headers['content-length'] === String(this.#size) && etag !== '') return etag
    throw new S3Refusal(500, 'BodyChanged', `It has a body of ${head.headers['content-length']} bytes.`)
  }

  async #sendParts(partBytes: number): Promise<void> {
    try {
      while (this.#waitingBytes >= partBytes && !this.#abandoned) await this.#sendPart(partBytes)
    } catch (error) {
      this.#failure ??= unavailable(error)
    } finally {
      this.#running = undefined
    }
  }

  async #sendPart(bytes: number): Promise<void> {
    const { client, keyOf } = this.#context
    const body = this.#take(bytes)
    this.#sending = bytes
    const key = keyOf(this.#name)
    if (this.#uploadId === undefined) {
      this.#begun = Date.now()
      const begin = { method: 'POST', key, query: { uploads: '' } } as const
      const begun = await client.retry((_, signal) => client.document(begin, 'InitiateMultipartUploadResult', signal))
      this.#uploadId = childText(begun, 'UploadId') ?? ''
    }
    const query = { partNumber: String(this.#etags.length + 1), uploadId: this.#uploadId }
    const { head } = await client.retry((_, signal) => client.ask({ method: 'PUT', key, query, body }, signal))
    this.#etags.push(bare(head.headers.etag))
    this.#sending = 0
    this.#hold.shrink(this.#waitingBytes)
  }

  /** Takes exactly so many bytes from those that wait. */
  #take(bytes: number): Buffer[] {
    const taken: Buffer[] = []
    const rest: Buffer[] = []
    let missing = bytes
    for (const chunk of this.#all()) {
      if (missing > 0) taken.push(chunk.subarray(0, missing))
      if (chunk.length > missing) rest.push(chunk.subarray(missing))
      missing = Math.max(0, missing - chunk.length)
    }
    this.#waiting = rest
    this.#waitingBytes -= bytes
    return taken
  }

  /** All bytes that wait, the small chunks joined. */
  #all(): Buffer[] {
    const small = this.#small.all()
    if (small.length > 0) this.#small = new Blocks()
    this.#waiting.push(...small)
    return this.#waiting
  }

  #release(): void {
    this.#waiting = []
    this.#small = new Blocks()
    this.#hold.end()
  }
}

/** What the row of a body knows it by. */
export function markOf(etag: string, crc: number): string {
  return `${etag} ${crc.toString(16).padStart(8, '0')}`
}

export function parseMark({ name, mark }: StoredBody): { readonly etag: string; readonly crc: number } {
  const [, etag, crc] = /^(\S+) ([0-9a-f]{8})$/.exec(mark ?? '') ?? []
  if (etag === undefined || crc === undefined)
    throw new BodyError('changed', `The body ${name} has no mark of a store.`)
  return { etag, crc: Number.parseInt(crc, 16) }
}
