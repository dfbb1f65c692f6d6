import type { ServicesLog } from '../../log.js'
import type { Network } from '../../network/network.js'
import type { Database } from '../../store/database.js'
import { checksummed, type PaymentAddresses } from '../addresses.js'
import type { Payments } from '../embedded-payments.js'
import { ChainMisuse, readAbi } from './abi.js'
import { ChainPayments, readPayment } from './chain-payments.js'
import type { ChainTables } from './effects.js'
import { ChainFollower } from './follower.js'
import { openNode } from './node.js'

export interface OpenedChain {
  readonly payments: Payments
  readonly addresses: PaymentAddresses
  /** Symbol of the token; undefined until the chain was read. */
  tokenName(): Promise<string | undefined>
  start(): void
  stop(): Promise<void>
}

export interface ChainDeps {
  readonly db: Database<ChainTables>
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
}

/**
 * Opens the chain of the options. A node that does not answer is asked again later. Rejects with ChainMisuse when the
 * ABI cannot be used, viem is not installed, the node is one of another chain, or the folder has other payments.
 */
export async function openChain(options: ChainOptions, deps: ChainDeps): Promise<OpenedChain> {
  const { db, network, seconds, log } = deps
  const { confirmations, pollMs, timeoutMs } = { ...CHAIN_DEFAULTS, ...options }
  const [contract, token, recipient] = [options.contract, options.token, options.recipient].map((address) =>
    address.toLowerCase(),
  ) as [string, string, string]
  const abi = readAbi(options.abiFile)
  await takeFolder(db, { chainId: options.chainId, contract, token })
  const stopping = new AbortController()
  const epochAt = (time: number): number =>
    network.epoch() + Math.ceil(Math.max(0, time - seconds()) / network.epochSeconds)
  const terms = { token, recipient, epochAt }
  const node = await openNode({ ...options, timeoutMs }, abi, stopping.signal)
  const lease = db.lease('chain')
  const follower = new ChainFollower({
    ...{ node, db, lease, terms, log, confirmations, pollMs },
    chainId: options.chainId,
    startBlock: options.startBlock,
    stop: stopping.signal,
  })
  await follower.check().catch((error: Error) => {
    if (error instanceof ChainMisuse) throw error
    log.warn({ reason: error.message }, 'The node of the chain does not answer. Trying again.')
  })
  let running: Promise<void> | undefined
  return {
    payments: new ChainPayments(db.read, log, readPayment({ node, db, terms }), node),
    addresses: { payment: checksummed(contract), recipient: checksummed(recipient), stable: checksummed(token) },
    tokenName: async () => (await db.read.chain.state())?.tokenName ?? undefined,
    start() {
      running ??= follower.run()
    },
    async stop() {
      stopping.abort()
      await running
      await lease.release()
    },
  }
}

/** Payments of two kinds, or of two chains, never meet in one folder. */
async function takeFolder(
  db: Database<Pick<ChainTables, 'chain' | 'locks'>>,
  wanted: Pick<ChainOptions, 'chainId' | 'contract' | 'token'>,
): Promise<void> {
  const found = await db.transaction(async ({ chain, locks }) => {
    const known = await chain.state()
    if (known !== undefined) return known
    if (await locks.any()) {
      throw new ChainMisuse('The data folder has payments of the embedded ledger: choose another one for a chain.')
    }
    await chain.begin(wanted)
    return wanted
  })
  if (found.chainId !== wanted.chainId || found.contract !== wanted.contract || found.token !== wanted.token) {
    const kept = `${found.contract} and the token ${found.token} on the chain ${found.chainId}`
    throw new ChainMisuse(`The data folder follows the contract ${kept}: choose another folder for another one.`)
  }
}

/** Throws ChainMisuse when the payments of the folder are on a chain. */
export async function requireNoChain(chain: Pick<ChainTables['chain'], 'state'>): Promise<void> {
  const found = await chain.state()
  if (found === undefined) return
  throw new ChainMisuse(
    `The payments of the data folder are on the chain ${found.chainId}: give --payment-chain-url and its other options.`,
  )
}

/** The chain on which payments are made, and the contract that holds them. Addresses in any case. */
export interface ChainOptions {
  /** JSON-RPC endpoint of a node, http or https. It may contain a key: it is never printed. */
  readonly url: string
  readonly chainId: number
  readonly contract: string
  /** The stable coin, an ERC-20 token with at most 36 decimals. */
  readonly token: string
  /** Address that gets what is unlocked: a payment for another one does not count. */
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

const CHAIN_DEFAULTS = Object.freeze({ confirmations: 12, pollMs: 5000, timeoutMs: 15_000 })
