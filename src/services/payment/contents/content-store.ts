import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import pLimit from 'p-limit'
import { makePrivateFolder, syncFolder } from '../../../common/files/private-file.js'
import type { ServicesLog } from '../../log.js'
import type { CarSource, OpenCar } from '../../network/pack/index.js'
import type { PackedContent } from '../../network/pack/pack.js'
import { Staging } from '../../network/staging.js'
import { type Database, DatabaseUnavailableError } from '../../store/database.js'
import { PaymentError } from '../errors.js'
import type { Content, ContentKind, ContentTable } from './content-table.js'

/** The packing is loaded with the first content: a service without uploads saves the memory for its libraries. */
const packing = () => import('../../network/pack/index.js')

type Thread = InstanceType<Awaited<ReturnType<typeof packing>>['PackThread']>

/** A content that was packed, in a folder that is removed with it. */
export interface StagedContent extends PackedContent {
  readonly kind: ContentKind
  readonly file: string
}

/** Rejects with NetworkError NotRetrievable for what is no CAR of a directory, if that is what it is said to be. */
export type PackStaged = (
  content: AsyncIterable<Uint8Array>,
  kind: ContentKind,
  signal?: AbortSignal,
) => Promise<StagedContent>

export interface ContentTables {
  readonly contents: ContentTable
}

/**
 * The contents, each as one CAR. A CAR counts once the table has it as `here`: others are removed at the next start.
 * Uploads of several wallets may have the same content.
 */
export class ContentStore<T extends ContentTables = ContentTables> {
  readonly #folder: string
  readonly #db: Database<T>
  readonly #staging: Staging
  readonly #room: Room
  /** A CAR must not be removed for one upload while another of the same content counts on it. */
  readonly #alone = pLimit(1)
  #reader: Promise<InstanceType<Awaited<ReturnType<typeof packing>>['CarReader']>> | undefined
  #thread: Promise<Thread> | undefined

  /** @param mostBytes of all CARs, and of what uploads in progress take */
  constructor(folder: string, db: Database<T>, mostBytes: number, log: ServicesLog) {
    this.#folder = join(folder, 'contents')
    this.#db = db
    this.#staging = new Staging(join(folder, 'staging'), log)
    this.#room = new Room(mostBytes)
  }

  /** Makes the folders, and removes what interrupted uploads left. Call it before anything else. */
  async open(): Promise<void> {
    makePrivateFolder(this.#folder)
    await this.#staging.open()
    for (const name of await readdir(this.#folder)) {
      if (!(await this.#isHere(name.replace(/\.car$/, '')))) await unlink(join(this.#folder, name))
    }
    this.#room.keep(await this.#db.read.contents.totalBytes())
  }

  /**
   * Runs `job`, which may pack one content as it arrives, and keep it before it ends; else it is removed. Packing
   * rejects with PaymentError `full` when there is no room. Memory does not grow with the content.
   * @param makeRoom removes another content; false when none can go
   */
  receive<T>(job: (pack: PackStaged) => Promise<T>, makeRoom: () => Promise<boolean>): Promise<T> {
    return this.#staging.run((folder) =>
      this.#room.run(
        (counted) =>
          job(async (content, kind, signal) => {
            const file = join(folder, 'content.car')
            const packed =
              kind === 'file'
                ? (await packing()).packContent(counted(content), file, signal)
                : (await this.#inThread()).directory(counted(content), file, signal)
            return { ...(await packed), kind, file }
          }),
        makeRoom,
      ),
    )
  }

  /**
   * Keeps a staged content, or the same one that is here already. Durable when the promise resolves.
   * @param also runs in the same transaction, so that a content never lacks what needs it
   */
  async keep<R>(staged: StagedContent, also: (content: Content, tables: T) => Promise<R>): Promise<R> {
    const { digestsOfCar } = await packing()
    const before = (await this.#isHere(staged.cid)) ? undefined : await digestsOfCar(staged.file)
    return this.#alone(async () => {
      if (await this.#isHere(staged.cid)) {
        return this.#db.transaction(async (tables) => also((await tables.contents.find(staged.cid)) as Content, tables))
      }
      // It may have been removed a moment ago.
      const digests = before ?? (await digestsOfCar(staged.file))
      await rename(staged.file, this.fileOf(staged.cid))
      await syncFolder(this.#folder)
      try {
        const result = await this.#db.transaction(async (tables) =>
          also(await tables.contents.add(staged, digests), tables),
        )
        this.#room.keep(staged.carSize)
        return result
      } catch (error) {
        // Where the row may be there nevertheless, the next start removes a CAR without one.
        if (!(error instanceof DatabaseUnavailableError)) await this.#remove(staged.cid)
        throw error
      }
    })
  }

  /**
   * Removes the CARs of contents.
   * @param mark runs in a transaction: sets the places of contents, and gives those that were here
   * @returns their number
   */
  release(mark: (tables: T) => Promise<readonly Pick<Content, 'cid' | 'carSize'>[]>): Promise<number> {
    return this.#alone(async () => {
      const released = await this.#db.transaction(mark)
      for (const { cid, carSize } of released) {
        await this.#remove(cid)
        this.#room.keep(-carSize)
      }
      return released.length
    })
  }

  /** The bytes of a content that is known: of the file, or of the CAR of a directory. */
  async *bytesOf(cid: string): AsyncIterable<Uint8Array> {
    const content = await this.#db.read.contents.find(cid)
    if (content === undefined) throw new Error(`There is no content ${cid}.`)
    const car = await this.read(content)
    try {
      yield* content.kind === 'file' ? car.range(CID.parse(cid), 0, content.size - 1) : car.whole()
    } finally {
      await car.close()
    }
  }

  /**
   * Opens the CAR of a content.
   * @param check see `CarReader.open`
   */
  async read({ cid }: Pick<Content, 'cid'>, check?: (cid: CID) => void): Promise<OpenCar & CarSource> {
    this.#reader ??= packing().then(({ CarReader }) => new CarReader())
    const file = this.fileOf(cid)
    const [reader, thread] = await Promise.all([this.#reader, this.#inThread()])
    return { ...(await reader.open(file, check)), export: (root, scope) => thread.car(file, root, scope, check) }
  }

  #inThread(): Promise<Thread> {
    this.#thread ??= packing().then(({ PackThread }) => new PackThread())
    return this.#thread
  }

  #isHere(cid: string): Promise<boolean> {
    return this.#db.read.contents.isHere(cid)
  }

  /** What is left after an error goes at the next start. */
  async #remove(cid: string): Promise<void> {
    await unlink(this.fileOf(cid)).catch(() => {})
  }

  fileOf(cid: string): string {
    return join(this.#folder, `${cid}.car`)
  }
}

/** While a content is packed, its blocks are on the disk twice. */
const COPIES = 2

type Counted = (content: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

/** Bounds what contents take on the disk: those that are kept, and those that arrive. */
class Room {
  readonly #most: number
  #kept = 0
  #arriving = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Counts a content that is kept from now on, bytes; below 0 for one that is removed. */
  keep(bytes: number): void {
    this.#kept += bytes
  }

  /**
   * Runs `job`; a content that it counts fails with PaymentError `full` when there is no room for more of it.
   * @param makeRoom removes a content that is kept; false when none can go
   */
  async run<T>(job: (counted: Counted) => Promise<T>, makeRoom: () => Promise<boolean>): Promise<T> {
    let taken = 0
    const count = async (bytes: number): Promise<void> => {
      taken += COPIES * bytes
      this.#arriving += COPIES * bytes
      while (this.#kept + this.#arriving > this.#most) {
        if (!(await makeRoom())) throw new PaymentError('full', 'the service has no room for it')
      }
    }
    try {
      return await job(async function* (content) {
        for await (const chunk of content) {
          await count(chunk.length)
          yield chunk
        }
      })
    } finally {
      this.#arriving -= taken
    }
  }
}
