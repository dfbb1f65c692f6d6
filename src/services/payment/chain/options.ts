/** The chain on which payments are made, and the contract that holds them. Addresses in any case. */
export interface ChainOptions {
  /** JSON-RPC endpoint of a node, http or https. It may contain a key: it is never printed. */
  readonly url: string
  readonly chainId: number
  /** The contract that locks payments. */
  readonly contract: string
  /** The stable coin, an ERC-20 token with at most 36 decimals. */
  readonly token: string
  /** Who gets what is unlocked: a payment for another one does not count. */
  readonly recipient: string
  /** JSON file with the ABI of the contract; default: that of the events which `abi.ts` lists. */
  readonly abiFile?: string | undefined
  /** A log counts when its block has this many blocks above it; default 12. */
  readonly confirmations?: number
  /** First block whose logs count; default: the one above the latest at the first start. */
  readonly startBlock?: number | undefined
  /** Interval between two looks at the chain, ms; default 5000. */
  readonly pollMs?: number
  /** Longest wait for one answer of the node, ms; default 15000. */
  readonly timeoutMs?: number
}

export const CHAIN_DEFAULTS = Object.freeze({ confirmations: 12, pollMs: 5000, timeoutMs: 15_000 })

/** A chain cannot be used as configured. The message says what to do and contains no URL. */
export class ChainMisuse extends Error {
  override readonly name = 'ChainMisuse'
}
