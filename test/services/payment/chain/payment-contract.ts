import { readFileSync } from 'node:fs'
import {
  type Abi,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  parseAbi,
  toHex,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { CHAIN_ID, type EvmNode } from './evm-node.js'

/** What the compiler has made of `StoragePayment.sol`. */
const bytecode: Readonly<Record<'StoragePayment' | 'TestCoin', Hex>> = JSON.parse(
  readFileSync('test/services/payment/chain/contracts.json', 'utf8'),
)

const abis = {
  StoragePayment: parseAbi([
    'constructor(address token)',
    'struct Order { string id; uint256 minPayment; uint256 amount; uint256 lockTime; address recipient; uint256 size; uint8 copyLimit; }',
    'function lockTokenPayment(Order order)',
    'function unlockPayment(string id, uint256 cost)',
    'function unlockCarPayment(string id, uint256 cost)',
    'function refund(string[] ids)',
  ]),
  TestCoin: parseAbi([
    'constructor(uint8 digits)',
    'function mint(address to, uint256 amount)',
    'function approve(address spender, uint256 amount)',
    'function balanceOf(address owner) view returns (uint256)',
  ]),
}

const DAY = 86_400

/** What a wallet locks. */
interface Order {
  readonly id: string
  readonly amount: bigint
  /** Seconds; default 6 days. */
  readonly lockTime?: number
  readonly recipient?: string
}

/** A payment contract with its token on a chain of its own, and its operator. Amounts are millionths. */
export class PaymentContract {
  readonly node: EvmNode
  readonly #operator: PrivateKeyAccount
  readonly address: string
  readonly token: string
  /** Who gets what is unlocked. */
  readonly recipient = `0x${'e'.repeat(40)}`

  private constructor(node: EvmNode, operator: PrivateKeyAccount, address: string, token: string) {
    this.node = node
    this.#operator = operator
    this.address = address
    this.token = token
  }

  static async deploy(node: EvmNode, decimals = 6): Promise<PaymentContract> {
    const operator = privateKeyToAccount(generatePrivateKey())
    const token = await deployed(node, operator, 'TestCoin', [decimals])
    return new PaymentContract(node, operator, await deployed(node, operator, 'StoragePayment', [token]), token)
  }

  /** Options of a service that follows it. */
  get options() {
    const { address: contract, token, recipient, node } = this
    return { url: node.url, chainId: CHAIN_ID, contract, token, recipient, confirmations: 2, startBlock: 1, pollMs: 50 }
  }

  /** The address of a key. */
  addressOf(secretKey: Uint8Array): string {
    return privateKeyToAccount(toHex(secretKey)).address
  }

  /** Gives a wallet coins, and lets the contract take them. */
  async fund(secretKey: Uint8Array, amount: bigint): Promise<void> {
    const account = privateKeyToAccount(toHex(secretKey))
    await this.#send(this.#operator, 'TestCoin', 'mint', [account.address, amount])
    await this.#send(account, 'TestCoin', 'approve', [this.address, amount])
  }

  async balance(address: string): Promise<bigint> {
    const balanceOf = { abi: abis.TestCoin, functionName: 'balanceOf' } as const
    const data = await this.node.call(this.token, encodeFunctionData({ ...balanceOf, args: [address as Hex] }))
    return decodeFunctionResult({ ...balanceOf, data })
  }

  /** The hash of the transaction that locks a payment, in a block of its own. */
  lock(secretKey: Uint8Array, { id, amount, lockTime = 6 * DAY, recipient = this.recipient }: Order): Promise<Hex> {
    const order = { id, minPayment: 1n, amount, lockTime: BigInt(lockTime), recipient, size: 1n, copyLimit: 1 }
    return this.#send(privateKeyToAccount(toHex(secretKey)), 'StoragePayment', 'lockTokenPayment', [order])
  }

  unlock(id: string, cost: bigint): Promise<Hex> {
    return this.#send(this.#operator, 'StoragePayment', 'unlockPayment', [id, cost])
  }

  /** Unlocks by an event that does not name the payment. */
  unlockForCar(id: string, cost: bigint): Promise<Hex> {
    return this.#send(this.#operator, 'StoragePayment', 'unlockCarPayment', [id, cost])
  }

  /** Gives rests of payments back. */
  refund(...ids: readonly string[]): Promise<Hex> {
    return this.#send(this.#operator, 'StoragePayment', 'refund', [ids])
  }

  async #send(from: PrivateKeyAccount, contract: keyof typeof abis, functionName: string, args: readonly unknown[]) {
    const abi: Abi = abis[contract]
    const to = (contract === 'TestCoin' ? this.token : this.address) as Hex
    return send(this.node, from, { to, data: encodeFunctionData({ abi, functionName, args }) })
  }
}

async function deployed(
  node: EvmNode,
  operator: PrivateKeyAccount,
  name: keyof typeof abis,
  args: readonly unknown[],
): Promise<string> {
  const nonce = await node.nonceOf(operator.address)
  await send(node, operator, { data: encodeDeployData({ abi: abis[name] as Abi, bytecode: bytecode[name], args }) })
  return getContractAddress({ from: operator.address, nonce: BigInt(nonce) }).toLowerCase()
}

async function send(node: EvmNode, from: PrivateKeyAccount, call: { to?: Hex; data: Hex }): Promise<Hex> {
  const fees = { gas: 5_000_000n, maxFeePerGas: 10n, maxPriorityFeePerGas: 0n }
  const nonce = await node.nonceOf(from.address)
  const raw = await from.signTransaction({ ...call, ...fees, chainId: CHAIN_ID, nonce, type: 'eip1559' })
  return (await node.mine(raw))[0] as Hex
}
