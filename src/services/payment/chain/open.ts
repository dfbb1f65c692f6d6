import type { Database, Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { Network } from '../../network/network.js'
import type { PaymentAddresses } from '../context.js'
import { LockTable } from '../ledger/lock-table.js'
import type { Payments } from '../ledger/payments.js'
import { checksummed } from '../wallets/address.js'
import { readAbi } from './abi.js'
import { ChainPayments } from './chain-payments.js'
import { ChainTable } from './chain-table.js'
import { ChainEffects } from './effects.js'
import { ChainFollower } from './follower.js'
import { openNode } from './node.js'
import { CHAIN_DEFAULTS, ChainMisuse, type ChainOptions } from './options.js'
import { readPayment } from './read-payment.js'

/** Payments on a chain. */
export interface OpenedChain {
  readonly payments: Payments
  readonly addresses: PaymentAddresses
  /** Symbol of the token; undefined until the chain was read. */
  tokenName(): string | undefined
  /** Follows the chain from now on. */
  start(): void
  stop(): Promise<void>
}

export interface ChainParts {
  readonly db: Database
  readonly writer: Writer
  readonly network: Network
  /** Unix seconds. */
  readonly seconds: () => number
  readonly log: ServicesLog
}

/**
 * Opens the chain of the options. A node that does not answer is asked again later. Rejects with ChainMisuse when the
 * ABI cannot be used, viem is not installed, the node is one of another chain, or the folder has other payments.
 */
export async function openChain(options: ChainOptions, parts: ChainParts): Promise<OpenedChain> {
  const { db, writer, network, seconds, log } = parts
  const { confirmations, pollMs, timeoutMs } = { ...CHAIN_DEFAULTS, ...options }
  const [contract, token, recipient] = [options.contract, options.token, options.recipient].map((address) =>
    address.toLowerCase(),
  ) as [string, string, string]
  const table = new ChainTable(db)
  const abi = readAbi(options.abiFile)
  await takeFolder(table, writer, db, { chainId: options.chainId, contract, token })
  const stopping = new AbortController()
  const locks = new LockTable(db)
  const epochAt = (time: number): number =>
    network.epoch() + Math.ceil(Math.max(0, time - seconds()) / network.epochSeconds)
  const effects = new ChainEffects({ db, table, locks, token, recipient, epochAt })
  const node = await openNode({ ...options, timeoutMs }, abi, stopping.signal)
  const follower = new ChainFollower({
    ...{ node, table, effects, writer, log, confirmations, pollMs },
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
    payments: new ChainPayments(table, locks, log, readPayment({ node, table, effects, writer })),
    addresses: { payment: checksummed(contract), recipient: checksummed(recipient), stable: checksummed(token) },
    tokenName: () => table.state()?.tokenName ?? undefined,
    start() {
      running ??= follower.run()
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** Payments of two kinds, or of two chains, never meet in one folder. */
async function takeFolder(
  table: ChainTable,
  writer: Writer,
  db: Database,
  wanted: Pick<ChainOptions, 'chainId' | 'contract' | 'token'>,
): Promise<void> {
  const found = table.state()
  if (found === undefined) {
    if (db.prepare('SELECT 1 FROM locks LIMIT 1').get() !== undefined) {
      throw new ChainMisuse('The data folder has payments of the embedded ledger: choose another one for a chain.')
    }
    await writer.run(() => table.begin(wanted))
    return
  }
  if (found.chainId !== wanted.chainId || found.contract !== wanted.contract || found.token !== wanted.token) {
    const kept = `${found.contract} and the token ${found.token} on the chain ${found.chainId}`
    throw new ChainMisuse(`The data folder follows the contract ${kept}: choose another folder for another one.`)
  }
}

/** Throws ChainMisuse when the payments of the folder are on a chain. */
export function requireNoChain(db: Database): void {
  const found = new ChainTable(db).state()
  if (found === undefined) return
  throw new ChainMisuse(
    `The payments of the data folder are on the chain ${found.chainId}: give --payment-chain-url and its other options.`,
  )
}
