import { join } from 'node:path'
import type { Test } from 'tap'
import { paymentOrderText } from '../../../src/services/payment/billing.js'
import { openWalletRegistry, type WalletRegistry } from '../../../src/services/payment/store.js'
import { until } from '../../support/waiting.js'
import type { Answer } from '../platform/platform-client.js'
import { type Keys, NETWORK, newKeys, type PaymentScene } from './payment-client.js'

/** What `payerOf` gives a new wallet, millionths of a stable coin. */
export const COINS = 1_000_000n

/** A wallet with coins, signed in. */
export interface Payer {
  readonly keys: Keys
  get(path: string): Promise<Record<string, never>>
  upload(name: string, content: string | Uint8Array<ArrayBuffer>, type?: string): Promise<Answer>
  /** Orders the payment for an upload, and gives the answer. */
  order(wCid: string, amount: bigint): Promise<Answer>
  /** Uploads and pays. */
  pay(name: string, content: string | Uint8Array<ArrayBuffer>, amount: bigint, type?: string): Promise<number>
}

/** @param known a wallet that has its coins already, or is to have none */
export async function payerOf(scene: PaymentScene, known?: Keys): Promise<Payer> {
  const keys = known ?? newKeys()
  const token = await scene.signIn(keys)
  if (known === undefined) await withRegistry(scene, (registry) => registry.fund(keys.address, COINS))
  const get: Payer['get'] = async (path) => (await scene.call('GET', `/api/v1${path}`, { token })).json.data
  const upload: Payer['upload'] = (name, content, type = '') => {
    const form = new FormData()
    form.append('duration', '525')
    form.append('file', new Blob([content], { type }), name)
    return scene.call('POST', '/api/v1/storage/ipfs/upload', { body: form, token })
  }
  const order: Payer['order'] = (wCid, amount) => {
    const signature = keys.sign(paymentOrderText(wCid, amount, NETWORK))
    const body = { w_cid: wCid, pay_amount: String(amount), signature }
    return scene.call('POST', '/api/v1/billing/deal/lockpayment', { body })
  }
  return {
    keys,
    get,
    upload,
    order,
    async pay(name, content, amount, type) {
      const { json } = await upload(name, content, type)
      const paid = await order(json.data.w_cid, amount)
      if (paid.status !== 200) throw new Error(JSON.stringify(paid.json))
      return json.data.source_file_upload_id
    },
  }
}

export async function withRegistry<T>(scene: PaymentScene, use: (registry: WalletRegistry) => Promise<T>): Promise<T> {
  const registry = await openWalletRegistry(join(scene.folder, '..'), scene.database)
  try {
    return await use(registry)
  } finally {
    await registry.close()
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
export type Row = any

/**
 * Lets the time of the network pass until all uploads of the client have a status: slowly, because what goes on beside
 * it has until the deadline of a payment.
 */
export function pass(scene: PaymentScene, client: Payer, status: string, epochs = 10): Promise<Row[]> {
  return until(`all uploads are ${status}`, async () => {
    await scene.network.control.advance(epochs)
    const { source_file_upload: rows } = (await client.get('/storage/tasks/deals?is_ascend=y')) as {
      source_file_upload?: Row[]
    }
    return rows?.every((row) => row.status === status) ? rows : undefined
  })
}

export const balance = (scene: PaymentScene, { keys }: Pick<Payer, 'keys'>): Promise<bigint> =>
  withRegistry(scene, (registry) => registry.balance(keys.address))

export const sumOfLedger = (t: Test, scene: PaymentScene): Promise<boolean> =>
  withRegistry(scene, async (registry) =>
    t.same(await registry.sums(), { balances: 0n, entries: 0n }, 'the ledger adds up'),
  )
