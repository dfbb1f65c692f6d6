import { randomBytes } from 'node:crypto'
import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import pLimit from 'p-limit'
import { makePrivateFolder, syncFolder } from '../../../common/files/private-file.js'
import type { ServicesLog } from '../../log.js'
import type { CarSource, OpenCar } from '../../network/pack/index.js'
import type { PackedContent } from '../../network/pack/pack.js'
import { isYoung, Staging } from '../../network/staging.js'
import { type Database, DatabaseUnavailableError } from '../../store/database.js'
import { PaymentError } from '../errors.js'
import { type Content, type ContentKind, type ContentTable, fileNamed } from './content-table.js'

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
 * The contents, each as one CAR. A CAR counts once the table has it as `here`: others are removed by a sweep. Uploads
 * of several wallets may have the same content. Several processes may use the folder.
 */
export class ContentStore<T extends ContentTables = ContentTables> {
  readonly #folder: string
  readonly #db: Database<T>
  readonly #staging: Staging
  readonly #room: Room
  /**
   * A CAR must not be removed for one upload while another of the same content counts on it. Among processes, each CAR
   * has a name of its own.
   */
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
    await this.sweep()
    await this.#count()
  }

  /**
   * Removes files that no content has. Where other processes use the folder, only those that came a day ago: the row
   * of a later one may be on its way.
   */
  async sweep(): Promise<void> {
    const { shared, read } = this.#db
    await this.#staging.open(shared)
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name)
      if (shared && (await isYoung(path))) continue
      const content = await read.contents.find(name.split('.')[0] ?? '')
      if (content?.place !== 'here' || content.file !== name) await unlink(path).catch(() => {})
    }
  }

  /**
   * Runs `job`, which may pack one content as it arrives, and keep it before it ends; else it is removed. Packing
   * rejects with PaymentError `full` when there is no room. Memory does not grow with the content.
   * @param makeRoom removes another content; false when none can go
   */
  receive<T>(job: (pack: PackStaged) => Promise<T>, makeRoom: () => Promise<boolean>): Promise<T> {
    return this.#staging.run(async (folder) => {
      // Others have kept and removed contents since.
      if (this.#db.shared) await this.#count()
      return this.#room.run(
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
      )
    })
  }

  /**
   * Keeps a staged content, or the same one that is here already. Durable when the promise resolves.
   * @param also runs in the same transaction, so that a content never lacks what needs it
   */
  async keep<R>(staged: StagedContent, also: (content: Content, tables: T) => Promise<R>): Promise<R> {
    const { digestsOfCar } = await packing()
    const before = (await this.#isHere(staged.cid)) ? undefined : await digestsOfCar(staged.file)
    return this.#alone(async () => {
      const known = await this.#db.transaction((tables) => alsoIfHere(staged, also, tables))
      if (known !== undefined) return known.result
      // It may have been removed a moment ago.
      const digests = before ?? (await digestsOfCar(staged.file))
      const file = this.#nameFor(staged.cid)
      await rename(staged.file, join(this.#folder, file))
      await syncFolder(this.#folder)
      try {
        const kept = await this.#db.transaction(async (tables) => {
          const found = await alsoIfHere(staged, also, tables)
          if (found !== undefined) return { ...found, isNew: false }
          const content = await tables.contents.add({ ...staged, file }, digests)
          return { result: await also(content, tables), isNew: true }
        })
        if (kept.isNew) this.#room.keep(staged.carSize)
        else await this.#remove(file)
        return kept.result
      } catch (error) {
        // Where the row may be there nevertheless, a sweep removes a CAR without one.
        if (!(error instanceof DatabaseUnavailableError)) await this.#remove(file)
        throw error
      }
    })
  }

  /**
   * Removes the CARs of contents.
   * @param mark runs in a transaction: sets the places of contents, and gives those that were here
   * @returns their number
   */
  release(mark: (tables: T) => Promise<readonly ReleasedContent[]>): Promise<number> {
    return this.#alone(async () => {
      const released = await this.#db.transaction(mark)
      for (const { file, carSize } of released) {
        await this.#remove(file)
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
  async read(content: Pick<Content, 'file'>, check?: (cid: CID) => void): Promise<OpenCar & CarSource> {
    this.#reader ??= packing().then(({ CarReader }) => new CarReader())
    const file = this.fileOf(content)
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

  /**
   * Where the folder is shared, a name is used once: another process may remove a content while this one gets it again.
   */
  #nameFor(cid: string): string {
    return this.#db.shared ? `${cid}.${randomBytes(8).toString('hex')}.car` : fileNamed(cid)
  }

  /** What is left after an error goes in a sweep. */
  async #remove(file: string): Promise<void> {
    await unlink(join(this.#folder, file)).catch(() => {})
  }

  fileOf({ file }: Pick<Content, 'file'>): string {
    return join(this.#folder, file)
  }

  async #count(): Promise<void> {
    this.#room.reset(await this.#db.read.contents.totalBytes())
  }
}

export type ReleasedContent = Pick<Content, 'file' | 'carSize'>

async function alsoIfHere<T extends ContentTables, R>(
  { cid }: StagedContent,
  also: (content: Content, tables: T) => Promise<R>,
  tables: T,
): Promise<{ readonly result: R } | undefined> {
  const content = await tables.contents.find(cid)
  return content?.place === 'here' ? { result: await also(content, tables) } : undefined
}

/** While a content is packed, its blocks are on the disk twice. */
const COPIES = 2

type Counted = (content: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

/**
 * Bounds what contents take on the disk: those that are kept, and those that arrive. What arrives at other processes
 * meanwhile is not counted: they may exceed the bound by that.
 */
class Room {
  readonly #most: number
  #kept = 0
  #arriving = 0

  constructor(most: number) {
    this.#most = most
  }

  /** @param bytes that are kept now */
  reset(bytes: number): void {
    this.#kept = bytes
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
