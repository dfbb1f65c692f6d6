import t from 'tap'
import { balance, COINS, pass, payerOf, type Row, sumOfLedger } from './payer.js'
import { newKeys, startPaymentScene } from './payment-client.js'

const DAY = 86_400

t.test('a part of each month is free', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 1000 } }, { withPlatform: true })
  // From the first of a month on, so that it does not end in between.
  const { clock } = scene
  const now = new Date()
  clock.ahead = Math.floor((Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1000) + 60
  const payer = await payerOf(scene)
  const free = (await payer.upload('a', 'x'.repeat(600))).json.data
  t.equal(free.status, 'Free')
  t.equal((await payer.upload('b', 'y'.repeat(401))).json.data.status, 'Pending', 'with it, it would be too much')
  t.equal((await payer.upload('c', 'z'.repeat(400))).json.data.status, 'Free', 'to the last byte')
  t.match(await payer.get('/storage/tasks/deals?is_ascend=y'), {
    source_file_upload: [
      { status: 'Processing', is_free: true },
      { status: 'Pending', is_free: false },
      { status: 'Processing', is_free: true },
    ],
    free_usage: 1000,
    free_quota_per_month: 1000,
  })
  for (const [status, count] of [
    ['Processing', 2],
    ['Pending', 1],
    ['Success', 0],
    ['Other', 3],
  ] as const) {
    t.match(await payer.get(`/storage/tasks/deals?status=${status}`), { total_record_count: count }, status)
  }
  t.match(await payer.get(`/storage/source_file_upload/${free.source_file_upload_id}`), {
    is_free: true,
    pay_amount: '0',
  })
  t.match(await payer.order(free.w_cid, 1n), { status: 409, json: { message: /free/ } })

  const owed = (await payer.get('/storage/source_file_upload/2')) as Row
  await payer.order(owed.w_cid, BigInt(owed.pay_amount))
  const [first, , third] = await pass(scene, payer, 'Success')
  t.equal(first.car_file_id, third.car_file_id, 'with what is paid')
  t.match(first.offline_deal, [{ status: 'Success' }])
  t.match(await payer.get('/billing'), { total_record_count: 1 })
  t.ok((await balance(scene, payer)) < COINS)
  await sumOfLedger(t, scene)

  t.equal((await payer.upload('d', 'd')).json.data.status, 'Pending', 'what has its deals still counts')
  clock.ahead += 31 * DAY
  const later = await payerOf(scene, payer.keys)
  t.equal((await later.upload('e', 'e')).json.data.status, 'Free', 'the next month is another one')
  const stranger = await payerOf(scene, newKeys())
  t.equal((await stranger.upload('f', 'f'.repeat(1000))).json.data.status, 'Free', 'each wallet has its own')
})

t.test('free uploads without a deal end, and uploads of NFTs and of variant b are never free', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 1000 } })
  const payer = await payerOf(scene)
  t.equal((await payer.upload('a', 'a')).json.data.status, 'Free')
  const form = new FormData()
  form.append('duration', '180')
  form.append('file_type', '1')
  form.append('file', new Blob(['nft']), 'nft')
  const token = await scene.signIn(payer.keys)
  const nft = await scene.call('POST', '/api/v1/storage/ipfs/upload', { body: form, token })
  t.equal(nft.json.data.status, 'Pending')
  await pass(scene, payer, 'Refunded', 1000)
  await sumOfLedger(t, scene)

  const other = await startPaymentScene(t, { variant: 'b', limits: { freeBytesPerMonth: 1000 } })
  form.append('wallet_address', payer.keys.address)
  const { json } = await other.call('POST', '/api/v1/storage/ipfs/upload', { body: form })
  t.equal(json.data.status, undefined)
  const rows = await other.call('GET', `/api/v1/storage/tasks/deals?wallet_address=${payer.keys.address}`)
  t.equal(rows.json.data.free_usage, undefined)
})

t.test('empty uploads are free up to a number of them', async (t) => {
  const limits = { freeBytesPerMonth: 1000, freeUploadsPerMonth: 2 }
  const scene = await startPaymentScene(t, { limits })
  const payer = await payerOf(scene)
  const states: string[] = []
  for (let n = 0; n < 3; n++) states.push((await payer.upload(`${n}`, '')).json.data.status)
  t.same(states, ['Free', 'Free', 'Pending'])
  t.match(await payer.get('/storage/tasks/deals'), { free_usage: 0, free_quota_per_month: 1000 })
})

t.test('uploads at the same time share what is free', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 1000, uploadsPerWallet: 16 } })
  const payer = await payerOf(scene)
  const all = await Promise.all(Array.from({ length: 8 }, (_, n) => payer.upload(`${n}`, `${n}`.repeat(300))))
  const states = all.map(({ json }) => json.data.status)
  t.equal(states.filter((status) => status === 'Free').length, 3)
})
