import { openSnapshot, type Writer } from '../../database.js'
import type { DealFile, PackedFile } from '../../network/network.js'
import { dagNamesInOrder } from '../../network/pack/dag/dag-names.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import { openLocalBody } from '../store/local-copies.js'
import { readFromDeals, verified } from './bring-back.js'
import type { DealRow } from './deals.js'
import type { Manifest, ManifestFile } from './manifest.js'

type PackingContext = Pick<
  GatewayCore,
  'manifest' | 'network' | 'log' | 'objects' | 'bodies' | 'holds' | 'writer' | 'quirks'
>

/** Files fetched from the manifest per query, and written to it per transaction. */
const PAGE = 500

/** Feeds the files of a deal to the packer, and records the result of each in the manifest. */
export class PackingList {
  readonly #context: PackingContext
  readonly #deal: DealRow
  readonly #signal: AbortSignal
  /** Files handed to the packer and not packed yet, by path. */
  readonly #given = new Map<string, ManifestFile>()
  /** Expected CIDs of the files whose bytes come from other deals, by path. */
  readonly #expected = new Map<string, string>()
  readonly #batch: Batch
  #packed = 0

  constructor(context: PackingContext, deal: DealRow, signal: AbortSignal) {
    this.#context = context
    this.#deal = deal
    this.#signal = signal
    this.#batch = new Batch(context.writer, context.manifest, deal.id)
  }

  /** In byte order of their keys. */
  async *files(): AsyncGenerator<DealFile> {
    const { manifest, quirks } = this.#context
    const { id, key, files } = this.#deal
    const names = key.length === 0 ? dagNamesInOrder() : () => []
    for (const page of manifest.pages(id, PAGE)) {
      for (const file of page) {
        const path = names(file.key.toString())
        this.#given.set(path.join('/'), file)
        yield { path, size: file.size, content: () => this.#content(file) }
      }
    }
    if (files === 0 && quirks.has('empty-bucket-deals')) yield { path: [], size: 0, content: async function* () {} }
  }

  /** Records the result of a file. After the last file, all results are on the disk when the promise resolves. */
  async packed(packed: PackedFile): Promise<void> {
    const path = packed.path.join('/')
    const file = this.#given.get(path)
    if (file === undefined) return
    this.#given.delete(path)
    const expected = this.#expected.get(file.generation)
    if (expected !== undefined && expected !== packed.cid) throw notThatObject(file.key)
    this.#expected.delete(file.generation)
    this.#packed++
    await this.#batch.add(file.key, packed, this.#packed === this.#deal.files)
  }

  async *#content(file: ManifestFile): AsyncGenerator<Uint8Array> {
    const { generation, size } = file
    const body = await openLocalBody(this.#context, generation)
    if (body === undefined) {
      yield* this.#fromDeals(file)
      return
    }
    try {
      // The packer may keep some chunks while it asks for the next.
      yield* await body.stream(0, size - 1)
    } finally {
      await body.close()
    }
  }

  /**
   * Throws GatewayError RetrievalFailed, also at the end when size or MD5 differ from those of the object. `packed`
   * compares the CID.
   */
  #fromDeals(file: ManifestFile): AsyncGenerator<Uint8Array> {
    const { key, generation } = file
    const [copy] = this.#context.manifest.copiesOf(generation)
    if (copy !== undefined) this.#expected.set(generation, copy.file.cid)
    return verified(readFromDeals(this.#context, generation, this.#signal), file, () => notThatObject(key))
  }
}

function notThatObject(key: Buffer): GatewayError {
  return new GatewayError('RetrievalFailed', {
    value: `Deals delivered other bytes for ${key} than those of that object.`,
  })
}

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

const ROWS_PER_PAGE = 1000

/** The objects of a bucket at one moment, page by page, in byte order of their keys. */
interface BucketListing {
  pages(): Iterable<ManifestFile[]>
  close(): void
}

/**
 * Lists a bucket as it is now, regardless of writes while the pages are read. Call it outside of transactions, and
 * close it soon.
 * @param file path of the index database
 * @param prefix only the objects whose keys begin so
 */
export function openBucketListing(file: string, bucket: number, prefix: Buffer = Buffer.alloc(0)): BucketListing {
  const snapshot = openSnapshot(file)
  const page = snapshot.db.prepare(
    'SELECT key, generation, size, etag FROM objects WHERE bucket = ? AND key > ? AND key >= ? ORDER BY key LIMIT ?',
  )
  return {
    *pages() {
      let after = Buffer.alloc(0)
      for (;;) {
        const rows = page.all(bucket, after, prefix, ROWS_PER_PAGE) as {
          key: Uint8Array
          generation: string
          size: number
          etag: string
        }[]
        const files = rows.map((row) => ({ ...row, key: Buffer.from(row.key) }))
        const within = files.filter(({ key }) => key.subarray(0, prefix.length).equals(prefix))
        if (within.length > 0) yield within
        const last = files.at(-1)
        if (last === undefined || within.length < ROWS_PER_PAGE) return
        after = last.key
      }
    },
    close: snapshot.close,
  }
}
