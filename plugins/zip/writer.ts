import { once } from 'node:events'
import { crc32, createDeflateRaw } from 'node:zlib'

// Archives in the format of https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, as a stream: nothing is known
// of an entry before its bytes have passed, so its sizes and checksum follow it. No package writes it: client-zip 2.5
// states no ZIP64 for more than 65,535 entries, yazl 3.3 takes time in the square of their number, and both compute the
// checksum in JavaScript, which takes ten times as long as Node.js does (1.3 GB in 5.8 s in place of 0.5 s).

/** Takes the next bytes of the archive; the next call comes when it has resolved, and the bytes are free then. */
export type Write = (bytes: Buffer) => Promise<void>

/** Passes the bytes of an object to a sink, one call after the other. */
export type Content = (sink: Write) => Promise<void>

interface ZipEntry {
  /** Ends in `/` for a folder. */
  readonly path: string
  /** ms since 1970. */
  readonly modified: number
  /** Expected bytes; 0 for a folder. */
  readonly size: number
}

/** From so many on, a number is stated in the fields of ZIP64. */
const MAX_32 = 0xffff_ffff
const MAX_16 = 0xffff

/** Checksum and sizes follow the entry. */
const FOLLOWED = 0x0008
/** The path is in UTF-8. */
const UTF_8 = 0x0800
const STORED = 0
const DEFLATED = 8
/** Of the format that the entries need, and of the programs that made them: Unix, for the rights of files. */
const VERSION = 20
const VERSION_64 = 45
const MADE_BY = (3 << 8) | VERSION_64
const FILE_RIGHTS = 0o100644
const FOLDER_RIGHTS = 0o040755
/** The attribute of folders on Windows. */
const WINDOWS_FOLDER = 0x10

/** Bytes by which deflated content may be longer than its source: five for each block that it stores, and some. */
const deflatedAtMost = (size: number) => size + Math.ceil(size / 16_000) * 5 + 64

/** Bytes of the central directory that are kept together, and of small pieces that are written together. */
const CHUNK = 64 * 1024
/** From so many bytes on, a piece is written as it is. */
const WHOLE = 16 * 1024

export class ZipWriter {
  readonly #write: Write
  readonly #level: number
  /** Bytes that were written. */
  #offset = 0
  #entries = 0
  /** The central directory, which ends the archive: some 60 bytes and the path for each entry. */
  readonly #directory: Buffer[] = []
  #chunk = Buffer.alloc(0)
  #filled = 0
  /** Small pieces that wait for others. */
  readonly #waiting = Buffer.alloc(CHUNK)
  #waits = 0

  /** @param level of compression, 0 (none) to 9 */
  constructor(write: Write, level = 0) {
    this.#write = write
    this.#level = level
  }

  /**
   * Adds an entry. Throws Error if the content has another size than was expected: the archive cannot go on then.
   * @param content absent for an entry without bytes
   */
  async add({ path, modified, size }: ZipEntry, content?: Content): Promise<void> {
    const name = Buffer.from(path)
    if (name.length > MAX_16) throw new Error('the path of an entry is longer than the format allows')
    const method = content && this.#level > 0 ? DEFLATED : STORED
    const big = (method === DEFLATED ? deflatedAtMost(size) : size) >= MAX_32
    const offset = this.#offset
    const head = { method, big, modified, name, flags: content ? UTF_8 | FOLLOWED : UTF_8 }
    await this.#emit(localHeader(head))
    const start = this.#offset
    const sums = { crc: 0, size: 0 }
    const count: Write = async (bytes) => {
      sums.crc = crc32(bytes, sums.crc)
      sums.size += bytes.length
      if (sums.size > size) throw new Error(`${path} is longer than its ${size} bytes`)
    }
    if (content && method === DEFLATED) await this.#deflate(content, count)
    else
      await content?.(async (bytes) => {
        await count(bytes)
        await this.#emit(bytes)
      })
    if (sums.size !== size) throw new Error(`${path} ended after ${sums.size} of its ${size} bytes`)
    const facts = { ...head, ...sums, packed: this.#offset - start, offset }
    if (content) await this.#emit(descriptor(facts))
    this.#keep(directoryRecord(facts))
    this.#entries++
  }

  /** Ends the archive with its directory. */
  async end(): Promise<void> {
    const offset = this.#offset
    this.#directory.push(this.#chunk.subarray(0, this.#filled))
    for (const chunk of this.#directory) if (chunk.length > 0) await this.#emit(chunk)
    await this.#emit(endRecords({ entries: this.#entries, size: this.#offset - offset, offset }))
    await this.#flush()
  }

  async #emit(bytes: Buffer): Promise<void> {
    this.#offset += bytes.length
    const isSmall = bytes.length < WHOLE
    if (!isSmall || this.#waits + bytes.length > CHUNK) await this.#flush()
    if (isSmall) this.#waits += bytes.copy(this.#waiting, this.#waits)
    else await this.#write(bytes)
  }

  async #flush(): Promise<void> {
    if (this.#waits === 0) return
    const bytes = this.#waiting.subarray(0, this.#waits)
    await this.#write(bytes)
    this.#waits = 0
  }

  /** Compresses in the threads of Node.js, with no more in memory than two chunks. */
  async #deflate(content: Content, count: Write): Promise<void> {
    const deflate = createDeflateRaw({ level: this.#level })
    const passed = (async () => {
      for await (const bytes of deflate) await this.#emit(bytes as Buffer)
    })()
    // Reported by the `await` below, which may come after it.
    passed.catch(() => {})
    try {
      await content(async (bytes) => {
        await count(bytes)
        // The bytes are free when this resolves: the compressor gets a copy.
        if (!deflate.write(Buffer.from(bytes))) await Promise.race([once(deflate, 'drain'), passed])
      })
      deflate.end()
      await passed
    } finally {
      deflate.destroy()
    }
  }

  #keep(record: Buffer): void {
    if (this.#filled + record.length > this.#chunk.length) {
      this.#directory.push(this.#chunk.subarray(0, this.#filled))
      this.#chunk = Buffer.alloc(Math.max(CHUNK, record.length))
      this.#filled = 0
    }
    this.#filled += record.copy(this.#chunk, this.#filled)
  }
}

interface Head {
  readonly flags: number
  readonly method: number
  /** Its sizes have eight bytes. */
  readonly big: boolean
  readonly modified: number
  readonly name: Buffer
}

interface Facts extends Head {
  readonly crc: number
  readonly size: number
  /** Bytes that the archive has of it. */
  readonly packed: number
  /** Of its local header. */
  readonly offset: number
}

function localHeader({ flags, method, big, modified, name }: Head): Buffer {
  const extra = Buffer.concat([...(big ? [zip64([0, 0])] : []), unixTime(modified)])
  const fixed = Buffer.alloc(30)
  fixed.writeUInt32LE(0x04034b50, 0)
  fixed.writeUInt16LE(big ? VERSION_64 : VERSION, 4)
  fixed.writeUInt16LE(flags, 6)
  fixed.writeUInt16LE(method, 8)
  fixed.writeUInt32LE(dosTime(modified), 10)
  // The checksum follows the content, and so do the sizes.
  fixed.writeUInt32LE(big ? MAX_32 : 0, 18)
  fixed.writeUInt32LE(big ? MAX_32 : 0, 22)
  fixed.writeUInt16LE(name.length, 26)
  fixed.writeUInt16LE(extra.length, 28)
  return Buffer.concat([fixed, name, extra])
}

function descriptor({ big, crc, size, packed }: Facts): Buffer {
  const bytes = Buffer.alloc(big ? 24 : 16)
  bytes.writeUInt32LE(0x08074b50, 0)
  bytes.writeUInt32LE(crc, 4)
  if (big) {
    bytes.writeBigUInt64LE(BigInt(packed), 8)
    bytes.writeBigUInt64LE(BigInt(size), 16)
  } else {
    bytes.writeUInt32LE(packed, 8)
    bytes.writeUInt32LE(size, 12)
  }
  return bytes
}

function directoryRecord({ flags, method, big, modified, name, crc, size, packed, offset }: Facts): Buffer {
  const isFolder = name.at(-1) === 0x2f
  const far = offset >= MAX_32
  const wide = [...(big ? [size, packed] : []), ...(far ? [offset] : [])]
  const extra = Buffer.concat([...(wide.length > 0 ? [zip64(wide)] : []), unixTime(modified)])
  const fixed = Buffer.alloc(46)
  fixed.writeUInt32LE(0x02014b50, 0)
  fixed.writeUInt16LE(MADE_BY, 4)
  fixed.writeUInt16LE(big || far ? VERSION_64 : VERSION, 6)
  fixed.writeUInt16LE(flags, 8)
  fixed.writeUInt16LE(method, 10)
  fixed.writeUInt32LE(dosTime(modified), 12)
  fixed.writeUInt32LE(crc, 16)
  fixed.writeUInt32LE(big ? MAX_32 : packed, 20)
  fixed.writeUInt32LE(big ? MAX_32 : size, 24)
  fixed.writeUInt16LE(name.length, 28)
  fixed.writeUInt16LE(extra.length, 30)
  const rights = isFolder ? FOLDER_RIGHTS : FILE_RIGHTS
  fixed.writeUInt32LE(((rights << 16) | (isFolder ? WINDOWS_FOLDER : 0)) >>> 0, 38)
  fixed.writeUInt32LE(far ? MAX_32 : offset, 42)
  return Buffer.concat([fixed, name, extra])
}

interface Directory {
  readonly entries: number
  readonly size: number
  readonly offset: number
}

function endRecords({ entries, size, offset }: Directory): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(Math.min(entries, MAX_16), 8)
  end.writeUInt16LE(Math.min(entries, MAX_16), 10)
  end.writeUInt32LE(Math.min(size, MAX_32), 12)
  end.writeUInt32LE(Math.min(offset, MAX_32), 16)
  if (entries < MAX_16 && size < MAX_32 && offset < MAX_32) return end
  const wide = Buffer.alloc(56)
  wide.writeUInt32LE(0x06064b50, 0)
  wide.writeBigUInt64LE(44n, 4)
  wide.writeUInt16LE(MADE_BY, 12)
  wide.writeUInt16LE(VERSION_64, 14)
  wide.writeBigUInt64LE(BigInt(entries), 24)
  wide.writeBigUInt64LE(BigInt(entries), 32)
  wide.writeBigUInt64LE(BigInt(size), 40)
  wide.writeBigUInt64LE(BigInt(offset), 48)
  const place = Buffer.alloc(20)
  place.writeUInt32LE(0x07064b50, 0)
  place.writeBigUInt64LE(BigInt(offset + size), 8)
  place.writeUInt32LE(1, 16)
  return Buffer.concat([wide, place, end])
}

/** The field of ZIP64, with those of its numbers that the fields of four bytes do not hold. */
function zip64(numbers: readonly number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * numbers.length)
  field.writeUInt16LE(0x0001, 0)
  field.writeUInt16LE(8 * numbers.length, 2)
  for (const [i, number] of numbers.entries()) field.writeBigUInt64LE(BigInt(number), 4 + 8 * i)
  return field
}

/** The time in seconds since 1970, which has no time zone, as Info-ZIP has it. */
function unixTime(modified: number): Buffer {
  const field = Buffer.alloc(9)
  field.writeUInt16LE(0x5455, 0)
  field.writeUInt16LE(5, 2)
  field.writeUInt8(1, 4)
  field.writeInt32LE(Math.max(0, Math.min(Math.floor(modified / 1000), 0x7fff_ffff)), 5)
  return field
}

/** The time in the form of DOS, for programs that do not read the other: UTC, in steps of two seconds. */
function dosTime(modified: number): number {
  const earliest = Date.UTC(1980, 0, 1)
  const latest = Date.UTC(2107, 11, 31, 23, 59, 58)
  const time = new Date(Math.max(earliest, Math.min(modified, latest)))
  const date = ((time.getUTCFullYear() - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate()
  const clock = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1)
  return ((date << 16) | clock) >>> 0
}
