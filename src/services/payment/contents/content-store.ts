import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import pLimit from 'p-limit'
import { makePrivateFolder, syncFolder } from '../../../common/files/private-file.js'
import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import { type Network, NetworkError } from '../../network/network.js'
import type { CarSource, OpenCar } from '../../network/pack/index.js'
import type { PackedContent } from '../../network/pack/pack.js'
import { Staging } from '../../network/staging.js'
import { PaymentError } from '../errors.js'
import type { Content, ContentKind, ContentTable } from './content-table.js'
import { type Retention, type RetentionTable, Room } from './retention.js'

/** The packing is loaded with the first content: a service without uploads saves the memory for its libraries. */
const packing = () => import('../../network/pack/index.js')

type Thread = InstanceType<Awaited<ReturnType<typeof packing>>['PackThread']>

/** A content that was packed, in a folder that is removed with it. */
export interface StagedContent extends PackedContent {
  readonly kind: ContentKind
  /** Path of its CAR. */
  readonly file: string
}

/** Rejects with NetworkError NotRetrievable for what is no CAR of a directory, if that is what it is said to be. */
export type PackStaged = (
  content: AsyncIterable<Uint8Array>,
  kind: ContentKind,
  signal?: AbortSignal,
) => Promise<StagedContent>

/**
 * The contents, each as one CAR. A CAR counts once the table has it as `here`: others are removed at the next start.
 * Uploads of several wallets may have the same content.
 */
export class ContentStore {
  readonly #folder: string
  readonly #table: ContentTable
  readonly #writer: Writer
  readonly #staging: Staging
  readonly #room: Room
  /** A CAR must not be removed for one upload while another of the same content counts on it. */
  readonly #alone = pLimit(1)
  #reader: Promise<InstanceType<Awaited<ReturnType<typeof packing>>['CarReader']>> | undefined
  #thread: Promise<Thread> | undefined

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
      if (!this.#isHere(name.replace(/\.car$/, ''))) await unlink(join(this.#folder, name))
    }
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
  async keep<T>(staged: StagedContent, also: (content: Content) => T): Promise<T> {
    const { digestsOfCar } = await packing()
    const before = this.#isHere(staged.cid) ? undefined : await digestsOfCar(staged.file)
    return this.#alone(async () => {
      if (this.#isHere(staged.cid)) return this.#writer.run(() => also(this.#table.find(staged.cid) as Content))
      // It may have been removed a moment ago.
      const digests = before ?? (await digestsOfCar(staged.file))
      await rename(staged.file, this.fileOf(staged.cid))
      await syncFolder(this.#folder)
      try {
        const result = await this.#writer.run(() => also(this.#table.add(staged, digests)))
        this.#room.keep(staged.carSize)
        return result
      } catch (error) {
        await this.#remove(staged.cid)
        throw error
      }
    })
  }

  /**
   * Removes the CARs of contents.
   * @param mark runs in a transaction: sets the places of contents, and gives those that were here
   */
  release(mark: () => readonly Pick<Content, 'cid' | 'carSize'>[]): Promise<void> {
    return this.#alone(async () => {
      for (const { cid, carSize } of await this.#writer.run(mark)) {
        await this.#remove(cid)
        this.#room.keep(-carSize)
      }
    })
  }

  /** The bytes of a content that is known: of the file, or of the CAR of a directory. */
  async *bytesOf(cid: string): AsyncIterable<Uint8Array> {
    const content = this.#table.find(cid)
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

  #isHere(cid: string): boolean {
    return this.#table.find(cid)?.place === 'here'
  }

  /** What is left after an error goes at the next start. */
  async #remove(cid: string): Promise<void> {
    await unlink(this.fileOf(cid)).catch(() => {})
  }

  /** Path of the CAR of a content that is here. */
  fileOf(cid: string): string {
    return join(this.#folder, `${cid}.car`)
  }
}

/** Most contents that come back at the same time: anyone may ask for them. */
const AT_ONCE = 2
const RETRY_SECONDS = 30

export interface RestoringParts {
  readonly table: RetentionTable
  readonly contents: ContentStore
  readonly retention: Pick<Retention, 'giveUp'>
  readonly network: Pick<Network, 'epoch' | 'retrieve'>
}

/** Brings contents back from storage providers that were given up here. */
export class Restoring {
  readonly #parts: RestoringParts
  readonly #running = new Map<string, Promise<void>>()
  readonly #stop = new AbortController()

  constructor(parts: RestoringParts) {
    this.#parts = parts
  }

  /**
   * Resolves when the content is here. Requests for one content share the work. Rejects with PaymentError: `busy` when
   * others are brought back or the provider does not answer, `full` without room.
   */
  restore(content: Content): Promise<void> {
    const running = this.#running.get(content.cid)
    if (running !== undefined) return running
    if (this.#running.size >= AT_ONCE) return Promise.reject(later('other contents are brought back'))
    const run = this.#restore(content)
      .catch((error) => {
        throw error instanceof NetworkError ? later(error.message) : error
      })
      .finally(() => this.#running.delete(content.cid))
    this.#running.set(content.cid, run)
    return run
  }

  /** Interrupts what runs. */
  async stop(): Promise<void> {
    this.#stop.abort(new NetworkError('Unavailable', 'The service stops.'))
    await Promise.allSettled(this.#running.values())
  }

  async #restore({ id, cid, kind }: Content): Promise<void> {
    const { table, contents, retention, network } = this.#parts
    const source = table.sourceOf(id, network.epoch())
    if (source === undefined) throw new PaymentError('absent', `the deals of ${cid} have ended`)
    await contents.receive(
      async (pack) => {
        const staged = await pack(network.retrieve(source.dealCid, source, this.#stop.signal), kind)
        if (!CID.parse(staged.cid).equals(CID.parse(cid))) {
          throw new NetworkError('NotRetrievable', 'The provider has other bytes.')
        }
        await contents.keep(staged, () => {})
      },
      () => retention.giveUp(),
    )
  }
}

function later(detail: string): PaymentError {
  return new PaymentError('busy', detail, ['Retry-After', RETRY_SECONDS])
}
