import type { FileHandle } from 'node:fs/promises'
import { S3Error } from '../../common/errors/s3-error.js'
import { stagingFailed } from './errors.js'

/** Bytes buffered before a write: reads from sockets have 64 KiB or less. */
const BLOCK_BYTES = 256 * 1024

/** Most chunks in a buffer, which bounds memory for one-byte chunks. IOV_MAX is 1024 on Linux. */
const MAX_CHUNKS = 1024

/**
 * Appends to a file in large writes. Writes one block while it buffers the next; when that is full too, `write` returns
 * a promise. After a failure every call rejects with its error. The caller closes the handle.
 */
export class FileWriter {
  readonly #handle: FileHandle
  #gathered: Buffer[] = []
  #gatheredBytes = 0
  /** Never rejects. */
  #writing: Promise<void> | undefined
  #pressure: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined
  #size = 0

  constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** Bytes accepted so far, written or not. */
  get size(): number {
    return this.#size
  }

  write(chunk: Buffer): void | Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure.error)
    if (chunk.length === 0) return
    this.#gathered.push(chunk)
    this.#gatheredBytes += chunk.length
    this.#size += chunk.length
    if (this.#gatheredBytes < BLOCK_BYTES && this.#gathered.length < MAX_CHUNKS) return
    if (!this.#writing) return this.#start()
    this.#pressure ??= this.#writing.then(() => {
      this.#pressure = undefined
      this.#check()
      this.#start()
    })
    return this.#pressure
  }

  /** Hands all accepted bytes to the system; with `sync`, makes them durable. */
  async flush(sync: boolean): Promise<void> {
    await this.#pressure
    await this.#writing
    this.#check()
    if (this.#gatheredBytes > 0) this.#start()
    await this.#writing
    this.#check()
    if (sync) await this.#handle.sync()
  }

  /** Waits for a write in progress and drops the rest. Never rejects. */
  async abandon(): Promise<void> {
    this.#failure ??= { error: new Error('The file was abandoned') }
    this.#gathered = []
    this.#gatheredBytes = 0
    await this.#writing
  }

  #start(): void {
    const block = this.#gathered
    const bytes = this.#gatheredBytes
    this.#gathered = []
    this.#gatheredBytes = 0
    this.#writing = this.#writeAll(block, bytes)
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => {
        this.#writing = undefined
      })
  }

  /** writev may write less than requested, for instance when the disk fills up. */
  async #writeAll(block: Buffer[], bytes: number): Promise<void> {
    let rest = block
    let left = bytes
    for (;;) {
      const { bytesWritten } = await this.#handle.writev(rest)
      left -= bytesWritten
      if (left === 0) return
      rest = after(rest, bytesWritten)
    }
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
  }
}

/** The chunks without their first `count` bytes. */
function after(chunks: Buffer[], count: number): Buffer[] {
  let skip = count
  let first = 0
  for (let chunk = chunks[first]; chunk && skip >= chunk.length; chunk = chunks[++first]) skip -= chunk.length
  const [head, ...tail] = chunks.slice(first)
  return head ? [head.subarray(skip), ...tail] : []
}

const READ_BYTES = 512 * 1024

/**
 * Sends a file of `size` bytes to `sink` in reads of 512 KiB, each after the sink has taken the last one. The sink may
 * keep the chunks. Throws S3Error InternalError when the file has another length than `size`. Errors of the sink pass
 * unchanged.
 */
export async function readFile(
  handle: FileHandle,
  size: number,
  sink: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  // Checked first, so that a file of the wrong length sends nothing.
  const found = (await handle.stat()).size
  if (found !== size) throw wrongLength(size, found)
  let position = 0
  while (position < size) {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, size - position))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position).catch((error: unknown) => {
      throw stagingFailed(error)
    })
    if (bytesRead === 0) throw wrongLength(size, position)
    position += bytesRead
    const pressure = sink(buffer.subarray(0, bytesRead))
    if (pressure) await pressure
  }
}

function wrongLength(expected: number, found: number): S3Error {
  return new S3Error('InternalError', {
    message: 'The server has lost bytes of an upload. Send them again.',
    cause: new Error(`A staged file should hold ${expected} bytes and holds ${found}`),
  })
}
