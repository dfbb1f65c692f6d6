import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { CID } from 'multiformats/cid'
import {
  type BlockSource,
  CarReader,
  contentOf,
  MAX_BLOCK_BYTES,
  MAX_HEAD_BYTES,
  MAX_HEADER_BYTES,
  parseHeader,
  parseSection,
  resolvePath,
  verifiedBlock,
} from '../../services/network/pack/index.js'
import { AGE_MAGIC } from '../../src/objects/encryption/age-header.js'
import { describeError, Failure } from '../command.js'

/** What an age file is read from. */
export interface AgeSource {
  /** For messages: without the query of a URL, which may be a signature. */
  readonly name: string
  readonly kind: 'file' | 'input' | 'url'
  /** The age file is content of a CAR. */
  readonly isCar: boolean
  readonly bytes: ByteReader
}

/** Bytes that begin every CAR of version 1 or 2, behind a length: of the CBOR map of its header. */
const CAR_HEADER = /^.{1,2}[\xa1-\xaf](?:erootsg|gversion|eroots)/s

const PEEKED = 32

/**
 * Opens what has an age file: a file, `-` for standard input, or a URL. A CAR is read in order while it comes; only
 * one that is a file may have its blocks in any order.
 * @param path names in the CAR from its root, where that is a directory
 * @throws Failure
 */
export async function openAgeSource(from: string, path: readonly string[]): Promise<AgeSource> {
  const kind = from === '-' ? 'input' : /^https?:\/\//i.test(from) ? 'url' : 'file'
  const name = kind === 'input' ? 'Standard input' : kind === 'url' ? withoutQuery(from) : from
  const stream = kind === 'input' ? process.stdin : kind === 'url' ? await download(from, name) : await fileAt(from)
  const bytes = new ByteReader(stream)
  const begin = await bytes.peek(PEEKED)
  if (begin.toString('latin1', 0, AGE_MAGIC.length) === AGE_MAGIC || !CAR_HEADER.test(begin.toString('latin1'))) {
    if (path.length > 0) throw new Failure(`${name} is no CAR: --path names a file in one.`)
    return { name, kind, isCar: false, bytes }
  }
  const { roots, end } = parseHeader(await bytes.peek(MAX_HEADER_BYTES))
  const [root, another] = roots
  if (!root || another) throw new Failure(`${name} is a CAR that does not have one root.`)
  let blocks: BlockSource
  if (kind === 'file') {
    await bytes.close()
    const car = await new CarReader().open(from)
    blocks = { get: (cid) => car.block(cid) }
  } else {
    await bytes.take(end)
    blocks = new BlocksInOrder(bytes)
  }
  return { name, kind, isCar: true, bytes: new ByteReader(await fileIn(root, path, blocks, name)) }
}

async function fileIn(
  root: CID,
  path: readonly string[],
  blocks: BlockSource,
  name: string,
): Promise<AsyncIterable<Uint8Array>> {
  let { cid, node } = await resolvePath(root, path, (one) => blocks.get(one))
  // A deal of one object may have a directory for each name in its key.
  for (let depth = 0; path.length === 0 && node.kind === 'directory' && node.links.length === 1; depth++) {
    const [link] = node.links
    if (!link || depth > MAX_DEPTH) break
    ;({ cid, node } = await resolvePath(link.cid, [], (one) => blocks.get(one)))
  }
  if (node.kind === 'file') return contentOf(cid, blocks)
  const names = node.kind === 'directory' ? node.links.map((link) => link.name) : []
  const shown = names.slice(0, SHOWN).join(', ')
  throw new Failure(
    `${name} is a CAR with a directory. Name the file with --path${names.length > 0 ? `: it has ${shown}${names.length > SHOWN ? ', ...' : ''}` : ''}.`,
  )
}

const MAX_DEPTH = 1024
const SHOWN = 10

/** Blocks of a CAR that come in the order of its DAG, as in `ipfs dag export` and in the CAR of a deal. */
class BlocksInOrder implements BlockSource {
  readonly #bytes: ByteReader
  #last: { readonly cid: CID; readonly block: Uint8Array } | undefined

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
  }

  /** Skips blocks of other files. Gives the last block as often as it is asked for. */
  async get(cid: CID): Promise<Uint8Array> {
    if (this.#last?.cid.equals(cid)) return this.#last.block
    for (;;) {
      const head = await this.#bytes.peek(MAX_HEAD_BYTES)
      if (head.length === 0)
        throw new Failure(
          `The CAR does not have the block ${cid} where it is needed: it is incomplete, or its blocks are not in order. Store it in a file, and open that.`,
        )
      const section = parseSection(head, 0)
      if (Buffer.compare(section.cid.multihash.digest, cid.multihash.digest) !== 0) {
        await this.#bytes.skip(section.end)
        continue
      }
      if (section.end > MAX_BLOCK_BYTES + MAX_HEAD_BYTES) throw new Failure(`The block ${cid} is too large.`)
      const block = verifiedBlock(cid, (await this.#bytes.take(section.end)).subarray(section.blockOffset))
      this.#last = { cid, block }
      return block
    }
  }
}

/** Bytes that come in pieces, to be taken in others. */
export class ByteReader {
  readonly #pieces: AsyncIterator<Uint8Array>
  #held: Buffer[] = []
  #length = 0

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#pieces = bytes[Symbol.asyncIterator]()
  }

  /** The next bytes, `count` or more; fewer only at the end. They stay. */
  async peek(count: number): Promise<Buffer> {
    while (this.#length < count) {
      const next = await this.#pieces.next()
      if (next.done) break
      const { buffer, byteOffset, length } = next.value
      this.#held.push(Buffer.from(buffer, byteOffset, length))
      this.#length += length
    }
    if (this.#held.length !== 1) this.#held = [Buffer.concat(this.#held)]
    return this.#held[0] as Buffer
  }

  /** The next `count` bytes; fewer only at the end. */
  async take(count: number): Promise<Buffer> {
    const all = await this.peek(count)
    const taken = all.subarray(0, count)
    this.#keep(all.subarray(taken.length))
    return taken
  }

  async skip(count: number): Promise<void> {
    let missing = count
    while (missing > 0) {
      const some = await this.peek(1)
      if (some.length === 0) return
      const rest = some.subarray(missing)
      missing -= some.length - rest.length
      this.#keep(rest)
    }
  }

  /** What was not taken. */
  async *rest(): AsyncGenerator<Buffer> {
    for (;;) {
      const some = await this.peek(1)
      if (some.length === 0) return
      this.#keep(Buffer.alloc(0))
      yield some
    }
  }

  async close(): Promise<void> {
    await this.#pieces.return?.()
  }

  #keep(rest: Buffer): void {
    this.#held = [rest]
    this.#length = rest.length
  }
}

async function fileAt(file: string): Promise<AsyncIterable<Uint8Array>> {
  const handle = await open(file, 'r').catch((cause: Error) => {
    throw new Failure(`Cannot read ${file}: ${cause.message}`, { cause })
  })
  if ((await handle.stat()).isDirectory()) {
    await handle.close()
    throw new Failure(`Cannot read ${file}: it is a folder.`)
  }
  return createReadStream('', { fd: handle, highWaterMark: READ_BYTES })
}

const READ_BYTES = 256 * 1024

async function download(url: string, name: string): Promise<AsyncIterable<Uint8Array>> {
  const response = await fetch(url).catch((error) => {
    throw new Failure(`${name} cannot be reached: ${describeError(error.cause ?? error)}`)
  })
  if (response.status === 200 && response.body) return response.body
  await response.body?.cancel()
  throw new Failure(`${name} has no such file: its answer is HTTP ${response.status}.`)
}

function withoutQuery(url: string): string {
  if (!URL.canParse(url)) throw new Failure(`${JSON.stringify(url)} is not a URL.`)
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
