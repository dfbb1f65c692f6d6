import { decodeJwt, SignJWT } from 'jose'
import t from 'tap'
import { balance, requestsOf, withRegistry } from './payer.js'
import { inDatabase, type Keys, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

/** A wallet without coins, in a scene of either mode. */
async function clientOf(scene: PaymentScene, mode: 'signedIn' | 'open' = 'signedIn') {
  const keys = newKeys()
  const token = mode === 'signedIn' ? await scene.signIn(keys) : undefined
  const { ask: get, post, upload, order: pay } = requestsOf(scene.call, keys, token)
  return {
    ...{ keys, token, get, post, pay },
    /** @param type 1 for an NFT */
    async upload(name: string, content: string, type = '0') {
      const { json } = await upload(name, content, '', { file_type: type })
      const { source_file_upload_id: id, w_cid: wCid } = json.data
      const { json: shown } = await get(`/storage/source_file_upload/${id}`)
      return { id, wCid, price: BigInt(shown.data.pay_amount) }
    },
  }
}

const fund = (scene: PaymentScene, { keys }: { readonly keys: Keys }, amount: bigint): Promise<void> =>
  withRegistry(scene, (registry) => registry.fund(keys.address, amount))

t.test('an upload, its payment, its deal and its NFT are shown', async (t) => {
  const scene = await startPaymentScene(t)
  const client = await clientOf(scene)
  const show = async (path: string) => {
    const { status, json } = await client.get(path)
    t.match({ status, json }, { status: 200, json: { status: 'success', code: 200 } }, path)
    return json.data
  }
  const upload = async () => (await show('/storage/tasks/deals')).source_file_upload[0]
  const { id, wCid, price } = await client.upload('File.txt', 'hello world')
  const payment = `/billing/deal/lockpayment/info?source_file_upload_id=${id}`
  t.same(await show(payment), { w_cid: wCid, pay_amount: '', pay_tx_hash: '', token_address: '' })
  t.match(await upload(), {
    car_file_id: 0,
    pin_status: 'Pinned',
    payload_cid: '',
    status: 'Pending',
    offline_deal: [],
  })

  await fund(scene, client, 10n * price)
  const paid = await client.pay(wCid, price + 5n)
  t.equal(await balance(scene, client), 9n * price - 5n)
  const info = await show(payment)
  t.same(info, paid.json.data)
  t.match(info, { pay_amount: String(price + 5n), pay_tx_hash: /^0x[0-9a-f]{64}$/, token_address: /^0x/ })
  t.equal((await upload()).status, 'Processing')
  const [bill] = (await show('/billing')).billing
  t.match(bill, { pay_id: 1, pay_tx_hash: info.pay_tx_hash, pay_amount: info.pay_amount, unlock_amount: '' })
  t.equal(bill.deadline - bill.pay_at, 6 * 86_400)

  const { source_file_upload_deal: none } = await show(`/storage/deal/detail/0?source_file_upload_id=${id}`)
  t.match(none, { deal_id: 0, w_cid: wCid, locked_fee: info.pay_amount, unlocked: false })
  await addDeal(scene, id)
  t.match(await upload(), { car_file_id: 1, payload_cid: 'bafycar', offline_deal: [{ deal_id: 77, miner_id: 1000 }] })
  const { source_file_upload_deal: detail } = await show(`/storage/deal/detail/77?source_file_upload_id=${id}`)
  const prices = { piece_size_format: '1MiB', storage_price_per_epoch: 0.5, storage_price: 5 }
  t.match(detail, { deal_id: 77, deal_cid: 'bafydeal', provider: 't01000', ...prices })

  const nft = { source_file_upload_id: id, tx_hash: '0xab', token_id: 7, mint_address: client.keys.address }
  const minted = await client.post('/storage/mint/info', nft)
  t.match(minted, { status: 200, json: { data: { nft_tx_hash: '0xab', token_id: '7', source_file_upload_id: id } } })
  t.same((await client.post('/storage/mint/info', { ...nft, source_file_upload_id: `${id}` })).json, minted.json)
  t.match(await client.post('/storage/mint/info', { ...nft, token_id: '8' }), { status: 409 })
  const [listed] = (await show('/storage/tasks/deals?is_minted=y')).source_file_upload
  t.match(listed, { token_id: '7', nft_tx_hash: '0xab', mint_address: client.keys.address })
  t.equal((await show('/storage/tasks/deals?is_minted=n')).total_record_count, 0)
})

/** A deal as the network could have made it, of the upload. */
async function addDeal(scene: PaymentScene, upload: number): Promise<void> {
  await inDatabase(
    scene,
    `
    INSERT INTO cars (payload_cid, size, created, created_epoch) VALUES ('bafycar', 100, 1, 1);
    INSERT INTO offline_deals (car, deal_id, deal_cid, piece_cid, piece_size, miner_fid, client, verified, price,
      start_epoch, end_epoch, on_chain_status, created, updated)
      VALUES (1, 77, 'bafydeal', 'baga', 1048576, 't01000', 't1client', 0, '500000000000000000', 10, 20,
      'StorageDealCheckForAcceptance', 1, 1);
    INSERT INTO deal_logs (deal, on_chain_status, message, created)
      VALUES (1, 'StorageDealCheckForAcceptance', 'Provider state: StorageDealPublish', 1);
    UPDATE uploads SET car = 1 WHERE id = ${upload};
  `,
  )
}

t.test('a wallet sees and pays only what is its own', async (t) => {
  const scene = await startPaymentScene(t)
  const [owner, stranger] = [await clientOf(scene), await clientOf(scene)]
  const { id, wCid, price } = await owner.upload('a.txt', 'a')
  await fund(scene, owner, price)
  await fund(scene, stranger, 10n * price)
  await addDeal(scene, id)
  const address = owner.keys.address
  const paths: readonly [string, number][] = [
    [`/storage/tasks/deals?wallet_address=${address}`, 403],
    [`/billing?wallet_address=${address}`, 403],
    [`/storage/deal/detail/77?source_file_upload_id=${id}`, 404],
    [`/storage/source_file_upload/${id}`, 404],
    [`/billing/deal/lockpayment/info?source_file_upload_id=${id}`, 404],
  ]
  const token = owner.token ?? ''
  const [, payload = ''] = token.split('.')
  const forged = [
    undefined,
    `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`,
    await new SignJWT(decodeJwt(token)).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)),
  ]
  for (const [path, status] of paths) {
    t.equal((await stranger.get(path)).status, status, path)
    t.equal((await owner.get(path)).status, 200, path)
    for (const token of forged) t.equal((await scene.call('GET', `/api/v1${path}`, { token })).status, 401, path)
  }
  t.same((await stranger.get('/storage/deal/log/1')).json.data, { offline_deal_log: [] })
  t.equal((await owner.get('/storage/deal/log/1')).json.data.offline_deal_log.length, 1)
  t.equal((await owner.get('/storage/tasks/deals')).json.data.total_record_count, 1, 'the token names the wallet')
  const nft = { source_file_upload_id: id, tx_hash: 'x', token_id: '1', mint_address: address }
  t.equal((await stranger.post('/storage/mint/info', nft)).status, 404)
  t.equal((await stranger.pay(wCid, price)).status, 401)
  t.equal((await owner.pay(wCid, price, { signature: owner.keys.sign('x') })).status, 401)
  t.equal((await owner.pay(wCid, price, { pay_amount: String(price + 1n) })).status, 401, 'another amount than signed')
  t.equal(await balance(scene, owner), price)
  t.equal(await balance(scene, stranger), 10n * price)
})

t.test('payments that are refused move nothing', async (t) => {
  const scene = await startPaymentScene(t)
  const client = await clientOf(scene)
  const { wCid, price } = await client.upload('a.txt', 'a'.repeat(100_000))
  t.ok(price > 1n, `it costs ${price}`)
  t.match(await client.pay(wCid, price), { status: 409, json: { message: /Fund the wallet/ } })
  await fund(scene, client, 3n * price)
  t.match(await client.pay(wCid, price - 1n), { status: 400, json: { code: 10003, message: /at least/ } })
  t.match(await client.pay(wCid, 3n * price + 1n), { status: 409 })
  t.equal(await balance(scene, client), 3n * price)
  const all = await Promise.all(Array.from({ length: 10 }, () => client.pay(wCid, price)))
  t.equal(new Set(all.map(({ json }) => json.data.pay_tx_hash)).size, 1, 'the same order is the same payment')
  t.match(await client.pay(wCid, price + 1n), { status: 409, json: { message: /paid already/ } })
  t.equal(await balance(scene, client), 2n * price, 'it is paid once')
})

t.test('pages and orders of lists', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const client = await clientOf(scene, 'open')
  await fund(scene, client, 10n ** 12n)
  const amounts = [9n, 10n, 100n, 2n]
  const names = ['b.txt', 'A_1.txt', 'a%.txt', 'c.txt']
  for (const [n, name] of names.entries()) {
    const { wCid } = await client.upload(name, 'x'.repeat(4 - n))
    await client.pay(wCid, amounts[n] ?? 0n)
  }
  await client.upload('nft.png', 'nft', '1')
  const list = async (path: string, query: string, member: string): Promise<{ names: string[]; total: number }> => {
    const { json } = await client.get(`${path}?wallet_address=${client.keys.address}${query}`)
    const rows: { file_name: string }[] = json.data[member]
    return { names: rows.map(({ file_name }) => file_name), total: json.data.total_record_count }
  }
  const uploads = (query: string) => list('/storage/tasks/deals', query, 'source_file_upload')
  const bills = (query: string) => list('/billing', query, 'billing')
  const newest = [...names].reverse()
  for (const one of [uploads, bills]) {
    for (const query of ['', '&page_size=x', '&page_size=0', '&page_number=0', '&order_by=nothing', '&is_ascend=Y'])
      t.same(await one(query), { names: newest, total: 4 }, query)
    t.same(await one('&is_ascend=y'), { names, total: 4 })
    t.same(await one('&is_ascend=y&page_size=3&page_number=2'), { names: ['c.txt'], total: 4 })
    t.same(await one('&page_size=3&page_number=3'), { names: [], total: 4 }, 'a page past the end is empty')
    t.same(await one('&file_name=A_&is_ascend=y'), { names: ['A_1.txt'], total: 1 }, 'an underscore is itself')
    t.same(await one('&file_name=%25'), { names: ['a%.txt'], total: 1 })
    t.same(await one('&order_by=file_name&is_ascend=y'), { names: ['A_1.txt', 'a%.txt', 'b.txt', 'c.txt'], total: 4 })
  }
  t.same((await uploads('&order_by=file_size&is_ascend=y')).names, ['c.txt', 'a%.txt', 'A_1.txt', 'b.txt'])
  t.same((await bills('&order_by=pay_amount&is_ascend=y')).names, ['c.txt', 'b.txt', 'A_1.txt', 'a%.txt'], 'as numbers')
  for (const order of ['unlock_amount', 'pay_at', 'unlock_at', 'deadline'])
    t.same((await bills(`&order_by=${order}&is_ascend=y`)).names, names, order)
  const { json } = await client.get(`/billing?wallet_address=${client.keys.address}`)
  t.same((await bills(`&tx_hash=${json.data.billing[1].pay_tx_hash}`)).names, ['a%.txt'])
})

t.test('bad input', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const client = await clientOf(scene, 'open')
  const { id, wCid } = await client.upload('a.txt', 'a')
  const wallet = client.keys.address
  const gets: readonly [number, number, string][] = [
    [400, 10001, '/storage/tasks/deals'],
    [400, 10003, '/storage/tasks/deals?wallet_address=x'],
    [400, 10003, `/storage/tasks/deals?wallet_address=${wallet}&file_name=%00`],
    [400, 10001, '/billing/deal/lockpayment/info'],
    [400, 10002, '/billing/deal/lockpayment/info?source_file_upload_id=x'],
    [400, 10003, '/billing/deal/lockpayment/info?source_file_upload_id=0'],
    [404, 404, '/billing/deal/lockpayment/info?source_file_upload_id=99'],
    [400, 10002, `/storage/deal/detail/x?source_file_upload_id=${id}`],
    [404, 404, '/storage/deal/detail/0?source_file_upload_id=99'],
  ]
  for (const [status, code, path] of gets)
    t.match(await client.get(path), { status, json: { status: 'error', code } }, path)
  const nft = { source_file_upload_id: id, tx_hash: 'x', token_id: '1', mint_address: wallet }
  const order = { w_cid: wCid, pay_amount: '1', signature: '0x' }
  const [mintInfo, lockPayment] = ['/storage/mint/info', '/billing/deal/lockpayment']
  const posts: readonly [number, number, string, object][] = [
    [400, 10001, mintInfo, { ...nft, tx_hash: '' }],
    [400, 10003, mintInfo, { ...nft, mint_address: 'x' }],
    [400, 10002, mintInfo, { ...nft, source_file_upload_id: 'x' }],
    [404, 404, mintInfo, { ...nft, source_file_upload_id: 99 }],
    [400, 10001, lockPayment, { ...order, w_cid: undefined }],
    [400, 10002, lockPayment, { ...order, pay_amount: '0' }],
    [400, 10002, lockPayment, { ...order, pay_amount: '1'.repeat(19) }],
    [401, 401, lockPayment, order],
  ]
  for (const [status, code, path, body] of posts)
    t.match(await client.post(path, body), { status, json: { status: 'error', code } }, JSON.stringify(body))
})
