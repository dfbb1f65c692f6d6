import { crc32 } from 'node:zlib'
import { childText, element } from '../../common/xml.js'
import { BodyError, type NewBody, nameAgain, type StoredBody } from './bodies.js'
import { bare, type S3Client, S3Refusal, unavailable } from './s3-client.js'

const MiB = 1024 * 1024

/** Largest body that is written by one request, bytes. */
const SINGLE_BYTES = 16 * MiB

/** All parts but the last have this size, which some stores demand, or one that makes do with 10,000 parts. */
const PART_BYTES = 8 * MiB
const MAX_PARTS = 10_000

function partBytesOf(size: number): number {
  return Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS))
}

/** The memory of bodies that are being written. */
export class Room {
  readonly #bytes: number
  readonly #patienceMs: number
  #free: number
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = []

  constructor(bytes: number, patienceMs: number) {
    this.#bytes = bytes
    this.#free = bytes
    this.#patienceMs = patienceMs
  }

  /**
   * Takes the memory that a body of this size needs: all of it, or two parts. Resolves with the function that gives it
   * back. Throws BodyError when there is none for too long.
   */
  async take(size: number): Promise<() => void> {
    const bytes = Math.min(size <= SINGLE_BYTES ? size : 2 * partBytesOf(size), this.#bytes)
    if (this.#waiting.length > 0 || bytes > this.#free) await this.#turn(bytes)
    else this.#free -= bytes
    let taken = true
    return () => {
      if (!taken) return
      taken = false
      this.#free += bytes
      this.#admit()
    }
  }

  #turn(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = {
        bytes,
        enter: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(new BodyError('unavailable', 'Too many bodies are being written to the store.'))
        this.#admit()
      }, this.#patienceMs)
      this.#waiting.push(waiting)
    })
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.bytes <= this.#free; next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#free -= next.bytes
      next.enter()
    }
  }
}

interface UploadContext {
  readonly client: S3Client
  readonly keyOf: (name: string) => string
  /** Names without a row, for the sweep. */
  readonly underway: Set<string>
  /** Removes what an attempt may have left, or an upload that was not completed, in the background. */
  readonly remove: (name: string, uploadId?: string) => void
}

/**
 * Writes a body. Nothing of it is in the store under its name before `finish`, which is called when all bytes have
 * arrived: it sends a small body by one request, or the last part of a large one.
 */
export class NewS3Body implements NewBody {
  readonly #context: UploadContext
  readonly #size: number
  readonly #giveRoom: () => void
  #name: string
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #bytes = 0
  #crc = 0
  #uploadId: string | undefined
  readonly #etags: string[] = []
  #running: Promise<void> | undefined
  #failure: unknown
  #abandoned = false
  /** True when a body may be in the store under the name. */
  #written = false

  /** @param giveRoom called when the bytes are no longer in memory */
  constructor(context: UploadContext, name: string, size: number, giveRoom: () => void) {
    this.#context = context
    this.#name = name
    this.#size = size
    this.#giveRoom = giveRoom
    context.underway.add(name)
  }

  write(chunk: Buffer): boolean {
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.length
    this.#bytes += chunk.length
    this.#crc = crc32(chunk, this.#crc)
    if (this.#bytes > this.#size) this.#failure ??= new Error('The body is longer than was said.')
    if (this.#failure !== undefined) return false
    if (this.#size <= SINGLE_BYTES) return true
    const partBytes = partBytesOf(this.#size)
    if (this.#waitingBytes < partBytes) return true
    this.#running ??= this.#sendParts(partBytes)
    return this.#waitingBytes < partBytes
  }

  async ready(): Promise<void> {
    await this.#running
    if (this.#failure !== undefined) throw this.#failure
  }

  async finish(): Promise<StoredBody> {
    await this.ready()
    if (this.#bytes !== this.#size) throw new Error('The body is shorter than was said.')
    try {
      const etag = await (this.#size <= SINGLE_BYTES ? this.#putWhole() : this.#complete())
      return { name: this.#name, size: this.#size, mark: markOf(etag, this.#crc) }
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
    const body = this.#waiting
    return client.patiently(async (attempt, signal) => {
      if (attempt > 0) this.#again()
      this.#written = true
      const { head } = await client.ask({ method: 'PUT', key: keyOf(this.#name), body }, signal)
      return bare(head.headers.etag) || this.#etagOf(signal)
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
    return client.patiently(async (attempt, signal) => {
      this.#written = true
      try {
        await client.document({ method: 'POST', key, query, body }, 'CompleteMultipartUploadResult', signal)
      } catch (error) {
        // An attempt before may have completed it.
        const isGone = error instanceof S3Refusal && error.status === 404
        if (!isGone || attempt === 0) throw error
      }
      return this.#etagOf(signal)
    })
  }

  /** Of the body in the store, which must have its size. */
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
    const key = keyOf(this.#name)
    if (this.#uploadId === undefined) {
      const begin = { method: 'POST', key, query: { uploads: '' } } as const
      const begun = await client.patiently((_, signal) =>
        client.document(begin, 'InitiateMultipartUploadResult', signal),
      )
      this.#uploadId = childText(begun, 'UploadId') ?? ''
    }
    const query = { partNumber: String(this.#etags.length + 1), uploadId: this.#uploadId }
    const { head } = await client.patiently((_, signal) => client.ask({ method: 'PUT', key, query, body }, signal))
    this.#etags.push(bare(head.headers.etag))
  }

  /** Takes exactly so many bytes from those that wait. */
  #take(bytes: number): Buffer[] {
    const taken: Buffer[] = []
    let missing = bytes
    let rest: Buffer[] = []
    for (const [index, chunk] of this.#waiting.entries()) {
      if (chunk.length > missing) {
        if (missing > 0) taken.push(chunk.subarray(0, missing))
        rest = [chunk.subarray(missing), ...this.#waiting.slice(index + 1)]
        break
      }
      taken.push(chunk)
      missing -= chunk.length
    }
    this.#waiting = rest
    this.#waitingBytes -= bytes
    return taken
  }

  #release(): void {
    this.#waiting = []
    this.#giveRoom()
  }
}

/** What the row of a body knows it by. */
function markOf(etag: string, crc: number): string {
  return `${etag} ${crc.toString(16).padStart(8, '0')}`
}

export function parseMark({ name, mark }: StoredBody): { readonly etag: string; readonly crc: number } {
  const [, etag, crc] = /^(\S+) ([0-9a-f]{8})$/.exec(mark ?? '') ?? []
  if (etag === undefined || crc === undefined)
    throw new BodyError('changed', `The body ${name} has no mark of a store.`)
  return { etag, crc: Number.parseInt(crc, 16) }
}
