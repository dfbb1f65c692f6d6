/**
 * A payment for an upload: locked until its deals are made, or its deadline passes. Amounts are in the smallest units
 * of its coin.
 */
export interface Lock {
  /** Number of the payment, in the order of payments. */
  readonly id: number
  readonly wCid: string
  /** Address of the payer, in lower case. */
  readonly wallet: string
  readonly amount: bigint
  /** Hash of the transfer that locked it. */
  readonly hash: string
  /** Unix seconds. */
  readonly paidAt: number
  readonly deadline: number
  /** Epoch of the network at which the deadline passes. */
  readonly deadlineEpoch: number
  /** What was unlocked for the storage provider so far, and when last; 0 when never. */
  readonly unlocked: bigint
  readonly unlockedAt: number
  /** What went back to the wallet. */
  readonly refunded: bigint
  /** False once nothing is locked any more. */
  readonly isOpen: boolean
}

/** What a wallet orders to lock. */
export type PaymentOrder = Pick<Lock, 'wCid' | 'wallet' | 'amount' | 'paidAt' | 'deadline' | 'deadlineEpoch'>

/** A payment that does not count for its upload. */
export interface RefusedPayment {
  /** Hash of the transfer. */
  readonly hash: string
  readonly amount: bigint
  /** In a few words. */
  readonly reason: string
}

/** The payments for uploads, as the service uses them. What has been done is durable when a promise resolves. */
export interface Payments {
  /** Millionths of a coin in its smallest units, in which locks are; undefined while the coin is not known. */
  inUnits(millionths: bigint): bigint | undefined
  /** The payment for an upload. */
  find(wCid: string): Lock | undefined
  /** Payments for an upload that were made but do not count: they come back to their wallets. */
  refused(wCid: string): readonly RefusedPayment[]
  /**
   * Gives a part of a lock to the storage provider, once per deal: a repeated call changes nothing. No more than is
   * locked is given.
   * @param deal name of the deal, unique for the lock
   * @param amount millionths of a coin
   * @returns hash of the transfer; undefined while others have yet to make it: ask again later
   */
  unlock(wCid: string, deal: string, amount: bigint, now: number): Promise<string | undefined>
  /**
   * Gives what is left of a lock back to its wallet, and closes it. Without effect on a closed one.
   * @returns false while others have yet to do it: ask again later
   */
  refund(wCid: string, now: number): Promise<boolean>
}
