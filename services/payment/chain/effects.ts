import { DAY_SECONDS } from '../../../common/time.js'
import { tableOf } from '../../store/database.js'
import { inUnits, MAX_ISSUED, PRICE_DECIMALS } from '../embedded-payments.js'
import type { Lock, LockTable } from '../ledger.js'
import { MAX_LOCK_DAYS } from '../prices.js'
import type { ChainEvent } from './abi.js'
import type { ChainLog, ChainTable } from './chain-table.js'
import type { LockedPayment } from './node.js'

/** An event whose block is confirmed. */
export type ConfirmedEvent = ChainEvent & {
  /** Unix seconds of its block. */
  readonly time: number
  /** Address that sent its transaction, in lower case. */
  readonly sender: string
}

/** What changes by the logs of the contract. */
export interface ChainTables {
  readonly chain: ChainTable
  readonly locks: LockTable
  readonly paid: PaidUploads
}

export interface ChainTerms {
  /** Addresses in lower case. */
  readonly token: string
  readonly recipient: string
  /** Epoch of the network at a time, Unix seconds. */
  readonly epochAt: (time: number) => number
}

interface PaidUpload {
  readonly id: number
  readonly wallet: string
  /** Millionths of a coin. */
  readonly price: number
  readonly status: string
  readonly isFree: 0 | 1
  readonly car: number | null
  readonly carStatus: string | null
}

const COUNTED = 'counted'

/** Most logs of an upload that are kept of those that do not count. */
const MAX_REFUSED = 100

/** A block has fewer events. */
const MAX_EVENTS = 2 ** 32

/** Later deadlines are mistakes, Unix seconds. */
const MAX_DEADLINE = 2n ** 40n

/** The uploads that payments are for. Call writing methods inside a transaction. */
export class PaidUploads extends tableOf({
  find: `SELECT uploads.id, wallet, price, uploads.status, is_free AS "isFree", car, cars.status AS "carStatus"
    FROM uploads LEFT JOIN cars ON cars.id = uploads.car WHERE w_cid = ?`,
  setStatus: 'UPDATE uploads SET status = ?, car = ? WHERE id = ?',
}) {
  find(wCid: string): Promise<PaidUpload | undefined> {
    return this.sql.find.get<PaidUpload>(wCid)
  }

  async setStatus({ id }: PaidUpload, status: string, car: number | null): Promise<void> {
    await this.sql.setStatus.run(status, car, id)
  }
}

/** What logs of the contract do to payments and uploads, and how that is taken back, inside a transaction. */
export class ChainEffects {
  readonly #terms: ChainTerms
  readonly #tables: ChainTables

  /** @param tables of the transaction */
  constructor(terms: ChainTerms, tables: ChainTables) {
    this.#terms = terms
    this.#tables = tables
  }

  /** @returns why the event does not count; undefined if it does, or is one of too many that do not */
  async apply(event: ConfirmedEvent): Promise<string | undefined> {
    const { chain, paid } = this.#tables
    const upload = await paid.find(event.wCid)
    if (upload === undefined) return undefined
    const { index, block, blockHash, hash, kind, wCid, time } = event
    const refusal = kind === 'lock' ? await this.#refusal(event, upload) : this.#isForeign(event)
    // Anyone can make payments that do not count.
    if (refusal !== undefined && (await chain.countRefused(wCid)) >= MAX_REFUSED) return undefined
    const applied =
      refusal === undefined ? await this.#count(event, upload) : { amount: event.amount, outcome: refusal }
    await chain.addLog({
      block,
      position: index,
      blockHash,
      hash,
      kind,
      wCid,
      time,
      formerStatus: null,
      ...applied,
    })
    return refusal
  }

  /**
   * Brings a payment to what the contract has of it: some contracts pay for deals, and end payments without a rest, by
   * no event that names the upload. Without effect when all events of the payment up to the block tell the same.
   * @param place the block, up to which all events are applied
   */
  async settle(
    wCid: string,
    { deadline, rest, isOpen }: LockedPayment,
    place: { readonly block: number; readonly blockHash: string; readonly time: number },
  ): Promise<void> {
    const { locks, paid } = this.#tables
    const lock = await locks.find(wCid)
    const upload = await paid.find(wCid)
    if (lock === undefined || !lock.isOpen || upload === undefined) return
    // Another payment has its place: it ended before, and was not refunded, as that is an event.
    const isOther = deadline !== BigInt(lock.deadline)
    const left = isOther ? 0n : rest
    const unlocked = lock.amount - left - lock.unlocked
    const isOver = isOther || !isOpen
    // Each payment has places of its own, above those of events.
    const at = MAX_EVENTS + 2 * lock.id
    if (unlocked > 0n) {
      await locks.unlock(wCid, unlocked, place.time)
      await this.#addRead({ ...place, position: at, kind: 'unlock', wCid, amount: unlocked, formerStatus: null })
    }
    if (!isOver) return
    await locks.close(wCid, left)
    if (left === 0n) return
    const isRefunded = (await locks.find(wCid))?.unlockedAt === 0 && upload.status !== 'Success'
    if (isRefunded) await paid.setStatus(upload, 'Refunded', upload.car)
    const formerStatus = isRefunded ? upload.status : null
    await this.#addRead({ ...place, position: at + 1, kind: 'refund', wCid, amount: left, formerStatus })
  }

  #addRead(log: Omit<ChainLog, 'hash' | 'outcome'>): Promise<void> {
    return this.#tables.chain.addLog({ ...log, hash: '', outcome: COUNTED })
  }

  /**
   * Takes back what logs above a block did, the last one first.
   * @returns how many there were
   */
  async goBackTo(number: number): Promise<number> {
    const { chain } = this.#tables
    const logs = await chain.logsAbove(number)
    for (const log of logs) if (log.outcome === COUNTED) await this.#takeBack(log)
    await chain.goBackTo(number)
    return logs.length
  }

  /** Why a payment does not count; undefined if it does. It comes back by the contract, at its deadline. */
  async #refusal(event: ConfirmedEvent & { readonly kind: 'lock' }, upload: PaidUpload): Promise<string | undefined> {
    const { token, recipient } = this.#terms
    const known = await this.#tables.locks.find(event.wCid)
    // A reorganisation has moved the payment of an upload that was settled before: it still counts.
    if (known?.hash === event.hash) return undefined
    if (event.token !== token) return 'another token'
    if (event.recipient !== recipient) return 'another recipient'
    if ((event.owner ?? event.sender) !== upload.wallet) return 'another wallet'
    if (upload.isFree === 1) return 'free'
    if (known !== undefined || upload.status !== 'Pending') return 'paid twice'
    if (event.amount < (await this.#inUnits(BigInt(upload.price)))) return 'underpaid'
    if (event.amount > (await this.#inUnits(MAX_ISSUED))) return 'too large'
    if (event.deadline < BigInt(event.time + MAX_LOCK_DAYS * DAY_SECONDS)) return 'locked too short'
    return event.deadline > MAX_DEADLINE ? 'locked too long' : undefined
  }

  /** A folder of a former version has a token with six decimals. */
  async #inUnits(millionths: bigint): Promise<bigint> {
    return inUnits(millionths, (await this.#tables.chain.state())?.decimals ?? PRICE_DECIMALS)
  }

  #isForeign({ token }: ChainEvent & { readonly token: string | undefined }): string | undefined {
    return token === undefined || token === this.#terms.token ? undefined : 'another token'
  }

  async #count(
    event: ConfirmedEvent,
    upload: PaidUpload,
  ): Promise<Partial<ChainLog> & { amount: bigint; outcome: string }> {
    const { locks, paid } = this.#tables
    const lock = await locks.find(event.wCid)
    if (event.kind === 'lock') {
      if (lock === undefined) await this.#lock(event, upload)
      return { amount: event.amount, outcome: COUNTED }
    }
    if (lock === undefined || !lock.isOpen) return { amount: event.amount, outcome: 'nothing is locked' }
    const rest = restOf(lock)
    const amount = event.amount < rest ? event.amount : rest
    if (event.kind === 'unlock') {
      await locks.unlock(event.wCid, amount, event.time)
      if (amount === rest) await locks.close(event.wCid, 0n)
      return { amount, outcome: COUNTED }
    }
    // Some contracts unlock by an event that names no upload: what does not come back was unlocked before.
    if (amount > 0n && amount < rest) await locks.unlock(event.wCid, rest - amount, event.time)
    await locks.close(event.wCid, amount)
    const isPaid = (await locks.find(event.wCid))?.unlockedAt !== 0
    if (isPaid || upload.status === 'Success') return { amount, outcome: COUNTED }
    // Given back without a deal that was paid.
    await paid.setStatus(upload, 'Refunded', upload.car)
    return { amount, outcome: COUNTED, formerStatus: upload.status }
  }

  async #lock(event: ConfirmedEvent & { readonly kind: 'lock' }, upload: PaidUpload): Promise<void> {
    const { locks, paid } = this.#tables
    const { wCid, amount, time, hash } = event
    const deadline = Number(event.deadline)
    const deadlineEpoch = this.#terms.epochAt(deadline)
    await locks.add({ wCid, wallet: upload.wallet, amount, paidAt: time, deadline, deadlineEpoch }, hash)
    // A payment that had vanished comes back: the CAR that holds the upload may still be on its way.
    const inCar = upload.car !== null && upload.carStatus !== 'Completed'
    await paid.setStatus(upload, inCar ? 'TaskCreated' : 'Paid', inCar ? upload.car : null)
  }

  async #takeBack({ kind, wCid, block, position, formerStatus }: ChainLog): Promise<void> {
    const { locks, chain, paid } = this.#tables
    const lock = await locks.find(wCid)
    const upload = await paid.find(wCid)
    // What is spent stays spent: the deal of the upload is made and paid.
    if (lock === undefined || upload === undefined || upload.status === 'Success') return
    if (kind === 'lock') {
      await locks.remove(wCid)
      await paid.setStatus(upload, 'Pending', upload.car)
      return
    }
    const before = (await chain.logsOf(wCid))
      .filter((log) => log.kind === 'unlock' && log.outcome === COUNTED)
      .filter((log) => log.block < block || (log.block === block && log.position < position))
    const unlocked = before.reduce((sum, log) => sum + log.amount, 0n)
    await locks.restore(wCid, unlocked, before.at(-1)?.time ?? 0)
    if (formerStatus !== null) await paid.setStatus(upload, formerStatus, upload.car)
  }
}

function restOf({ amount, unlocked, refunded }: Lock): bigint {
  return amount - unlocked - refunded
}
