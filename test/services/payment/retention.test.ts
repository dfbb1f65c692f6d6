import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openDatabase, Writer } from '../../../src/services/database.js'
import { until } from '../../support/waiting.js'
import { balance, COINS, pass, payerOf, withBook } from './payer.js'
import { newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

t.setTimeout(300_000)

const DAY_EPOCHS = 2880

const contents = (scene: PaymentScene): string[] => readdirSync(join(scene.folder, 'contents')).sort()
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
  t.same(contents(scene), [`${shared.payload_cid}.car`])
  t.equal((await ipfs(scene, own.payload_cid)).status, 404)
  t.equal(await (await ipfs(scene, shared.payload_cid)).text(), 'shared')
  t.equal(await balance(scene, payer), COINS)
  const again = (await payer.upload('own.txt', 'nobody else has this')).json.data
  t.equal(again.payload_cid, own.payload_cid)
  t.equal((await payer.order(again.w_cid, 500_000n)).status, 200, 'the same content can be uploaded again')
  t.equal(await (await ipfs(scene, own.payload_cid)).text(), 'nobody else has this')
})

t.test('a block stays while one of its contents does', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const block = differing(262_144, 1)
  const large = (await payer.upload('large', Buffer.concat([block, differing(1000, 2)]))).json.data
  await scene.network.control.advance(DAY_EPOCHS)
  const small = (await payer.upload('small', block)).json.data
  await scene.network.control.advance(7 * DAY_EPOCHS + 120)
  t.match(await payer.get('/storage/tasks/deals'), { total_record_count: 1 })
  t.equal((await ipfs(scene, large.payload_cid)).status, 404)
  t.ok(Buffer.from(await (await ipfs(scene, small.payload_cid)).arrayBuffer()).equals(block))
})

t.test('what is refunded or has no upload goes', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  await payer.pay('a.txt', 'a', 500_000n)
  t.equal(contents(scene).length, 1)
  await pass(scene, payer, 'Refunded', 1000)
  await scene.network.control.advance(120)
  await payer.get('/storage/tasks/deals')
  t.same(contents(scene), [])
  t.match(await payer.get('/billing'), { total_record_count: 1 }, 'its payment is still told')
  await scene.payment.stop()
  const db = openDatabase(join(scene.folder, 'payment.db'), '')
  const writer = new Writer(db)
  await writer.run(() => db.exec("INSERT INTO contents (cid, size, car_size) VALUES ('QmNone', 1, 1)"))
  writer.close()
  db.close()
  writeFileSync(join(scene.folder, 'contents', 'QmNone.car'), 'x')
  const again = await scene.restart()
  await until('the content without an upload is gone', () => !existsSync(join(again.folder, 'contents', 'QmNone.car')))
})

t.test('copies that a provider has, too, make room, and come back on demand', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxStoredBytes: 2_000_000 } }, { withPlatform: true })
  const payer = await payerOf(scene)
  const content = differing(600_000, 3)
  await payer.pay('first', content, 400_000n)
  const [row] = await pass(scene, payer, 'Success')
  t.match(row, { pin_status: 'Pinned' })
  const [file = ''] = contents(scene)
  const cid = file.replace('.car', '')
  t.equal((await payer.upload('second', differing(700_000, 5))).status, 200)
  t.notOk(
    contents(scene).includes(file),
    'the copy of the first is given up: 600 kB and twice 700 kB, while they are packed, are too much',
  )
  t.match(await payer.get('/storage/tasks/deals?is_ascend=y'), { source_file_upload: [{ pin_status: 'UnPinned' }] })
  await scene.network.control.advance(9 * DAY_EPOCHS)
  await payer.get('/storage/tasks/deals')
  t.same(contents(scene), [], 'the unpaid ones are gone')
  const answers = await Promise.all([ipfs(scene, cid), ipfs(scene, cid), ipfs(scene, cid, '?format=raw')])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.ok(Buffer.from(await (answers[0] as Response).arrayBuffer()).equals(content), 'the provider gives it back')
  t.same(contents(scene), [file])
  await scene.network.control.advance(526 * DAY_EPOCHS)
  await payer.get('/storage/tasks/deals')
  t.same(contents(scene), [], 'it goes when its deal has ended')
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
  t.equal((await last.upload('c', '')).status, 200)
  t.equal((await last.upload('c', '')).status, 200)
  t.equal((await last.upload('c', '')).status, 507, 'their number counts, too')
  const payer = await payerOf(scene)
  t.equal((await payer.upload('d', 'd'.repeat(1500))).status, 200, 'a wallet with coins has its own part')
  t.match(await payer.upload('e', 'e'), { status: 409, json: { message: /pay for them first/ } })
  await withBook(scene, (book) => book.fund(last.keys.address, 1n))
  t.equal((await last.upload('f', 'f'.repeat(1000))).status, 200)
})

t.test('uploads at the same time count together, and a refused one leaves nothing', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxUnpaidBytes: 2500, uploadsPerWallet: 6 } })
  const payer = await payerOf(scene)
  const all = await Promise.all(Array.from({ length: 6 }, (_, n) => payer.upload(`${n}`, `${n}`.repeat(1000))))
  const stored = all.filter(({ status }) => status === 200).length
  t.ok(stored === 1 || stored === 2, `${stored} of 6 are stored`)
  t.equal(contents(scene).length, stored)
  t.equal(((await payer.get('/storage/tasks/deals')) as { total_record_count?: number }).total_record_count, stored)
})

t.test('uploads on their way are bounded, paid or not', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxOpenBytes: 1500 } })
  const payer = await payerOf(scene)
  await payer.pay('a', 'a'.repeat(1000), 400_000n)
  t.match(await payer.upload('b', 'b'.repeat(501)), { status: 409, json: { message: /without deals/ } })
  t.equal((await payer.upload('b', 'b'.repeat(500))).status, 200)
})
