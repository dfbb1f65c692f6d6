import { createHash } from 'node:crypto'
import type { ServicesLog } from '../../log.js'
import { formatFil, parseFil, priceOfPiece } from '../../network/fil.js'
import { type MadeDeal, type Network, NetworkError, type OfflineDeals, type PackedCar } from '../../network/network.js'
import { type Lease, tableOf } from '../../store/database.js'
import {
  DEAL_ACTIVE,
  type DealTable,
  type DealUpdate,
  FILE_IMPORTED,
  FILE_IMPORTING,
  READY_FOR_IMPORT,
} from '../tasks/deal-table.js'
import { writeUpdate } from '../tasks/progress.js'
import type { TaskTable } from '../tasks/task-table.js'
import type { CarFolder } from './car-folder.js'

interface ImporterDeps {
  readonly lease: Lease<{ readonly tasks: TaskTable; readonly deals: DealTable; readonly imports: ImportTable }>
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
}

/** Failures that say nothing about the deal: the provider tries again. */
const PASSING: readonly NetworkError['code'][] = ['ProviderOffline', 'Unavailable']

/**
 * Gives the providers of the network the CARs that they have fetched, one after the other, and follows their deals
 * until they are active. Each step is durable before the next; one that a crash cut off is done again, with the same
 * deal. So it is when another process goes on: the network knows proposals by their references, and takes the data of
 * a deal once.
 */
export class Importer {
  readonly #deps: ImporterDeps
  readonly #folder: CarFolder
  readonly #signal: AbortSignal
  #running: Promise<void> | undefined
  #again = false

  constructor(deps: ImporterDeps, folder: CarFolder, signal: AbortSignal) {
    this.#deps = deps
    this.#folder = folder
    this.#signal = signal
  }

  async isDue(): Promise<boolean> {
    const { lease, network } = this.#deps
    return network.offline !== undefined && (await lease.db.read.imports.anyDue(network.epoch()))
  }

  kick(): void {
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    const { network, lease, log } = this.#deps
    const next = () => lease.db.read.imports.next(network.epoch())
    const { offline } = network
    try {
      while (this.#again && offline !== undefined && !this.#signal.aborted && lease.held()) {
        this.#again = false
        await this.#folder.open()
        for (let deal = await next(); deal !== undefined; deal = await next()) {
          this.#signal.throwIfAborted()
          lease.signal.throwIfAborted()
          await this.#goOn(offline, deal)
        }
      }
    } catch (err) {
      if (!this.#signal.aborted) log.warn({ err }, 'Could not import all CARs of deals.')
    }
  }

  async #goOn(offline: OfflineDeals, deal: DealToImport): Promise<void> {
    try {
      if (deal.status === FILE_IMPORTED) await this.#follow(deal)
      else await this.#import(offline, deal)
    } catch (error) {
      this.#signal.throwIfAborted()
      if (isMissing(error)) return void (await this.#write(await this.#current(deal), { status: 'Waiting', note: '' }))
      if (!(error instanceof NetworkError)) {
        await this.#postpone(deal)
        throw error
      }
      if (PASSING.includes(error.code)) await this.#postpone(deal)
      else await this.#fail(deal, error.message)
    }
  }

  async #import(offline: OfflineDeals, deal: DealToImport): Promise<void> {
    const { network } = this.#deps
    const again = { status: FILE_IMPORTING, due: network.epoch() }
    if (deal.status === READY_FOR_IMPORT && !(await this.#write(deal, again))) return
    const car = await offline.inspect(this.#folder.fileOf(deal.minerId, deal.id), this.#signal)
    requireNamed(deal, car)
    const known = deal.dealCid !== null && (await offline.knows(deal.minerId, deal.dealCid))
    const proposal = known ? undefined : await this.#proposalOf(offline, deal, car)
    const importing = { ...deal, status: FILE_IMPORTING }
    // The deal must be known before the provider has it: a repeated import would make another.
    if (proposal !== undefined && !(await this.#write(importing, { ...again, proposal }))) return
    const due = await offline.import(proposal?.dealCid ?? deal.dealCid ?? '', car, this.#signal)
    await this.#write(importing, { status: FILE_IMPORTED, due })
  }

  /** The client's deal that waits for this CAR, or one that the provider makes. */
  async #proposalOf(offline: OfflineDeals, deal: DealToImport, car: PackedCar): Promise<MadeDeal> {
    const { lease, network } = this.#deps
    for (const waiting of await offline.waitingFor(deal.minerId, car.pieceCid)) {
      if (!(await lease.db.read.imports.isTaken(waiting.dealCid))) return waiting
    }
    return proposeOwn(network, offline, deal, car, this.#signal)
  }

  async #follow(deal: DealToImport): Promise<void> {
    const { state, message } = await this.#deps.network.status(deal.dealCid ?? '')
    if (state === 'StorageDealActive') {
      if (await this.#write(deal, { status: DEAL_ACTIVE, note: '' })) await this.#folder.remove(deal)
    } else if (state === 'StorageDealError' || state === 'StorageDealExpired') await this.#fail(deal, message)
    else await this.#postpone(deal)
  }

  async #fail(deal: DealToImport, note: string): Promise<void> {
    this.#deps.log.info({ deal: deal.id, reason: note }, 'Could not import the CAR of a deal.')
    if (await this.#write(await this.#current(deal), { status: 'ImportFailed', note })) await this.#folder.remove(deal)
  }

  /** The deal after the steps of this import. */
  async #current(deal: DealToImport): Promise<DealToImport> {
    const begun = (await this.#deps.lease.db.read.deals.find(deal.id))?.status === FILE_IMPORTING
    return begun ? { ...deal, status: FILE_IMPORTING } : deal
  }

  #postpone({ id }: DealToImport): Promise<void> {
    const { lease, network } = this.#deps
    return lease.db.transaction(({ imports }) => imports.postpone(id, network.epoch() + 1))
  }

  /** Returns false when the owner has written another state meanwhile: it stays. */
  #write({ id, status }: DealToImport, update: DealUpdate): Promise<boolean> {
    const { lease, network, seconds } = this.#deps
    return lease.db.transaction(async (tables) => {
      if ((await tables.deals.find(id))?.status !== status) return false
      await writeUpdate(tables, id, update, seconds(), network.epoch())
      return true
    })
  }
}

/** Throws NetworkError unless the CAR is the one that the task names. */
function requireNamed({ payloadCid, pieceCid }: DealToImport, car: PackedCar): void {
  if (payloadCid !== null && payloadCid !== car.dataCid) {
    throw new NetworkError('DataRefused', `The root of the CAR is not ${payloadCid}, which the task names.`)
  }
  if (pieceCid !== null && pieceCid !== car.pieceCid) {
    throw new NetworkError('DataRefused', `The CAR is not the piece ${pieceCid}, which the task names.`)
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
}

interface DealToImport {
  readonly id: number
  readonly status: string
  readonly minerId: string
  readonly uuid: string
  readonly isVerified: boolean
  readonly fastRetrieval: boolean
  /** Price of the bid that won the task, attofil per GiB and epoch; null when the poster chose the provider. */
  readonly bidPrice: bigint | null
  readonly duration: number
  readonly dealCid: string | null
  readonly payloadCid: string | null
  readonly pieceCid: string | null
  /** Bytes that the CAR takes in the folder. */
  readonly stored: number
}

interface DueRow extends Omit<DealToImport, 'isVerified' | 'fastRetrieval' | 'bidPrice'> {
  readonly isVerified: number
  readonly fastRetrieval: number
  readonly price: string | null
}

const DUE =
  "due IS NOT NULL AND stored IS NOT NULL AND deals.status IN ('ReadyForImport', 'FileImporting', 'FileImported')"

export class ImportTable extends tableOf({
  isDue: `SELECT 1 FROM deals WHERE ${DUE} AND due <= ? LIMIT 1`,
  next: `
  SELECT deals.id, deals.status, tasks.miner_id AS "minerId", tasks.uuid, CASE tasks.type WHEN 'verified' THEN 1 ELSE 0 END AS "isVerified",
    tasks.fast_retrieval AS "fastRetrieval", tasks.duration, deals.deal_cid AS "dealCid", deals.payload_cid AS "payloadCid",
    deals.piece_cid AS "pieceCid", deals.stored,
    (SELECT price FROM bids WHERE bids.task = tasks.id AND bids.miner_id = tasks.miner_id AND bids.status = 'Won') AS price
  FROM deals JOIN tasks ON tasks.id = deals.task
  WHERE deals.id = (SELECT id FROM deals WHERE ${DUE} AND due <= ? ORDER BY due, id LIMIT 1)
`,
  postpone: 'UPDATE deals SET due = ? WHERE id = ? AND due IS NOT NULL',
  isTaken: 'SELECT 1 FROM deals WHERE deal_cid = ? LIMIT 1',
}) {
  async anyDue(epoch: number): Promise<boolean> {
    return (await this.sql.isDue.get(epoch)) !== undefined
  }

  /** The deal that is due for the longest time. */
  async next(epoch: number): Promise<DealToImport | undefined> {
    const row = await this.sql.next.get<DueRow>(epoch)
    if (row === undefined) return undefined
    const { price, isVerified, fastRetrieval, ...rest } = row
    return {
      ...rest,
      isVerified: isVerified === 1,
      fastRetrieval: fastRetrieval === 1,
      bidPrice: price === null ? null : BigInt(price),
    }
  }

  async isTaken(dealCid: string): Promise<boolean> {
    return (await this.sql.isTaken.get(dealCid)) !== undefined
  }

  /** Call it inside a transaction. */
  async postpone(id: number, due: number): Promise<void> {
    await this.sql.postpone.run(due, id)
  }
}

/**
 * Proposes a deal for a CAR that a task of another program brings, without one that the network knows. The provider
 * stores it at the price of its bid, or else at its usual price, and signs for the client. The same deal for a repeated
 * call. Throws NetworkError.
 */
async function proposeOwn(
  network: Network,
  offline: OfflineDeals,
  deal: DealToImport,
  car: PackedCar,
  signal: AbortSignal,
): Promise<MadeDeal> {
  const { minerId, isVerified, duration, fastRetrieval, bidPrice } = deal
  const provider = (await network.providers()).find((one) => one.minerId === minerId)
  const perGiB = bidPrice ?? parseFil((isVerified ? provider?.verifiedPrice : provider?.price) ?? '')
  if (perGiB === undefined) throw new NetworkError('TermsRefused', `Provider ${minerId} takes no such deals.`)
  const price = formatFil(priceOfPiece(perGiB, car.pieceSize))
  const terms = { minerId, price, duration, verifiedDeal: isVerified, fastRetrieval }
  const wallet = createHash('sha256').update(`provider ${minerId}`).digest('hex')
  return offline.propose({ reference: `task ${deal.uuid} ${deal.id}`, terms, wallet, car, signal })
}
