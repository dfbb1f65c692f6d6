import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CarFolder } from '../../../services/payment/dealing/car-folder.js'
import { until } from '../../support/waiting.js'
import { balance, COINS, pass, payerOf, type Row, sumOfLedger, withRegistry } from './payer.js'
import {
  contentFiles,
  fileOfContent,
  keptContents,
  newKeys,
  type PaymentScene,
  startPaymentScene,
} from './payment-client.js'

const LOCK_EPOCHS = 6 * 2880

t.test('paid uploads become a deal, which is paid, and the rest comes back', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
  const first = await client.pay('a.txt', 'a'.repeat(300_000), 400_000n)
  await client.pay('b.txt', 'b'.repeat(100_000), 400_000n)
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
  await client.pay('c.txt', 'a'.repeat(300_000), 100_000n)
  const again = await scene.restart()
  const later = await payerOf(again, client.keys)
  t.equal((await pass(again, later, 'Success')).length, 3, 'deals go on after a restart')
  await sumOfLedger(t, again)
})

t.test('a content that is damaged comes back to its wallet, and holds up no other', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
  const other = await payerOf(scene)
  const lost = (await client.upload('lost.txt', 'lost'.repeat(1000))).json.data
  const file = fileOfContent(scene, lost.payload_cid)
  const car = readFileSync(file)
  car[car.length - 1] = 255 - (car.at(-1) ?? 0)
  writeFileSync(file, car)
  t.equal((await client.order(lost.w_cid, 400_000n)).status, 200)
  await other.pay('whole.txt', 'whole'.repeat(1000), 400_000n)
  await pass(scene, other, 'Success')
  await pass(scene, client, 'Refunded')
  t.equal(await balance(scene, client), COINS)
  await sumOfLedger(t, scene)
  const again = (await client.upload('lost.txt', 'lost'.repeat(1000))).json.data
  t.equal(again.payload_cid, lost.payload_cid)
  t.equal((await fetch(again.ipfs_url)).status, 200, 'it is whole again after another upload')
})

t.test('a provider that fails with a CAR is not the only one', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
  // The first provider does not get the CAR of its task.
  const carFolder = CarFolder.prototype
  const { size } = carFolder
  const asked = new Set<string>()
  carFolder.size = async function (task) {
    asked.add(task)
    return asked.values().next().value === task ? undefined : size.call(this, task)
  }
  t.teardown(() => (carFolder.size = size))
  await client.pay('a.txt', 'a'.repeat(300_000), 400_000n)
  const [row] = await pass(scene, client, 'Success')
  t.equal(asked.size, 2)
  t.match(row.offline_deal, [{ status: 'Success', miner_fid: 't01005' }], 'the next cheapest has it')
  await sumOfLedger(t, scene)
  await until('no CAR is left', () => readdirSync(join(scene.folder, 'cars')).length === 0)
})

t.test('without a deal in time, the payment comes back', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
  for (const { minerId } of await scene.network.providers())
    await scene.network.changeProvider?.(minerId, { offlineDealAvailable: false })
  await client.pay('a.txt', 'a', 500_000n)
  await pass(scene, client, 'Processing', LOCK_EPOCHS - 100)
  await pass(scene, client, 'Refunded', 50)
  t.equal(await balance(scene, client), COINS)
  await sumOfLedger(t, scene)
  await until('the CAR is removed', async () => {
    await pass(scene, client, 'Refunded', 1)
    return readdirSync(join(scene.folder, 'cars')).length === 0
  })
  await scene.network.control.advance(120)
  await client.get('/storage/tasks/deals')
  t.same(contentFiles(scene), [], 'and its content')
  t.match(await client.get('/billing'), { total_record_count: 1 }, 'its payment is still told')
})

const DAY_EPOCHS = 2880
const ipfs = (scene: PaymentScene, cid: string, path = '') => fetch(`${scene.payment.url}/ipfs/${cid}${path}`)

/** A content of blocks that all differ. */
function differing(bytes: number, seed: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes).map((_, n) => (n * 31 + (n >> 8) * seed) % 251)
}

t.test('unpaid uploads go after a time, and their contents with them', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const own = (await payer.upload('own.txt', 'nobody else has this')).json.data
  const shared = (await payer.upload('shared.txt', 'shared')).json.data
  await scene.network.control.advance(DAY_EPOCHS)
  const other = await payerOf(scene)
  await other.upload('shared.txt', 'shared')
  await scene.network.control.advance(6 * DAY_EPOCHS)
  t.match(await payer.order(own.w_cid, 500_000n), { status: 409, json: { message: /within 7 days/ } })
  t.match(await payer.get('/storage/tasks/deals'), { total_record_count: 2 })
  await scene.network.control.advance(DAY_EPOCHS + 120)
  t.match(await payer.get('/storage/tasks/deals'), { total_record_count: 0 })
  t.match(await other.get('/storage/tasks/deals'), { total_record_count: 1 })
  t.same(keptContents(scene), [shared.payload_cid])
  t.equal((await ipfs(scene, own.payload_cid)).status, 404)
  t.equal(await (await ipfs(scene, shared.payload_cid)).text(), 'shared')
  t.equal(await balance(scene, payer), COINS)
  await payer.pay('own.txt', 'nobody else has this', 500_000n)
  t.equal((await ipfs(scene, own.payload_cid)).status, 200, 'the same content can be uploaded again')
})

t.test('copies that a provider has, too, make room, and come back on demand', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxStoredBytes: 2_000_000 } }, { withPlatform: true })
  const payer = await payerOf(scene)
  const content = differing(600_000, 3)
  await payer.pay('first', content, 400_000n)
  const [row] = await pass(scene, payer, 'Success')
  t.match(row, { pin_status: 'Pinned' })
  const [file = ''] = contentFiles(scene)
  const [cid = ''] = keptContents(scene)
  t.equal((await payer.upload('second', differing(700_000, 5))).status, 200)
  t.notOk(contentFiles(scene).includes(file), '600 kB and twice 700 kB, while they are packed, give up the first copy')
  t.match(await payer.get('/storage/tasks/deals?is_ascend=y'), { source_file_upload: [{ pin_status: 'UnPinned' }] })
  await scene.network.control.advance(9 * DAY_EPOCHS)
  await payer.get('/storage/tasks/deals')
  t.same(contentFiles(scene), [], 'the unpaid ones are gone')
  const answers = await Promise.all([ipfs(scene, cid), ipfs(scene, cid), ipfs(scene, cid, '?format=raw')])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.ok(Buffer.from(await (answers[0] as Response).arrayBuffer()).equals(content), 'the provider gives it back')
  t.same(keptContents(scene), [cid])
  await scene.network.control.advance(526 * DAY_EPOCHS)
  await payer.get('/storage/tasks/deals')
  t.same(contentFiles(scene), [], 'it goes when its deal has ended')
  t.equal((await ipfs(scene, cid)).status, 404)
})

t.test('wallets that cost nothing share a part of the room', async (t) => {
  const limits = { maxStrangeBytes: 2000, maxUnpaidBytes: 1500, maxStrangeUploads: 4 }
  const scene = await startPaymentScene(t, { limits })
  const stranger = async () => payerOf(scene, newKeys())
  t.equal((await (await stranger()).upload('a', 'a'.repeat(1500))).status, 200)
  t.match(await (await stranger()).upload('b', 'b'.repeat(501)), { status: 507, json: { message: /fund the wallet/ } })
  const last = await stranger()
  t.equal((await last.upload('b', 'b'.repeat(500))).status, 200)
  for (const status of [200, 200, 507]) t.equal((await last.upload('c', '')).status, status, 'their number counts, too')
  const payer = await payerOf(scene)
  t.equal((await payer.upload('d', 'd'.repeat(1500))).status, 200, 'a wallet with coins has its own part')
  t.match(await payer.upload('e', 'e'), { status: 409, json: { message: /pay for them first/ } })
  await withRegistry(scene, (registry) => registry.fund(last.keys.address, 1n))
  t.equal((await last.upload('f', 'f'.repeat(1000))).status, 200)
})

t.test('uploads at the same time count together, and a refused one leaves nothing', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxUnpaidBytes: 2500, uploadsPerWallet: 6 } })
  const payer = await payerOf(scene)
  const all = await Promise.all(Array.from({ length: 6 }, (_, n) => payer.upload(`${n}`, `${n}`.repeat(1000))))
  const stored = all.filter(({ status }) => status === 200).length
  t.ok(stored === 1 || stored === 2, `${stored} of 6 are stored`)
  t.equal(contentFiles(scene).length, stored)
  t.equal(((await payer.get('/storage/tasks/deals')) as { total_record_count?: number }).total_record_count, stored)
})

t.test('uploads on their way are bounded, paid or not', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxOpenBytes: 1500 } })
  const payer = await payerOf(scene)
  await payer.pay('a', 'a'.repeat(1000), 400_000n)
  t.match(await payer.upload('b', 'b'.repeat(501)), { status: 409, json: { message: /without deals/ } })
  t.equal((await payer.upload('b', 'b'.repeat(500))).status, 200)
})
