import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CarFolder } from '../../../src/services/payment/dealing/car-folder.js'
import { until } from '../../support/waiting.js'
import { balance, COINS, pass, payerOf, type Row, sumOfLedger } from './payer.js'
import { startPaymentScene } from './payment-client.js'

t.setTimeout(300_000)

const LOCK_EPOCHS = 6 * 2880
t.test('paid uploads become a deal, which is paid, and the rest comes back', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
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
  const later = await payerOf(again, client.keys)
  t.equal((await pass(again, later, 'Success')).length, 3, 'deals go on after a restart')
  await sumOfLedger(t, again)
})

t.test('a content that is damaged comes back to its wallet, and holds up no other', async (t) => {
  const scene = await startPaymentScene(t, {}, { withPlatform: true })
  const client = await payerOf(scene)
  const other = await payerOf(scene)
  const lost = (await client.upload('lost.txt', 'lost'.repeat(1000))).json.data
  const file = join(scene.folder, 'contents', `${lost.payload_cid}.car`)
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
  t.teardown(() => {
    carFolder.size = size
  })
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
