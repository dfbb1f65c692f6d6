import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { paymentOrderText } from '../../../src/services/payment/billing/payment-order.js'
import { openWalletBook } from '../../../src/services/payment/wallet-book.js'
import { until } from '../../support/waiting.js'
import { type Keys, NETWORK, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

t.setTimeout(300_000)

/** Millionths of a stable coin. */
const COINS = 1_000_000n
const LOCK_EPOCHS = 6 * 2880

interface Client {
  readonly keys: Keys
  get(path: string): Promise<Record<string, never>>
  /** Uploads and pays. */
  pay(name: string, content: string, amount: bigint): Promise<number>
}

/** @param known a wallet that has its coins already */
async function clientOf(scene: PaymentScene, known?: Keys): Promise<Client> {
  const keys = known ?? newKeys()
  const token = await scene.signIn(keys)
  if (known === undefined) await withBook(scene, (book) => book.fund(keys.address, COINS))
  const get: Client['get'] = async (path) => (await scene.call('GET', `/api/v1${path}`, { token })).json.data
  return {
    keys,
    get,
    async pay(name, content, amount) {
      const form = new FormData()
      form.append('duration', '525')
      form.append('file', new Blob([content]), name)
      const { json } = await scene.call('POST', '/api/v1/storage/ipfs/upload', { body: form, token })
      const { w_cid: wCid, source_file_upload_id: id } = json.data
      const order = { w_cid: wCid, pay_amount: String(amount) }
      const signature = keys.sign(paymentOrderText(wCid, amount, NETWORK))
      const paid = await scene.call('POST', '/api/v1/billing/deal/lockpayment', { body: { ...order, signature } })
      if (paid.status !== 200) throw new Error(JSON.stringify(paid.json))
      return id
    },
  }
}

async function withBook<T>(
  scene: PaymentScene,
  use: (book: ReturnType<typeof openWalletBook>) => T,
): Promise<Awaited<T>> {
  const book = openWalletBook(join(scene.folder, '..'))
  try {
    return await use(book)
  } finally {
    book.close()
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
type Row = any

/**
 * Lets the time of the network pass until all uploads of the client have a status: slowly, because what goes on beside it
 * has until the deadline of a payment.
 */
function pass(scene: PaymentScene, client: Client, status: string, epochs = 2): Promise<Row[]> {
  return until(`all uploads are ${status}`, async () => {
    await scene.network.control.advance(epochs)
    const { source_file_upload: rows } = (await client.get('/storage/tasks/deals?is_ascend=y')) as {
      source_file_upload?: Row[]
    }
    return rows?.every((row) => row.status === status) ? rows : undefined
  })
}

const balance = (scene: PaymentScene, { keys }: Client): Promise<bigint> =>
  withBook(scene, (book) => book.balance(keys.address))

const sumOfLedger = (t: Test, scene: PaymentScene): Promise<boolean> =>
  withBook(scene, (book) => t.same(book.sums(), { balances: 0n, entries: 0n }, 'the ledger adds up'))

t.test('paid uploads become a deal, which is paid, and the rest comes back', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await clientOf(scene)
  const first = await client.pay('a.txt', 'a'.repeat(300_000), 400_000n)
  const second = await client.pay('b.txt', 'b'.repeat(100_000), 400_000n)
  t.equal(await balance(scene, client), COINS - 800_000n)
  const rows = await pass(scene, client, 'Success')
  t.equal(rows.length, 2)
  for (const row of rows) {
    t.match(row, { car_file_id: Number, payload_cid: /^bafy/, pin_status: 'Pinned' })
    t.match(row.offline_deal, [{ status: 'Success', on_chain_status: 'StorageDealActive', miner_fid: 't01000' }])
    t.match(row.offline_deal[0], { miner_id: 1000, verified: false, tx_hash_unlock: /^0x/, deal_cid: /^bafy/ })
    t.ok(row.offline_deal[0].unlock_at > 0)
  }
  const { id, deal_id: dealId } = rows[0].offline_deal[0]
  const { source_file_upload_deal: detail } = (await client.get(
    `/storage/deal/detail/${dealId}?source_file_upload_id=${first}`,
  )) as Record<string, Row>
  t.match(detail, { provider: 't01000', unlocked: true, deal_id: dealId, locked_fee: '400000', piece_cid: /^baga/ })
  t.equal(detail.end_height - detail.start_height, 525 * 2880)
  t.equal((await scene.network.status(detail.deal_cid)).state, 'StorageDealActive', 'the network has the deal')
  const { offline_deal_log: log } = (await client.get(`/storage/deal/log/${id}`)) as Record<string, Row>
  t.equal(log.at(-1).on_chain_status, 'StorageDealActive')
  const { billing } = (await client.get('/billing?is_ascend=y')) as Record<string, Row>
  const unlocked = billing.map((bill: Row) => BigInt(bill.unlock_amount))
  t.ok(unlocked[0] > unlocked[1] && unlocked[1] > 0n, `by size: ${unlocked}`)
  t.equal(await balance(scene, client), COINS - unlocked[0] - unlocked[1], 'the rest is back')
  await sumOfLedger(t, scene)
  await until('the CAR is removed', () => readdirSync(join(scene.folder, 'cars')).length === 0)
  const third = await client.pay('c.txt', 'a'.repeat(300_000), 100_000n)
  t.ok(third > second)
  const again = await scene.restart()
  const later = await clientOf(again, client.keys)
  t.equal((await pass(again, later, 'Success')).length, 3, 'deals go on after a restart')
  await sumOfLedger(t, again)
})

t.test('without a deal in time, the payment comes back', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await clientOf(scene)
  for (const { minerId } of await scene.network.providers()) {
    await scene.network.changeProvider?.(minerId, { offlineDealAvailable: false })
  }
  await client.pay('a.txt', 'a', 500_000n)
  await pass(scene, client, 'Processing', LOCK_EPOCHS - 100)
  await pass(scene, client, 'Refunded', 50)
  t.equal(await balance(scene, client), COINS)
  await sumOfLedger(t, scene)
  await until('the CAR is removed', async () => {
    await pass(scene, client, 'Refunded', 1)
    return readdirSync(join(scene.folder, 'cars')).length === 0
  })
})
