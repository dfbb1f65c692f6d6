import type { DealFile, PackedFile } from '../../network/network.js'
import { dagNamesInOrder } from '../../network/pack/dag/dag-names.js'
import { type Database, pages, type Snapshot } from '../../store/database.js'
import type { GatewayCore } from '../core.js'
import { GatewayError } from '../errors.js'
import { openLocalBody } from '../store/local-copies.js'
import type { Objects } from '../store/objects.js'
import { above, justAfter } from '../store/scan.js'
import { readFromDeals, verified } from './bring-back.js'
import type { DealRow } from './deals.js'
import type { Manifest, ManifestFile } from './manifest.js'

type PackingContext = Pick<GatewayCore, 'db' | 'network' | 'log' | 'bodies' | 'emptyBucketDeals'>

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
    this.#batch = new Batch(context.db, deal.id)
  }

  /** In byte order of their keys. */
  async *files(): AsyncGenerator<DealFile> {
    const { db, emptyBucketDeals } = this.#context
    const { id, key, files } = this.#deal
    const names = key.length === 0 ? dagNamesInOrder() : () => []
    for await (const page of db.read.manifest.pages(id, PAGE)) {
      for (const file of page) {
        const path = names(file.key.toString())
        this.#given.set(path.join('/'), file)
        yield { path, size: file.size, content: () => this.#content(file) }
      }
    }
    if (files === 0 && emptyBucketDeals) yield { path: [], size: 0, content: async function* () {} }
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
  async *#fromDeals(file: ManifestFile): AsyncGenerator<Uint8Array> {
    const { key, generation } = file
    const [copy] = await this.#context.db.read.manifest.copiesOf(generation)
    if (copy !== undefined) this.#expected.set(generation, copy.file.cid)
    yield* verified(readFromDeals(this.#context, generation, this.#signal), file, () => notThatObject(key))
  }
}

function notThatObject(key: Buffer): GatewayError {
  return new GatewayError('RetrievalFailed', {
    value: `Deals delivered other bytes for ${key} than those of that object.`,
  })
}

class Batch {
  readonly #db: Database<{ readonly manifest: Manifest }>
  readonly #deal: number
  #waiting: [key: Buffer, packed: PackedFile][] = []

  constructor(db: Database<{ readonly manifest: Manifest }>, deal: number) {
    this.#db = db
    this.#deal = deal
  }

  async add(key: Buffer, packed: PackedFile, isLast: boolean): Promise<void> {
    this.#waiting.push([key, packed])
    if (this.#waiting.length < PAGE && !isLast) return
    const batch = this.#waiting
    this.#waiting = []
    await this.#db.transaction(async ({ manifest }) => {
      for (const [key, packed] of batch) await manifest.packed(this.#deal, key, packed)
    })
  }
}

const ROWS_PER_PAGE = 1000

/**
 * The objects of a bucket, page by page, in byte order of their keys.
 * @param prefix only the objects whose keys begin so
 */
export async function* listBucket(
  { read: { objects } }: Snapshot<{ readonly objects: Objects }>,
  bucket: number,
  prefix: Buffer = Buffer.alloc(0),
): AsyncGenerator<readonly ManifestFile[]> {
  const read = (after: Buffer) =>
    objects.page(bucket, after.length === 0 ? prefix : justAfter(after), above(prefix), ROWS_PER_PAGE)
  yield* pages('key', Buffer.alloc(0) as Buffer, read)
}
