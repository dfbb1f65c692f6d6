import { secp256k1 } from '@noble/curves/secp256k1.js'
import type { Test } from 'tap'
import type { ChainOptions } from '../../../../services/payment/chain/open.js'
import type { PaymentOptions } from '../../../../services/payment/payment.js'
import { until } from '../../../support/waiting.js'
import { type Payer, payerOf, type Row } from '../payer.js'
import { newKeys, type PaymentScene, startPaymentScene } from '../payment-client.js'
import { EvmNode } from './evm-node.js'
import { PaymentContract } from './payment-contract.js'

/** What each wallet has on the chain at first, millionths. */
export const COINS = 10_000_000n

/** A wallet with coins on the chain, which is signed in. */
export interface ChainPayer {
  readonly secretKey: Uint8Array<ArrayBuffer>
  readonly address: string
  readonly payer: Payer
  /** Uploads a file. Returns its number and `w_cid`. */
  upload(name: string, content?: string): Promise<{ readonly id: number; readonly wCid: string }>
  /** The status of an upload. */
  status(id: number): Promise<string>
  untilStatus(id: number, status: string): Promise<void>
  /** Payments that do not count, with their reasons. */
  refused(id: number): Promise<Row[]>
}

interface ChainScene {
  readonly node: EvmNode
  readonly contract: PaymentContract
  readonly payment: PaymentScene
}

interface ChainSetting {
  readonly withPlatform?: boolean
  /** Of the token; default 6. */
  readonly decimals?: number
  readonly chain?: Partial<ChainOptions>
  readonly payment?: Partial<PaymentOptions>
}

/** Starts a chain with a contract, and a service that follows it. */
export async function startChainScene(
  t: Test,
  { withPlatform = false, decimals = 6, chain, payment: more }: ChainSetting = {},
): Promise<ChainScene> {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node, decimals)
  const payment = await startPaymentScene(t, { ...more, chain: { ...contract.options, ...chain } }, { withPlatform })
  return { node, contract, payment }
}

export async function walletOn({ contract, payment }: ChainScene): Promise<ChainPayer> {
  const secretKey = new Uint8Array(secp256k1.utils.randomSecretKey())
  await contract.fund(secretKey, COINS)
  return walletFor(payment, secretKey)
}

/** A wallet by its key. */
export async function walletFor(scene: PaymentScene, secretKey: Uint8Array<ArrayBuffer>): Promise<ChainPayer> {
  const keys = newKeys(secretKey)
  const payer = await payerOf(scene, keys)
  const show = async (id: number): Promise<Row> => payer.get(`/storage/source_file_upload/${id}`)
  return {
    secretKey,
    address: keys.address,
    payer,
    async upload(name, content = name) {
      const { json } = await payer.upload(name, content)
      return { id: json.data.source_file_upload_id, wCid: json.data.w_cid }
    },
    status: async (id) => (await show(id)).status,
    async untilStatus(id, status) {
      await until(`upload ${id} is ${status}`, async () => (await show(id)).status === status)
    },
    refused: async (id) => (await show(id)).refused_payments,
  }
}

/** What a payment locks. */
export const PAID = 400_000n

/** Uploads, locks a payment, and mines until it counts. */
export async function paid({ node, contract }: ChainScene, wallet: ChainPayer, name = 'a.txt', amount = PAID) {
  const upload = await wallet.upload(name)
  const hash = await contract.lock(wallet.secretKey, { id: upload.wCid, amount })
  await node.mineEmpty(2)
  await wallet.untilStatus(upload.id, 'Processing')
  return { ...upload, hash }
}

/** Resolves when the service has read the chain to its confirmed end. */
export async function untilRead({ node }: ChainScene): Promise<void> {
  // A follower that asks for the latest block twice has finished what it read in between.
  const count = () => node.asked.filter((method) => method === 'eth_blockNumber').length
  const before = count()
  await until('the chain was read', () => count() >= before + 3)
}
