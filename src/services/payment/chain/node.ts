import { z } from 'zod'
import { type AbiEvent, type ChainEvent, ChainMisuse, eventOf } from './abi.js'
import type { ChainOptions } from './open.js'

/** Largest answer of the node, bytes: the logs of a full block are smaller. */
const MAX_ANSWER = 8 * 2 ** 20

const hash = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/)
  .transform((text) => text.toLowerCase())
const data = z.custom<`0x${string}`>((value) => typeof value === 'string' && /^0x([0-9a-fA-F]{2})*$/.test(value))
const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text) => text.toLowerCase())
const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,13}$/)
  .transform(Number)

const blockSchema = z.object({ hash, number: quantity, timestamp: quantity }).nullable()
const transactionSchema = z.object({ from: address }).nullable()
const logSchema = z.object({
  address,
  data,
  topics: z.array(data).max(4),
  blockNumber: quantity,
  blockHash: hash,
  transactionHash: hash,
  logIndex: quantity,
  removed: z.boolean().optional(),
})

export type ChainBlock = NonNullable<z.infer<typeof blockSchema>>

/** The node does not answer, or not as it should. The message contains no URL. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure'
}

/** A payment as the contract tells it. */
export interface LockedPayment {
  /** Unix seconds. */
  readonly deadline: bigint
  /** What is left of it; what went back, where it was refunded. */
  readonly rest: bigint
  /** False once nothing is locked any more. */
  readonly isOpen: boolean
}

/** A node of the chain, by JSON-RPC. Methods reject with NodeFailure; each answer is bounded in time and size. */
export interface ChainNode {
  chainId(): Promise<number>
  /** Number of the latest block. */
  head(): Promise<number>
  /** Undefined when the chain has no block of this number. */
  block(number: number): Promise<ChainBlock | undefined>
  /** Events of the contract in these blocks, in their order. */
  events(from: number, to: number): Promise<ChainEvent[]>
  /** Who sent a transaction, in lower case; undefined when it is not in the chain. */
  sender(transaction: string): Promise<string | undefined>
  /**
   * What the contract has of a payment after this block; undefined when it has none, or does not tell.
   */
  locked(wCid: string, block: number): Promise<LockedPayment | undefined>
  /** Of the token. */
  coin(): Promise<{ readonly decimals: number; readonly symbol: string | undefined }>
}

/** Of the usual contract. One without it reverts. */
const LOCKED = [
  {
    type: 'function',
    name: 'getLockedPaymentInfo',
    stateMutability: 'view',
    inputs: [{ name: 'cId', type: 'string' }],
    outputs: [
      {
        name: 'tx',
        type: 'tuple',
        components: [
          { name: 'id', type: 'string' },
          { name: 'token', type: 'address' },
          { name: 'minPayment', type: 'uint256' },
          { name: 'lockedFee', type: 'uint256' },
          { name: 'owner', type: 'address' },
          { name: 'recipient', type: 'address' },
          { name: 'deadline', type: 'uint256' },
          { name: '_isExisted', type: 'bool' },
          { name: 'size', type: 'uint256' },
          { name: 'copyLimit', type: 'uint8' },
          { name: 'blockNumber', type: 'uint256' },
        ],
      },
    ],
  },
] as const
const NO_OWNER = `0x${'0'.repeat(40)}`

const TOKEN = [
  { type: 'function', name: 'decimals', stateMutability: 'view', inputs: [], outputs: [{ name: '', type: 'uint8' }] },
  { type: 'function', name: 'symbol', stateMutability: 'view', inputs: [], outputs: [{ name: '', type: 'string' }] },
] as const

/**
 * Makes a client of a node. Nothing is sent yet.
 * @param stop ends requests in progress
 * @throws ChainMisuse when the package `viem` is not installed
 */
export async function openNode(
  options: Pick<ChainOptions, 'url' | 'contract' | 'token'> & { readonly timeoutMs: number },
  abi: readonly AbiEvent[],
  stop: AbortSignal,
): Promise<ChainNode> {
  const viem = await loadViem()
  const contract = options.contract.toLowerCase()
  const topics = abi.map((event) => viem.toEventSelector(event))
  const client = viem.createClient({
    transport: viem.http(options.url, {
      retryCount: 0,
      timeout: options.timeoutMs,
      maxResponseBodySize: MAX_ANSWER,
      fetchOptions: { redirect: 'error', signal: stop },
    }),
  })

  async function ask<T>(method: string, params: readonly unknown[], schema: z.ZodType<T>): Promise<T> {
    let answer: unknown
    try {
      // The methods of viem parse less strictly, and for other ends.
      answer = await client.request({ method, params } as Parameters<typeof client.request>[0])
    } catch (error) {
      throw new NodeFailure(`${method}: ${reasonOf(error)}`)
    }
    const parsed = schema.safeParse(answer)
    if (!parsed.success) throw new NodeFailure(`${method}: the answer is not as it should be`)
    return parsed.data
  }

  function read(log: z.infer<typeof logSchema>): ChainEvent | undefined {
    // Nodes that do not filter as asked must not bring in what is foreign.
    if (log.address !== contract || log.removed === true) return undefined
    const place = { block: log.blockNumber, blockHash: log.blockHash, index: log.logIndex, hash: log.transactionHash }
    try {
      const { eventName, args } = viem.decodeEventLog({ abi, data: log.data, topics: log.topics as [`0x${string}`] })
      return eventOf(place, String(eventName), args as Readonly<Record<string, unknown>>)
    } catch {
      return undefined
    }
  }

  async function call(name: 'decimals' | 'symbol'): Promise<unknown> {
    const to = options.token.toLowerCase()
    const input = viem.encodeFunctionData({ abi: TOKEN, functionName: name })
    const answer = await ask('eth_call', [{ to, data: input }, 'latest'], data)
    try {
      return viem.decodeFunctionResult({ abi: TOKEN, functionName: name, data: answer })
    } catch {
      return undefined
    }
  }

  return {
    async locked(wCid, block) {
      const input = viem.encodeFunctionData({ abi: LOCKED, args: [wCid] })
      const answer = await ask('eth_call', [{ to: contract, data: input }, hex(block)], data)
      try {
        const { owner, deadline, lockedFee, _isExisted } = viem.decodeFunctionResult({ abi: LOCKED, data: answer })
        return owner === NO_OWNER ? undefined : { deadline, rest: lockedFee, isOpen: _isExisted }
      } catch {
        return undefined
      }
    },
    chainId: () => ask('eth_chainId', [], quantity),
    head: () => ask('eth_blockNumber', [], quantity),
    async block(number) {
      const block = await ask('eth_getBlockByNumber', [hex(number), false], blockSchema)
      if (block !== null && block.number !== number) throw new NodeFailure('eth_getBlockByNumber: another block')
      return block ?? undefined
    },
    async events(from, to) {
      const filter = { address: contract, topics: [topics], fromBlock: hex(from), toBlock: hex(to) }
      const logs = await ask('eth_getLogs', [filter], z.array(logSchema))
      return logs
        .flatMap((log) => (log.blockNumber >= from && log.blockNumber <= to ? (read(log) ?? []) : []))
        .sort((a, b) => a.block - b.block || a.index - b.index)
    },
    sender: async (transaction) =>
      (await ask('eth_getTransactionByHash', [transaction], transactionSchema))?.from ?? undefined,
    async coin() {
      const [decimals, symbol] = [await call('decimals'), await call('symbol').catch(() => undefined)]
      if (typeof decimals !== 'number') throw new ChainMisuse('The token of the chain is no contract with decimals.')
      return { decimals, symbol: typeof symbol === 'string' && /^[\x21-\x7e]{1,16}$/.test(symbol) ? symbol : undefined }
    },
  }
}

/** Loaded when a chain is configured only: it is large, and may be absent. */
async function loadViem(): Promise<typeof import('viem')> {
  try {
    return await import('viem')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ChainMisuse('Payments on a chain need the package viem beside dealgate: npm install viem@2', {
      cause: error,
    })
  }
}

/** The short text of an error of viem: the long one contains the URL, which may contain a key. */
function reasonOf(error: unknown): string {
  const { shortMessage, name, code } = error as { shortMessage?: unknown; name?: unknown; code?: unknown }
  const text = typeof shortMessage === 'string' ? shortMessage : String(name)
  return (typeof code === 'number' ? `${text} (${code})` : text).replaceAll(/https?:\/\/\S+/g, '(URL)')
}

function hex(number: number): string {
  return `0x${number.toString(16)}`
}
