import type { Writer } from '../../database.js'
import type { DealFile, PackedFile } from '../../network/network.js'
import { dagNamesInOrder } from '../../network/pack/dag-names.js'
import type { GatewayContext } from '../context.js'
import { GatewayError } from '../errors.js'
import { openLocalBody } from '../store/local-body.js'
import { readFromDeals } from './copies-in-deals.js'
import type { DealRow } from './deals.js'
import type { Manifest, ManifestFile } from './manifest.js'

type Tools = Pick<GatewayContext, 'manifest' | 'network' | 'log' | 'objects' | 'blobs' | 'holds' | 'writer' | 'quirks'>

/** Files fetched from the manifest at once, and written to it in one transaction. */
const PAGE = 500

/** Bytes read at once. */
const CHUNK = 512 * 1024

/** The files of a deal on their way into its CAR, and what became of them on their way back into the manifest. */
export class PackingList {
  readonly #tools: Tools
  readonly #deal: DealRow
  readonly #signal: AbortSignal
  /** Given away, and not packed yet, by path. */
  readonly #given = new Map<string, ManifestFile>()
  /** CIDs of those whose bytes come from other deals. */
  readonly #expected = new Map<string, string>()
  readonly #batch: Batch
  #packed = 0

  constructor(tools: Tools, deal: DealRow, signal: AbortSignal) {
    this.#tools = tools
    this.#deal = deal
    this.#signal = signal
    this.#batch = new Batch(tools.writer, tools.manifest, deal.id)
  }

  /** In the byte order of their keys. */
  async *files(): AsyncGenerator<DealFile> {
    const { manifest, quirks } = this.#tools
    const { id, key, files } = this.#deal
    const names = key.length === 0 ? dagNamesInOrder() : () => []
    let after: Buffer = Buffer.alloc(0)
    for (;;) {
      const page = manifest.page(id, after, PAGE)
      for (const file of page) {
        const path = names(file.key.toString())
        this.#given.set(path.join('/'), file)
        yield { path, size: file.size, content: () => this.#content(file) }
      }
      const last = page.at(-1)
      if (last === undefined) break
      after = last.key
    }
    if (files === 0 && quirks.has('empty-bucket-deals')) yield { path: [], size: 0, content: async function* () {} }
  }

  /** Writes down what became of a file; when that was the last one, all of them are on the disk once it resolves. */
  async packed(packed: PackedFile): Promise<void> {
    const path = packed.path.join('/')
    const file = this.#given.get(path)
    if (file === undefined) return
    this.#given.delete(path)
    const expected = this.#expected.get(file.generation)
    if (expected !== undefined && expected !== packed.cid) {
      throw new GatewayError('RetrievalFailed', { value: `What deals delivered of ${file.key} is not that object.` })
    }
    this.#expected.delete(file.generation)
    this.#packed++
    await this.#batch.add(file.key, packed, this.#packed === this.#deal.files)
  }

  async *#content({ generation, size }: ManifestFile): AsyncGenerator<Uint8Array> {
    const body = await openLocalBody(this.#tools, generation)
    if (body === undefined) {
      const [copy] = this.#tools.manifest.copiesOf(generation)
      if (copy !== undefined) this.#expected.set(generation, copy.file.cid)
      yield* readFromDeals(this.#tools, generation, this.#signal)
      return
    }
    try {
      // Each chunk has memory of its own: whoever packs may keep some while it asks for the next.
      for (let position = 0; position < size; ) {
        const chunk = await body.read(position, Math.min(CHUNK, size - position))
        if (chunk.length === 0) return
        position += chunk.length
        yield chunk
      }
    } finally {
      await body.close()
    }
  }
}

/** Collects what became of files, and writes it many at a time. */
class Batch {
  readonly #writer: Writer
  readonly #manifest: Manifest
  readonly #deal: number
  #waiting: [key: Buffer, packed: PackedFile][] = []

  constructor(writer: Writer, manifest: Manifest, deal: number) {
    this.#writer = writer
    this.#manifest = manifest
    this.#deal = deal
  }

  async add(key: Buffer, packed: PackedFile, isLast: boolean): Promise<void> {
    this.#waiting.push([key, packed])
    if (this.#waiting.length < PAGE && !isLast) return
    const batch = this.#waiting
    this.#waiting = []
    await this.#writer.run(() => {
      for (const [key, packed] of batch) this.#manifest.packed(this.#deal, key, packed)
    })
  }
}
