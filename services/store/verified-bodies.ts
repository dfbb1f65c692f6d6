import type { ServicesLog } from '../log.js'
import {
  type Bodies,
  BodyError,
  generationOf,
  type NewBody,
  type OpenBody,
  type StoredBody,
  type WithRow,
} from './bodies.js'
import { bytesOfRow, chunkBytesOf, placeOfSum, type SumRows, SumWriter, sumOf } from './chunk-sums.js'

/** Keeps the checksums of bodies by their generation, which has the same bytes under whatever names. */
export interface KeptSums {
  /** A row of the checksums of a body; undefined when none are kept. */
  row(generation: string, n: number): Promise<Uint8Array | undefined>
  /** Keeps those of a body that has none, if a row of the index still names it. */
  adopt(body: StoredBody, sums: SumRows): Promise<void>
}

/**
 * Bodies of which each chunk is compared with its checksum before any byte of it is given. A body that an earlier
 * version has stored has no checksums: one in an S3 store that answers another mark for it is read to the end once, to
 * compare it with the CRC-32 in its mark, and then has them; otherwise `verifyBodies` adds them.
 */
export class VerifiedBodies implements Bodies {
  readonly #inner: Bodies
  readonly #kept: KeptSums
  readonly #log: ServicesLog
  readonly #found: (error: BodyError) => void
  /** Adoptions that are under way, by the name of the body. */
  readonly #adoptions = new Map<string, Promise<SumRows>>()

  /** @param found called with each error that says that a body is lost or damaged */
  constructor(inner: Bodies, kept: KeptSums, log: ServicesLog, found: (error: BodyError) => void = () => {}) {
    this.#inner = inner
    this.#kept = kept
    this.#log = log
    this.#found = found
  }

  async create(name: string, size: number): Promise<NewBody> {
    return new SummedBody(await this.#inner.create(name, size), size)
  }

  committed(body: StoredBody): void {
    this.#inner.committed(body)
  }

  leave(body: StoredBody): void {
    this.#inner.leave(body)
  }

  async open(body: StoredBody): Promise<OpenBody | undefined> {
    const generation = generationOf(body.name)
    const first = body.size === 0 ? undefined : await this.#kept.row(generation, 0)
    const open = await this.#inner.open(body, first === undefined ? 'mark' : 'nothing')
    if (open === undefined) return undefined
    const read = (n: number) => this.#kept.row(generation, n)
    if (first !== undefined) {
      try {
        return this.#verified(open, new SumReader(body, read, first))
      } catch (error) {
        // A caller who gets no body does not close it.
        await open.close()
        throw this.#noted(error)
      }
    }
    return {
      ...fdOf(open),
      stream: (first, last) => this.#unverified(body, open, first, last),
      close: () => open.close(),
    }
  }

  discard(body: StoredBody): void {
    this.#inner.discard(body)
  }

  sweep(withRow: WithRow): Promise<number> {
    return this.#inner.sweep(withRow)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #verified(open: OpenBody, sums: SumReader): OpenBody {
    return {
      ...fdOf(open),
      check: {
        chunkBytes: sums.chunkBytes,
        verify: (position, bytes) => this.#counting(() => sums.verify(position, bytes)),
      },
      stream: (first, last) => this.#stream(open, sums, first, last),
      close: () => open.close(),
    }
  }

  /** The promise rejects when the first chunk is not as it was stored, too. */
  async #stream(open: OpenBody, sums: SumReader, first: number, last: number): Promise<AsyncIterable<Buffer>> {
    if (last < first) return open.stream(first, last)
    const chunks = verified(open, sums, first, last)
    const begun = await this.#counting(() => chunks.next())
    return this.#goOn(begun, chunks)
  }

  async *#goOn(begun: IteratorResult<Buffer, void>, chunks: AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer> {
    try {
      for (let next = begun; !next.done; next = await this.#counting(() => chunks.next())) yield next.value
    } finally {
      await chunks.return()
    }
  }

  /** A body without checksums. */
  async #unverified(body: StoredBody, open: OpenBody, first: number, last: number): Promise<AsyncIterable<Buffer>> {
    try {
      return await open.stream(first, last)
    } catch (error) {
      if (!(error instanceof BodyError)) throw error
      if (error.kind !== 'changed' || body.mark === null) throw this.#noted(error)
      const rows = await this.#adopted(body)
      const again = await this.#inner.open(body, 'nothing')
      if (again === undefined) throw error
      try {
        const chunks = await this.#stream(again, new SumReader(body, async (n) => rows[n], rows[0]), first, last)
        return closing(chunks, again)
      } catch (failure) {
        await again.close()
        throw failure
      }
    }
  }

  /** The checksums of a body whose store answers another mark than it did, and the size and CRC-32 that it had. */
  #adopted(body: StoredBody): Promise<SumRows> {
    const running = this.#adoptions.get(body.name)
    if (running !== undefined) return running
    const adoption = this.#adopt(body).finally(() => this.#adoptions.delete(body.name))
    this.#adoptions.set(body.name, adoption)
    return adoption
  }

  async #adopt(body: StoredBody): Promise<SumRows> {
    const sums = new SumWriter(body.size)
    const open = await this.#inner.open(body, 'crc')
    if (open === undefined) throw new BodyError('lost', `The body ${body.name} is lost.`)
    try {
      await this.#counting(async () => {
        for await (const chunk of await open.stream(0, body.size - 1)) sums.update(chunk)
      })
    } finally {
      await open.close()
    }
    const rows = sums.finish()
    await this.#kept.adopt(body, rows)
    this.#log.info({ name: body.name }, 'The store of bodies has another mark for a body, whose bytes are the same.')
    return rows
  }

  async #counting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.#noted(error)
    }
  }

  #noted(error: unknown): unknown {
    if (error instanceof BodyError) this.#found(error)
    return error
  }
}

/** Classes have it as an accessor, which a spread of them leaves out. */
function fdOf({ fd }: OpenBody): Pick<OpenBody, 'fd'> {
  return fd === undefined ? {} : { fd }
}

/** Closes what the chunks come from after the last of them. */
async function* closing(chunks: AsyncIterable<Buffer>, open: OpenBody): AsyncGenerator<Buffer> {
  try {
    yield* chunks
  } finally {
    await open.close()
  }
}

/** Computes the checksums of a body that is being written. */
class SummedBody implements NewBody {
  readonly #body: NewBody
  readonly #sums: SumWriter

  constructor(body: NewBody, size: number) {
    this.#body = body
    this.#sums = new SumWriter(size)
  }

  write(chunk: Buffer, used?: () => void): boolean {
    this.#sums.update(chunk)
    return this.#body.write(chunk, used)
  }

  ready(): Promise<void> {
    return this.#body.ready()
  }

  async finish(): Promise<StoredBody> {
    const sums = this.#sums.finish()
    return { ...(await this.#body.finish()), sums }
  }

  abandon(): Promise<void> {
    return this.#body.abandon()
  }
}

/** Compares the chunks of one body. Has one row of checksums at a time in memory. */
class SumReader {
  readonly body: StoredBody
  readonly chunkBytes: number
  readonly #read: (n: number) => Promise<Uint8Array | undefined>
  #n = 0
  #row: Buffer

  constructor(body: StoredBody, read: (n: number) => Promise<Uint8Array | undefined>, first: Uint8Array | undefined) {
    this.body = body
    this.chunkBytes = chunkBytesOf(body.size)
    this.#read = read
    this.#row = this.#whole(0, first)
  }

  /** Throws BodyError unless these are the bytes of one or more whole chunks from this position on. */
  async verify(position: number, bytes: Uint8Array): Promise<void> {
    const end = position + bytes.length
    const isWhole = position % this.chunkBytes === 0 && (end % this.chunkBytes === 0 || end === this.body.size)
    if (!isWhole || bytes.length === 0) throw changed(this.body, 'is shorter than its object')
    for (let at = 0; at < bytes.length; at += this.chunkBytes)
      await this.compare(position + at, sumOf(bytes.subarray(at, at + this.chunkBytes)))
  }

  /** Throws BodyError unless the chunk from this position on has this checksum. */
  async compare(position: number, sum: number): Promise<void> {
    const { row, at } = placeOfSum(this.body.size, position)
    if (row !== this.#n) {
      this.#row = this.#whole(row, await this.#read(row))
      this.#n = row
    }
    if (this.#row.readUInt32LE(at) === sum) return
    throw changed(this.body, `has other bytes than were stored from byte ${position} on`)
  }

  #whole(n: number, row: Uint8Array | undefined): Buffer {
    if (row?.length !== bytesOfRow(this.body.size, n)) throw changed(this.body, 'has lost its checksums')
    return Buffer.from(row.buffer, row.byteOffset, row.byteLength)
  }
}

/** The bytes from `first` to `last`; those of a chunk come once all of it has, and has its checksum. */
async function* verified(
  open: OpenBody,
  sums: SumReader,
  first: number,
  last: number,
): AsyncGenerator<Buffer, void, undefined> {
  const { body, chunkBytes } = sums
  const from = first - (first % chunkBytes)
  const to = Math.min(body.size, last - (last % chunkBytes) + chunkBytes)
  let position = from
  let held: Buffer[] = []
  let heldBytes = 0
  let sum = 0
  for await (const chunk of await open.stream(from, to - 1)) {
    for (let rest = chunk; rest.length > 0; ) {
      const bytes = Math.min(chunkBytes, body.size - position)
      if (bytes === 0) throw changed(body, 'is longer than its object')
      const piece = rest.length > bytes - heldBytes ? rest.subarray(0, bytes - heldBytes) : rest
      rest = rest.subarray(piece.length)
      sum = sumOf(piece, sum)
      held.push(piece)
      heldBytes += piece.length
      if (heldBytes < bytes) continue
      await sums.compare(position, sum)
      for (const one of held) {
        const wanted = one.subarray(Math.max(0, first - position), Math.max(0, last + 1 - position))
        position += one.length
        if (wanted.length > 0) yield wanted
      }
      held = []
      heldBytes = 0
      sum = 0
    }
  }
  if (position <= last) throw changed(body, 'is shorter than its object')
}

function changed({ name }: StoredBody, how: string): BodyError {
  return new BodyError('changed', `The body ${name} ${how}.`)
}
