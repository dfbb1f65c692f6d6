import type { Hex, Log } from 'viem'
import { type AbiEvent, type ChainEvent, ChainMisuse, eventOf } from './abi.js'

/** Largest answer of the node, bytes: the logs of a full block are smaller. */
const MAX_ANSWER = 8 * 2 ** 20

interface ChainBlock {
  readonly number: number
  /** In lower case. */
  readonly hash: string
  /** Unix seconds. */
  readonly timestamp: number
}

/** The node does not answer, or not as it should. The message contains no URL. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure'
}

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
  head(): Promise<number>
  /** Undefined when the chain has no block of this number. */
  block(number: number): Promise<ChainBlock | undefined>
  /** Events of the contract in these blocks, in their order. */
  events(from: number, to: number): Promise<ChainEvent[]>
  sender(transaction: string): Promise<string | undefined>
  /**
   * What the contract has of a payment after this block; undefined when it has none, or does not tell.
   */
  locked(wCid: string, block: number): Promise<LockedPayment | undefined>
  /** What an address has at the latest block. @param address in lower case */
  balances(address: string): Promise<{ readonly token: bigint; readonly native: bigint }>
  coin(): Promise<{ readonly decimals: number; readonly symbol: string | undefined }>
}

/** Calls of the usual contract. A contract without one reverts. */
const CALLS = [
  'struct Payment { string id; address token; uint256 minPayment; uint256 lockedFee; address owner; address recipient; uint256 deadline; bool _isExisted; uint256 size; uint8 copyLimit; uint256 blockNumber; }',
  'function getLockedPaymentInfo(string cId) view returns (Payment tx)',
] as const

/**
 * Makes a client of a node. Nothing is sent yet.
 * @param stop ends requests in progress
 * @throws ChainMisuse when the package `viem` is not installed
 */
export async function openNode(
  options: { readonly url: string; readonly contract: string; readonly token: string; readonly timeoutMs: number },
  abi: readonly AbiEvent[],
  stop: AbortSignal,
): Promise<ChainNode> {
  const viem = await loadViem()
  const contract = options.contract.toLowerCase() as Hex
  const token = options.token.toLowerCase() as Hex
  const calls = viem.parseAbi(CALLS)
  const client = viem.createPublicClient({
    // Several nodes may share an address: each answer is asked for.
    cacheTime: 0,
    // A contract must not name addresses that this service then asks (EIP-3668).
    ccipRead: false,
    transport: viem.http(options.url, {
      retryCount: 0,
      timeout: options.timeoutMs,
      maxResponseBodySize: MAX_ANSWER,
      fetchOptions: { redirect: 'error', signal: stop },
    }),
  })

  /** @param absent name of the error by which viem tells that there is no such thing */
  async function ask<T>(what: string, request: () => Promise<T>, absent?: string): Promise<T | undefined> {
    try {
      return await request()
    } catch (error) {
      if ((error as Error).name === absent) return undefined
      throw new NodeFailure(`${what}: ${reasonOf(error)}`)
    }
  }

  function read(log: Log<bigint, number, false, AbiEvent, true>): ChainEvent[] {
    // Nodes that do not filter as asked must not bring in what is foreign.
    if (log.address.toLowerCase() !== contract || log.removed) return []
    const { eventName, args, blockHash, transactionHash } = log
    const place = {
      block: whole(log.blockNumber),
      blockHash: hashOf(blockHash),
      index: whole(log.logIndex),
      hash: hashOf(transactionHash),
    }
    const event = eventOf(place, String(eventName), args as Readonly<Record<string, unknown>>)
    return event === undefined ? [] : [event]
  }

  async function call(to: Hex, data: Hex, at: { readonly blockNumber?: bigint } = {}): Promise<Hex> {
    return (await ask('eth_call', () => client.call({ to, data, ...at })))?.data ?? '0x'
  }

  return {
    async locked(wCid, block) {
      const input = viem.encodeFunctionData({ abi: calls, args: [wCid] })
      const answer = await call(contract, input, { blockNumber: BigInt(block) })
      const found = decoded(() => viem.decodeFunctionResult({ abi: calls, data: answer }))
      if (found === undefined || found.owner === viem.zeroAddress) return undefined
      return { deadline: found.deadline, rest: found.lockedFee, isOpen: found._isExisted }
    },
    chainId: async () => whole(await ask('eth_chainId', () => client.getChainId())),
    head: async () => whole(await ask('eth_blockNumber', () => client.getBlockNumber())),
    async block(number) {
      const request = () => client.getBlock({ blockNumber: BigInt(number) })
      const block = await ask('eth_getBlockByNumber', request, 'BlockNotFoundError')
      if (block === undefined) return undefined
      if (whole(block.number) !== number) throw new NodeFailure('eth_getBlockByNumber: another block')
      return { number, hash: hashOf(block.hash), timestamp: whole(block.timestamp) }
    },
    async events(from, to) {
      const range = { fromBlock: BigInt(from), toBlock: BigInt(to) }
      const logs = await ask('eth_getLogs', () =>
        client.getLogs({ address: contract, events: abi, strict: true, ...range }),
      )
      return (logs ?? [])
        .flatMap(read)
        .filter(({ block }) => block >= from && block <= to)
        .sort((a, b) => a.block - b.block || a.index - b.index)
    },
    async sender(transaction) {
      const request = () => client.getTransaction({ hash: transaction as Hex })
      const found = await ask('eth_getTransactionByHash', request, 'TransactionNotFoundError')
      return found?.from.toLowerCase()
    },
    async balances(address) {
      const { erc20Abi: abi } = viem
      const data = viem.encodeFunctionData({ abi, functionName: 'balanceOf', args: [address as Hex] })
      const answer = await call(token, data)
      const held = decoded(() => viem.decodeFunctionResult({ abi, functionName: 'balanceOf', data: answer }))
      const native = await ask('eth_getBalance', () => client.getBalance({ address: address as Hex }))
      if (held === undefined || native === undefined) throw new NodeFailure('the answer is not as it should be')
      return { token: held, native }
    },
    async coin() {
      const read = async (functionName: 'decimals' | 'symbol'): Promise<unknown> => {
        const { erc20Abi: abi } = viem
        const answer = await call(token, viem.encodeFunctionData({ abi, functionName }))
        return decoded(() => viem.decodeFunctionResult({ abi, functionName, data: answer }))
      }
      const [decimals, symbol] = [await read('decimals'), await read('symbol').catch(() => undefined)]
      if (typeof decimals !== 'number') throw new ChainMisuse('The token of the chain is no contract with decimals.')
      return { decimals, symbol: typeof symbol === 'string' && /^[\x21-\x7e]{1,16}$/.test(symbol) ? symbol : undefined }
    },
  }
}

/** Undefined for an answer of a contract without such a call. */
function decoded<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch {
    return undefined
  }
}

/** viem takes what a node sends. Throws NodeFailure. */
function whole(value: unknown): number {
  const number = Number(value ?? Number.NaN)
  if (!Number.isSafeInteger(number) || number < 0) throw new NodeFailure('the answer is not as it should be')
  return number
}

function hashOf(value: unknown): string {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(value)) {
    throw new NodeFailure('the answer is not as it should be')
  }
  return value.toLowerCase()
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
