import { DAY_SECONDS } from '../../../common/time.js'
import type { Database } from '../../database.js'
import { inUnits, MAX_ISSUED, PRICE_DECIMALS } from '../embedded-payments.js'
import type { Lock, LockTable } from '../ledger.js'
import { LOCK_DAYS } from '../prices.js'
import type { ChainEvent } from './abi.js'
import type { ChainLog, ChainTable } from './chain-table.js'
import type { LockedPayment } from './node.js'

/** An event whose block is confirmed. */
export type ConfirmedEvent = ChainEvent & {
  /** Unix seconds of its block. */
  readonly time: number
  /** Who sent its transaction, in lower case. */
  readonly sender: string
}

interface EffectDeps {
  readonly db: Database
  readonly table: ChainTable
  readonly locks: LockTable
  /** Addresses in lower case. */
  readonly token: string
  readonly recipient: string
  /** Epoch of the network at a time, Unix seconds. */
  readonly epochAt: (time: number) => number
}

interface PaidUpload {
  readonly id: number
  readonly wallet: string
  readonly price: bigint
  readonly status: string
  readonly isFree: bigint
  readonly car: bigint | null
  readonly carStatus: string | null
}

const COUNTED = 'counted'

/** Most logs of an upload that are kept of those that do not count. */
const MAX_REFUSED = 100

/** A block has fewer events. */
const MAX_EVENTS = 2 ** 32

/** Later deadlines are mistakes, Unix seconds. */
const MAX_DEADLINE = 2n ** 40n

/** What logs of the contract do to payments and uploads, and how that is taken back. Call it inside a transaction. */
export class ChainEffects {
  readonly #deps: EffectDeps
  readonly #find
  readonly #setStatus

  constructor(deps: EffectDeps) {
    this.#deps = deps
    this.#find = deps.db.prepare(
      `SELECT uploads.id, wallet, price, uploads.status, is_free AS isFree, car, cars.status AS carStatus
        FROM uploads LEFT JOIN cars ON cars.id = uploads.car WHERE w_cid = ?`,
    )
    this.#find.setReadBigInts(true)
    this.#setStatus = deps.db.prepare('UPDATE uploads SET status = ?, car = ? WHERE id = ?')
  }

  /** True for an event about an upload of the service. */
  concerns(event: ChainEvent): boolean {
    return this.#upload(event.wCid) !== undefined
  }

  /** @returns why the event does not count; undefined if it does, or is one of too many that do not */
  apply(event: ConfirmedEvent): string | undefined {
    const upload = this.#upload(event.wCid)
    if (upload === undefined) return undefined
    const { index, block, blockHash, hash, kind, wCid, time } = event
    const refusal = kind === 'lock' ? this.#refusal(event, upload) : this.#isForeign(event)
    // Anyone can make payments that do not count.
    if (refusal !== undefined && this.#deps.table.countRefused(wCid) >= MAX_REFUSED) return undefined
    const applied = refusal === undefined ? this.#count(event, upload) : { amount: event.amount, outcome: refusal }
    this.#deps.table.addLog({
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
  settle(
    wCid: string,
    { deadline, rest, isOpen }: LockedPayment,
    place: { readonly block: number; readonly blockHash: string; readonly time: number },
  ): void {
    const { locks } = this.#deps
    const lock = locks.find(wCid)
    const upload = this.#upload(wCid)
    if (lock === undefined || !lock.isOpen || upload === undefined) return
    // Another payment has its place: it ended before, and was not refunded, as that is an event.
    const isOther = deadline !== BigInt(lock.deadline)
    const left = isOther ? 0n : rest
    const unlocked = lock.amount - left - lock.unlocked
    const isOver = isOther || !isOpen
    // Each payment has places of its own, above those of events.
    const at = MAX_EVENTS + 2 * lock.id
    if (unlocked > 0n) {
      locks.unlock(wCid, unlocked, place.time)
      this.#addRead({ ...place, position: at, kind: 'unlock', wCid, amount: unlocked, formerStatus: null })
    }
    if (!isOver) return
    locks.close(wCid, left)
    if (left === 0n) return
    const isRefunded = locks.find(wCid)?.unlockedAt === 0 && upload.status !== 'Success'
    if (isRefunded) this.#setStatus.run('Refunded', upload.car, upload.id)
    const formerStatus = isRefunded ? upload.status : null
    this.#addRead({ ...place, position: at + 1, kind: 'refund', wCid, amount: left, formerStatus })
  }

  #addRead(log: Omit<ChainLog, 'hash' | 'outcome'>): void {
    this.#deps.table.addLog({ ...log, hash: '', outcome: COUNTED })
  }

  /**
   * Takes back what logs above a block did, the last one first.
   * @returns how many there were
   */
  goBackTo(number: number): number {
    const { table } = this.#deps
    const logs = table.logsAbove(number)
    for (const log of logs) if (log.outcome === COUNTED) this.#takeBack(log)
    table.goBackTo(number)
    return logs.length
  }

  /** Why a payment does not count; undefined if it does. It comes back by the contract, at its deadline. */
  #refusal(event: ConfirmedEvent & { readonly kind: 'lock' }, upload: PaidUpload): string | undefined {
    const { token, recipient, locks } = this.#deps
    const known = locks.find(event.wCid)
    // One that a reorganisation has moved, for an upload that was settled before.
    if (known?.hash === event.hash) return undefined
    if (event.token !== token) return 'another token'
    if (event.recipient !== recipient) return 'another recipient'
    if ((event.owner ?? event.sender) !== upload.wallet) return 'another wallet'
    if (upload.isFree === 1n) return 'free'
    if (known !== undefined || upload.status !== 'Pending') return 'paid twice'
    if (event.amount < this.#inUnits(upload.price)) return 'underpaid'
    if (event.amount > this.#inUnits(MAX_ISSUED)) return 'too large'
    if (event.deadline < BigInt(event.time + LOCK_DAYS * DAY_SECONDS)) return 'locked too short'
    return event.deadline > MAX_DEADLINE ? 'locked too long' : undefined
  }

  /** A folder of a former version has a token with six decimals. */
  #inUnits(millionths: bigint): bigint {
    return inUnits(millionths, this.#deps.table.state()?.decimals ?? PRICE_DECIMALS)
  }

  #isForeign({ token }: ChainEvent & { readonly token: string | undefined }): string | undefined {
    return token === undefined || token === this.#deps.token ? undefined : 'another token'
  }

  #count(event: ConfirmedEvent, upload: PaidUpload): Partial<ChainLog> & { amount: bigint; outcome: string } {
    const { locks } = this.#deps
    const lock = locks.find(event.wCid)
    if (event.kind === 'lock') {
      if (lock === undefined) this.#lock(event, upload)
      return { amount: event.amount, outcome: COUNTED }
    }
    if (lock === undefined || !lock.isOpen) return { amount: event.amount, outcome: 'nothing is locked' }
    const rest = restOf(lock)
    const amount = event.amount < rest ? event.amount : rest
    if (event.kind === 'unlock') {
      locks.unlock(event.wCid, amount, event.time)
      if (amount === rest) locks.close(event.wCid, 0n)
      return { amount, outcome: COUNTED }
    }
    // Some contracts unlock by an event that names no upload: what does not come back was unlocked before.
    if (amount > 0n && amount < rest) locks.unlock(event.wCid, rest - amount, event.time)
    locks.close(event.wCid, amount)
    if (locks.find(event.wCid)?.unlockedAt !== 0 || upload.status === 'Success') return { amount, outcome: COUNTED }
    // Given back without a deal that was paid.
    this.#setStatus.run('Refunded', upload.car, upload.id)
    return { amount, outcome: COUNTED, formerStatus: upload.status }
  }

  #lock(event: ConfirmedEvent & { readonly kind: 'lock' }, upload: PaidUpload): void {
    const { wCid, amount, time, hash } = event
    const deadline = Number(event.deadline)
    const deadlineEpoch = this.#deps.epochAt(deadline)
    this.#deps.locks.add({ wCid, wallet: upload.wallet, amount, paidAt: time, deadline, deadlineEpoch }, hash)
    // A payment that had vanished comes back: the CAR that holds the upload may still be on its way.
    const inCar = upload.car !== null && upload.carStatus !== 'Completed'
    this.#setStatus.run(inCar ? 'TaskCreated' : 'Paid', inCar ? upload.car : null, upload.id)
  }

  #takeBack({ kind, wCid, block, position, formerStatus }: ChainLog): void {
    const { locks, table } = this.#deps
    const lock = locks.find(wCid)
    const upload = this.#upload(wCid)
    // What is spent stays spent: the deal of the upload is made and paid.
    if (lock === undefined || upload === undefined || upload.status === 'Success') return
    if (kind === 'lock') {
      locks.remove(wCid)
      this.#setStatus.run('Pending', upload.car, upload.id)
      return
    }
    const before = table
      .logsOf(wCid)
      .filter((log) => log.kind === 'unlock' && log.outcome === COUNTED)
      .filter((log) => log.block < block || (log.block === block && log.position < position))
    const unlocked = before.reduce((sum, log) => sum + log.amount, 0n)
    locks.restore(wCid, unlocked, before.at(-1)?.time ?? 0)
    if (formerStatus !== null) this.#setStatus.run(formerStatus, upload.car, upload.id)
  }

  #upload(wCid: string): PaidUpload | undefined {
    const row = this.#find.get(wCid) as (PaidUpload & { readonly id: bigint }) | undefined
    return row && { ...row, id: Number(row.id) }
  }
}

function restOf({ amount, unlocked, refunded }: Lock): bigint {
  return amount - unlocked - refunded
}
