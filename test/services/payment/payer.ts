import { join } from 'node:path'
import type { Test } from 'tap'
import { paymentOrderText } from '../../../services/payment/billing.js'
import { openWalletRegistry, type WalletRegistry } from '../../../services/payment/store.js'
import { until } from '../../support/waiting.js'
import type { Answer } from '../platform/platform-client.js'
import { type Keys, NETWORK, newKeys, type PaymentScene } from './payment-client.js'

/** What `payerOf` gives a new wallet, millionths of a stable coin. */
export const COINS = 1_000_000n

/** What a wallet asks of a service. */
interface Requests {
  ask(path: string): Promise<Answer>
  post(path: string, body: object): Promise<Answer>
  /** @param fields of the form, beside the usual ones */
  upload(name: string, content: string | Uint8Array<ArrayBuffer>, type?: string, fields?: Fields): Promise<Answer>
  /** Orders the payment for an upload. */
  order(wCid: string, amount: bigint, more?: object): Promise<Answer>
}

type Fields = Readonly<Record<string, string>>

/** @param token of a sign-in; undefined at a service that needs none */
export function requestsOf(call: PaymentScene['call'], keys: Keys, token: string | undefined): Requests {
  const post: Requests['post'] = (path, body) => call('POST', `/api/v1${path}`, { body, token })
  return {
    ask: (path) => call('GET', `/api/v1${path}`, { token }),
    post,
    upload(name, content, type = '', fields = {}) {
      const form = new FormData()
      for (const [field, value] of Object.entries({ duration: '525', wallet_address: keys.address, ...fields }))
        form.append(field, value)
      form.append('file', new Blob([content], { type }), name)
      return post('/storage/ipfs/upload', form)
    },
    order(wCid, amount, more = {}) {
      const signature = keys.sign(paymentOrderText(wCid, amount, NETWORK))
      return post('/billing/deal/lockpayment', { w_cid: wCid, pay_amount: String(amount), signature, ...more })
    },
  }
}

/** A wallet with coins, signed in. */
export interface Payer extends Requests {
  readonly keys: Keys
  /** The data of an answer. */
  get(path: string): Promise<Record<string, never>>
  /** Uploads and pays. Returns the number of the upload. */
  pay(name: string, content: string | Uint8Array<ArrayBuffer>, amount: bigint, type?: string): Promise<number>
}

/** @param known a wallet that has its coins already, or is to have none */
export async function payerOf(scene: PaymentScene, known?: Keys): Promise<Payer> {
  const keys = known ?? newKeys()
  const requests = requestsOf(scene.call, keys, await scene.signIn(keys))
  if (known === undefined) await withRegistry(scene, (registry) => registry.fund(keys.address, COINS))
  return {
    ...requests,
    keys,
    get: async (path) => (await requests.ask(path)).json.data,
    async pay(name, content, amount, type) {
      const { json } = await requests.upload(name, content, type)
      const paid = await requests.order(json.data.w_cid, amount)
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
