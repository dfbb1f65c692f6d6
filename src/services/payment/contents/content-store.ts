import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { syncFolder } from '../../../common/files/sync-folder.js'
import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { OpenCar } from '../../network/pack/index.js'
import type { PackedContent } from '../../network/pack/pack-content.js'
import { Staging } from '../../network/staging.js'
import type { Content, ContentTable } from './content-table.js'
import { Room } from './room.js'

/** The packing is loaded with the first content: a service without uploads saves the memory for its libraries. */
const packing = () => import('../../network/pack/index.js')

/** A content that was packed, in a folder that is removed with it. */
export interface StagedContent extends PackedContent {
  /** Path of its CAR. */
  readonly file: string
}

export type PackStaged = (content: AsyncIterable<Uint8Array>) => Promise<StagedContent>

/**
 * The contents, each as one CAR. A CAR counts once the table names it: others are removed at the next start. They are
 * never removed afterwards, because uploads of several wallets may have the same content.
 */
export class ContentStore {
  readonly #folder: string
  readonly #table: ContentTable
  readonly #writer: Writer
  readonly #staging: Staging
  readonly #room: Room
  #reader: Promise<InstanceType<Awaited<ReturnType<typeof packing>>['CarReader']>> | undefined

  /** @param mostBytes of all CARs, and of what uploads in progress take */
  constructor(folder: string, table: ContentTable, writer: Writer, mostBytes: number, log: ServicesLog) {
    this.#folder = join(folder, 'contents')
    this.#table = table
    this.#writer = writer
    this.#staging = new Staging(join(folder, 'staging'), log)
    this.#room = new Room(mostBytes, table.totalBytes())
  }

  /** Makes the folders, and removes what interrupted uploads left. */
  async open(): Promise<void> {
    makePrivateFolder(this.#folder)
    await this.#staging.open()
    for (const name of await readdir(this.#folder)) {
      if (this.#table.find(name.replace(/\.car$/, '')) === undefined) await unlink(join(this.#folder, name))
    }
  }

  /**
   * Runs `job`, which may pack one content as it arrives, and keep it before it ends; else it is removed. Packing rejects
   * with PaymentError `full` when there is no room. Memory does not grow with the content.
   */
  receive<T>(job: (pack: PackStaged) => Promise<T>): Promise<T> {
    return this.#staging.run((folder) =>
      this.#room.run((counted) =>
        job(async (content) => {
          const file = join(folder, 'content.car')
          const { packContent } = await packing()
          return { ...(await packContent(counted(content), file)), file }
        }),
      ),
    )
  }

  /** Keeps a staged content; one that is known already is the same. Durable when the promise resolves. */
  async keep(staged: StagedContent): Promise<Content> {
    const known = this.#table.find(staged.cid)
    if (known !== undefined) return known
    const { digestsOfCar } = await packing()
    const digests = await digestsOfCar(staged.file)
    // Another upload of the same content may do the same at the same time: its CAR has the same bytes.
    await rename(staged.file, this.#path(staged.cid))
    await syncFolder(this.#folder)
    return this.#writer.run(() => {
      const other = this.#table.find(staged.cid)
      if (other !== undefined) return other
      this.#room.keep(staged.carSize)
      return this.#table.add(staged, digests)
    })
  }

  /** The bytes of a content that is known. */
  async *bytesOf(cid: string): AsyncIterable<Uint8Array> {
    const content = this.#table.find(cid)
    if (content === undefined) throw new Error(`There is no content ${cid}.`)
    const car = await this.read(content)
    try {
      yield* car.range(CID.parse(cid), 0, content.size - 1)
    } finally {
      await car.close()
    }
  }

  /** Opens the CAR of a content. */
  async read({ cid }: Content): Promise<OpenCar> {
    this.#reader ??= packing().then(({ CarReader }) => new CarReader())
    return (await this.#reader).open(this.#path(cid))
  }

  #path(cid: string): string {
    return join(this.#folder, `${cid}.car`)
  }
}
