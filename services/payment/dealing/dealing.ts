import { randomUUID } from 'node:crypto'
import type { ServicesLog } from '../../log.js'
import { type DealFile, type DealStatus, type Network, NetworkError } from '../../network/network.js'
import type { Database, Lease } from '../../store/database.js'
import type { ContentStore, ContentTables } from '../contents/content-store.js'
import type { Payments } from '../embedded-payments.js'
import { costOfDeal, EPOCHS_PER_DAY } from '../prices.js'
import type { CarFolder, CarTable, PackedCar } from './car-folder.js'
import type { DealTable, OfflineDeal } from './deal-table.js'
import type { PackedUploads, UploadToStore } from './packed-uploads.js'

interface DealingTables extends ContentTables {
  readonly cars: CarTable
  readonly packed: PackedUploads
  readonly deals: DealTable
}

interface DealingDeps {
  readonly lease: Lease<DealingTables>
  readonly dealer: Dealer
  readonly folder: CarFolder
  readonly contents: Pick<ContentStore<DealingTables>, 'bytesOf' | 'release'>
  readonly payments: Payments
  readonly network: Network
  readonly log: ServicesLog
  /** Unix seconds. */
  readonly seconds: () => number
  /** Where providers fetch the CAR of a task. */
  readonly urlOf: (task: string) => string
}

/**
 * Brings uploads that are paid or free to storage providers: packs them into CARs, posts a task for each, follows its
 * deals, and pays the provider when one is active. Each step can be repeated after a crash, and one process at a time
 * does it: a repeated post is the same task, and a provider is paid once per deal.
 */
export class Dealing {
  readonly #deps: DealingDeps
  readonly #db: Database<DealingTables>

  constructor(deps: DealingDeps) {
    this.#deps = deps
    this.#db = deps.lease.db
  }

  /** Lets another process go on. Call it when no run goes on. */
  stop(): Promise<void> {
    return this.#deps.lease.release()
  }

  async anyOpen(): Promise<boolean> {
    const { packed, cars } = this.#db.read
    return (await packed.anyPaid()) || (await cars.anyOpen())
  }

  /**
   * Goes on with everything as far as it can now: a CAR that fails does not hold up the others. Rejects when something
   * failed, such as a network or a dealer that cannot be reached. Does nothing while another process does it.
   */
  async run(stop: AbortSignal): Promise<void> {
    const { lease } = this.#deps
    if (!(await lease.take())) return
    const signal = AbortSignal.any([stop, lease.signal])
    const failures: unknown[] = []
    const attempt = (work: Promise<void>): Promise<void> =>
      work.catch((error) => {
        signal.throwIfAborted()
        failures.push(error)
      })
    await attempt(this.#packAll(signal))
    for (const car of await this.#db.read.cars.open()) await attempt(this.#follow(car, signal))
    if (failures.length > 0) throw new AggregateError(failures, 'Not all CARs of uploads could be brought further.')
  }

  async #packAll(signal: AbortSignal): Promise<void> {
    const { packed } = this.#db.read
    for (let next = await packed.next(); next.length > 0; next = await packed.next()) {
      const reading: { content?: string } = {}
      signal.throwIfAborted()
      try {
        await this.#pack(next, reading, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (reading.content === undefined || !isDamage(error)) throw error
        await this.#giveBack(reading.content)
      }
    }
  }

  /** A content that cannot be read does not hold up the uploads of others: only its own cannot be stored. */
  async #giveBack(cid: string): Promise<void> {
    const { contents, log } = this.#deps
    log.error({ cid }, 'A content of paid uploads is damaged. Their payments go back.')
    await contents.release(({ packed }) => packed.giveBack(cid))
  }

  /** @param reading gets the CID of the content that is read */
  async #pack(uploads: readonly UploadToStore[], reading: { content?: string }, signal: AbortSignal): Promise<void> {
    const { folder, network, seconds } = this.#deps
    const task = randomUUID()
    const cids = new Map<string, string>()
    const car = await folder.make(
      task,
      this.#files(uploads, reading),
      ({ path, cid }) => cids.set(path[0] ?? '', cid),
      signal,
    )
    const duration = (uploads[0]?.duration ?? 0) * EPOCHS_PER_DAY
    await this.#db.transaction(async ({ packed, cars }) => {
      await packed.markPacked(uploads, cids, await cars.add({ ...car, task, duration }, seconds(), network.epoch()))
    })
  }

  async *#files(uploads: readonly UploadToStore[], reading: { content?: string }): AsyncIterable<DealFile> {
    const { contents } = this.#deps
    for (const { wCid, cid, fileSize } of uploads) {
      const content = (): AsyncIterable<Uint8Array> => {
        reading.content = cid
        return contents.bytesOf(cid)
      }
      yield { path: [wCid], size: fileSize, content }
    }
  }

  async #follow(car: PackedCar, signal: AbortSignal): Promise<void> {
    const { dealer, network, urlOf, folder } = this.#deps
    if (await this.#isOver(car)) {
      await folder.remove(car.task)
      return
    }
    if (car.status === 'Packed') {
      if (!(await dealer.post({ ...car, url: urlOf(car.task) }, signal))) return
      await this.#db.transaction(({ cars }) => cars.setStatus(car.id, 'TaskCreated'))
    }
    const { dealCids, failedBy } = await dealer.progress(car.task, signal)
    let active = false
    for (const cid of dealCids) {
      const status = await network.status(cid)
      // The dealer tells the CIDs of deals: only one for this very CAR is paid.
      if (status.dataCid !== car.payloadCid) continue
      const deal = await this.#note(car, status)
      if (deal.status !== 'Active' && deal.status !== 'Success') continue
      active = true
      if (deal.status === 'Active') await this.#settle(car, deal, signal)
    }
    if (failedBy !== undefined && !active) await this.#postAgain(car, failedBy)
  }

  /** Completes a CAR of which all uploads were refunded, or settled before a crash; false while it has others. */
  async #isOver({ id }: PackedCar): Promise<boolean> {
    if ((await this.#db.read.packed.inCar(id)).length > 0) return false
    // A change of the chain may bring a payment back to an upload in the CAR meanwhile.
    return this.#db.transaction(async ({ packed, cars }) => {
      if ((await packed.inCar(id)).length > 0) return false
      await cars.setStatus(id, 'Completed')
      return true
    })
  }

  /** Another provider may take what one has given up. The CAR has both names until the table has the new one. */
  async #postAgain({ id, task }: PackedCar, failedBy: string): Promise<void> {
    const { folder } = this.#deps
    const other = randomUUID()
    await folder.share(task, other)
    await this.#db.transaction(({ cars }) => cars.postAgain(id, other, failedBy))
    await folder.remove(task)
  }

  /** Keeps the state of a deal, with a row in its log when it is a new one. */
  #note(car: PackedCar, status: DealStatus): Promise<OfflineDeal> {
    const { seconds } = this.#deps
    return this.#db.transaction(async ({ deals, cars }) => {
      if (car.status !== 'DealSent') await cars.setStatus(car.id, 'DealSent')
      return deals.note(car.id, status, seconds())
    })
  }

  /**
   * Pays the provider of an active deal its part of each upload, and gives the rest back, as far as that is done now.
   */
  async #settle(car: PackedCar, deal: OfflineDeal, signal: AbortSignal): Promise<void> {
    const { payments, seconds, folder } = this.#deps
    const { bytes, uploads } = await this.#db.transaction(async ({ packed }) => ({
      // The bytes of settled and refunded uploads count, too: they do not make the part of another larger.
      bytes: await packed.bytesOf(car.id),
      uploads: await packed.inCar(car.id),
    }))
    let left = uploads.length
    let lastHash = ''
    for (const { id, wCid, fileSize, isFree } of uploads) {
      signal.throwIfAborted()
      if (isFree === 0) {
        const hash = await payments.unlock(wCid, deal.dealCid, costOfDeal(deal, fileSize, bytes), seconds())
        if (hash === undefined || !(await payments.refund(wCid, seconds()))) continue
        lastHash = hash
      }
      left--
      await this.#db.transaction(async ({ packed, deals, cars }) => {
        await packed.markSuccess(id)
        // In one transaction with the last upload: without one, nothing would lead back to the deal.
        if (left > 0) return
        await deals.succeed(deal.id, lastHash, seconds())
        await cars.setStatus(car.id, 'Completed')
      })
    }
    if (left === 0) await folder.remove(car.task)
  }
}

/** True for a CAR that is missing or has other bytes. A disk that cannot be read now says nothing of a content. */
function isDamage(error: unknown): boolean {
  if (!(error instanceof NetworkError) || error.code !== 'NotRetrievable') return false
  const { code = 'ENOENT' } = (error.cause ?? {}) as NodeJS.ErrnoException
  return code === 'ENOENT'
}

export interface CarToStore {
  /** UUID of the task: a repeated one is the same task. */
  readonly task: string
  readonly payloadCid: string
  readonly size: number
  readonly md5: string
  /** Where a provider fetches it. */
  readonly url: string
  readonly duration: number
  /** Providers that failed with it. */
  readonly tried: readonly string[]
}

/** What became of a task. */
export interface TaskProgress {
  /** CIDs of the deals that the network has for it. */
  readonly dealCids: readonly string[]
  /** The provider that gave it up; undefined while there is hope. */
  readonly failedBy: string | undefined
}

/** What brings CARs to storage providers. Methods reject when it cannot be reached; they may be repeated. */
export interface Dealer {
  /** Asks for a deal on the CAR. False when nothing takes it now. */
  post(car: CarToStore, signal: AbortSignal): Promise<boolean>
  progress(task: string, signal: AbortSignal): Promise<TaskProgress>
}
