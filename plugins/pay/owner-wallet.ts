import type { Identity } from 'dealgate/plugin'

/** A wallet whose key stays with the program that runs the server. */
export interface KeptWallet {
  /** In lower case. */
  readonly address: string
  /** Signs a nonce as `personal_sign` does. */
  sign(nonce: string): string
  /**
   * Signs the order to lock a payment in the ledger of the service that keeps the wallet.
   * @param amount millionths of a coin
   */
  order(wCid: string, amount: bigint): string
}

/** The wallet of the owner of a server that runs the payment service itself. */
export interface OwnerWallet {
  /** True for the key pair of the owner, and its sessions. */
  is(identity: Identity): boolean
  /** Always the same one; undefined where there is none. */
  wallet(): Promise<KeptWallet | undefined>
  /**
   * Gives it coins of the ledger of the service, which have no value. Rejects with RangeError beyond what that holds.
   * @param amount millionths of a coin
   * @param reference by which a repetition is known
   */
  fund(amount: bigint, reference: string): Promise<void>
}
