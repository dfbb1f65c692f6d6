import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Block, createBlock } from '@ethereumjs/block'
import { type Common, createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common'
import { createTxFromRLP, type TypedTransaction } from '@ethereumjs/tx'
import { bytesToHex, createAddressFromString, hexToBytes, type PrefixedHexString } from '@ethereumjs/util'
import { createVM, runTx, type VM } from '@ethereumjs/vm'
import type { Test } from 'tap'
import { listen } from '../../../support/server/listen.js'

export const CHAIN_ID = 31_337
const GAS_LIMIT = 30_000_000n
const BASE_FEE = 7n

type Hex = PrefixedHexString
interface Log {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transaction: Hex
}
interface Mined {
  readonly block: Block
  readonly hash: Hex
  /** State after the block. */
  readonly root: Uint8Array
  readonly transactions: readonly Hex[]
  readonly senders: ReadonlyMap<string, Hex>
  readonly logs: readonly Log[]
}

/** What a node does wrong, for each request; the method is that of JSON-RPC. */
export type Fault = (method: string) => 'hang' | 'fail' | 'flood' | 'silence' | undefined

/**
 * A chain of its own in the process of the test, by the EVM of ethereumjs, with a JSON-RPC endpoint over HTTP. A block
 * is mined when the test wants it. Gas costs nothing.
 */
export class EvmNode {
  readonly url: string
  readonly #server: Server
  readonly #common: Common
  readonly #vm: VM
  readonly #blocks: Mined[] = []
  #salt = 0
  #turn: Promise<unknown> = Promise.resolve()
  /** Default: none. */
  fault: Fault = () => undefined
  /** Methods of the requests so far. */
  readonly asked: string[] = []

  private constructor(url: string, server: Server, common: Common, vm: VM) {
    this.url = url
    this.#server = server
    this.#common = common
    this.#vm = vm
  }

  static async start(t: Test): Promise<EvmNode> {
    const common = createCustomCommon({ chainId: CHAIN_ID }, Mainnet, { hardfork: Hardfork.Paris })
    const vm = await createVM({ common })
    const server = createServer()
    const node = new EvmNode(await listen(server), server, common, vm)
    server.on('request', async (request, response) => {
      const { id, method, params } = JSON.parse(await text(request))
      node.asked.push(method)
      const fault = node.fault(method)
      if (fault === 'hang') return
      if (fault === 'fail') {
        response.writeHead(503).end()
        return
      }
      response.setHeader('content-type', 'application/json')
      if (fault === 'flood') {
        response.end(`{"jsonrpc":"2.0","id":${id},"result":"${'x'.repeat(20_000_000)}"}`)
        return
      }
      if (fault === 'silence') {
        response.write('{"jsonrpc":')
        return
      }
      const answer = await node.#answer(method, params).then(
        (result) => ({ result }),
        (error: Error) => ({ error: { code: -32_000, message: error.message } }),
      )
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    await node.mine()
    return node
  }

  get head(): number {
    return this.#blocks.length - 1
  }

  /** Cuts all connections, and takes no more until `listenAgain`. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  listenAgain(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(Number(new URL(this.url).port), '127.0.0.1', resolve))
  }

  /** Mines a block with these signed transactions; rejects when one fails. Returns their hashes. */
  mine(...transactions: readonly Hex[]): Promise<Hex[]> {
    return this.#inTurn(() => this.#mineNow(transactions))
  }

  /** There is one state: work on it goes one after another. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => {})
    return result
  }

  async #mineNow(transactions: readonly Hex[]): Promise<Hex[]> {
    const number = this.#blocks.length
    const parent = this.#blocks[number - 1]
    const timestamp = Math.max(Number(parent?.block.header.timestamp ?? 0) + 1, Math.floor(Date.now() / 1000))
    const header = {
      ...{ number, timestamp, gasLimit: GAS_LIMIT, baseFeePerGas: BASE_FEE },
      // Blocks of different branches must have different hashes.
      extraData: Buffer.from(`branch ${this.#salt}`),
      ...(parent && { parentHash: hexToBytes(parent.hash) }),
    }
    const options = { common: this.#common, skipConsensusFormatValidation: true }
    const draft = createBlock({ header }, options)
    const logs: Log[] = []
    const senders = new Map<string, Hex>()
    const hashes: Hex[] = []
    for (const raw of transactions) {
      const tx = createTxFromRLP(hexToBytes(raw), { common: this.#common }) as TypedTransaction
      const { receipt, execResult } = await runTx(this.#vm, { tx, block: draft, skipBalance: true })
      if (execResult.exceptionError) throw new Error(`reverted: ${execResult.exceptionError.error}`)
      const hash = bytesToHex(tx.hash())
      hashes.push(hash)
      senders.set(hash, tx.getSenderAddress().toString())
      for (const [address, topics, data] of receipt.logs) {
        const log = { address: bytesToHex(address), topics: topics.map((topic) => bytesToHex(topic)) }
        logs.push({ ...log, data: bytesToHex(data), transaction: hash })
      }
    }
    const root = await this.#vm.stateManager.getStateRoot()
    const block = createBlock({ header: { ...header, stateRoot: root } }, options)
    this.#blocks.push({ block, hash: bytesToHex(block.hash()), root, transactions, senders, logs })
    return hashes
  }

  /** Mines empty blocks. */
  async mineEmpty(count: number): Promise<void> {
    for (let n = 0; n < count; n++) await this.mine()
  }

  /**
   * Replaces the last blocks by one more, which are empty. Returns the transactions of the former ones, in their order.
   */
  async reorganise(depth: number): Promise<Hex[]> {
    this.#salt++
    const dropped = await this.#inTurn(async () => {
      const blocks = this.#blocks.splice(this.#blocks.length - depth)
      await this.#vm.stateManager.setStateRoot(this.#blocks.at(-1)?.root as Uint8Array)
      return blocks.flatMap(({ transactions }) => transactions)
    })
    await this.mineEmpty(depth + 1)
    return dropped
  }

  async nonceOf(address: string): Promise<number> {
    const account = await this.#inTurn(() => this.#vm.stateManager.getAccount(createAddressFromString(address)))
    return Number(account?.nonce ?? 0n)
  }

  /** The result of a call in the state after a block, by default the latest. */
  call(to: string, data: string, at?: number): Promise<Hex> {
    return this.#inTurn(async () => {
      const { stateManager } = this.#vm
      const [state, latest] = [this.#blocks.at(at ?? -1)?.root, this.#blocks.at(-1)?.root]
      if (state === undefined || latest === undefined) throw new Error('header not found')
      await stateManager.setStateRoot(state)
      try {
        return await this.#callNow(to, data)
      } finally {
        await stateManager.setStateRoot(latest)
      }
    })
  }

  async #callNow(to: string, data: string): Promise<Hex> {
    const { stateManager } = this.#vm
    await stateManager.checkpoint()
    const { execResult } = await this.#vm.evm.runCall({
      to: createAddressFromString(to),
      data: hexToBytes(data as Hex),
    })
    await stateManager.revert()
    if (execResult.exceptionError) throw new Error('execution reverted')
    return bytesToHex(execResult.returnValue)
  }

  // biome-ignore lint/suspicious/noExplicitAny: parameters of JSON-RPC, by the method
  async #answer(method: string, params: readonly any[]): Promise<unknown> {
    switch (method) {
      case 'eth_chainId':
        return hex(CHAIN_ID)
      case 'eth_blockNumber':
        return hex(this.head)
      case 'eth_call':
        return this.call(params[0].to, params[0].data, params[1]?.startsWith('0x') ? Number(params[1]) : undefined)
      // No account has coins for fees, and none needs them.
      case 'eth_getBalance':
        return hex(0)
      case 'eth_getBlockByNumber': {
        const mined = this.#blocks[Number(params[0])]
        if (mined === undefined) return null
        const { number, timestamp, parentHash } = mined.block.header
        return { number: hex(number), hash: mined.hash, parentHash: bytesToHex(parentHash), timestamp: hex(timestamp) }
      }
      case 'eth_getTransactionByHash': {
        const from = this.#blocks.map(({ senders }) => senders.get(params[0])).find(Boolean)
        return from === undefined ? null : { hash: params[0], from }
      }
      case 'eth_getLogs':
        return this.#logs(params[0])
      default:
        throw new Error(`the method ${method} does not exist`)
    }
  }

  #logs(filter: { address: string; topics: readonly [readonly string[]]; fromBlock: string; toBlock: string }) {
    return this.#blocks.slice(Number(filter.fromBlock), Number(filter.toBlock) + 1).flatMap(({ block, hash, logs }) =>
      logs.flatMap(({ transaction, ...log }, index) =>
        log.address === filter.address && filter.topics[0].includes(log.topics[0] ?? '')
          ? {
              ...log,
              blockNumber: hex(block.header.number),
              blockHash: hash,
              transactionHash: transaction,
              logIndex: hex(index),
              removed: false,
            }
          : [],
      ),
    )
  }
}

function hex(number: number | bigint): Hex {
  return `0x${number.toString(16)}`
}
