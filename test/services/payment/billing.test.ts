import { decodeJwt, SignJWT } from 'jose'
import t from 'tap'
import { paymentOrderText } from '../../../src/services/payment/billing.js'
import { check, each, type Shape } from '../platform/tasks/shapes.js'
import { balance, withRegistry } from './payer.js'
import { inDatabase, type Keys, NETWORK, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

const offlineDeal: Shape = {
  ...each('integer', 'id car_file_id miner_id start_epoch sender_wallet_id deal_id unlock_at create_at update_at'),
  ...each('string', 'deal_cid status on_chain_status miner_fid'),
  ...each('string|null', 'note tx_hash_unlock'),
  verified: 'boolean',
}

const success = (data: Shape): Shape => ({ status: 'success', code: 'integer', data })

const uploads = success({
  source_file_upload: [
    {
      ...each('integer', 'source_file_upload_id car_file_id file_size upload_at duration'),
      ...each('string', 'file_name pin_status payload_cid status token_id mint_address nft_tx_hash'),
      offline_deal: [offlineDeal],
      // Beyond the interface: docs/payment.md.
      idempotency_key: 'string',
    },
  ],
  total_record_count: 'integer',
})

const detail = success({
  dao_threshold: 'integer',
  source_file_upload_deal: {
    ...each('string', 'deal_cid message_cid piece_cid signature signature_type piece_size_format client w_cid'),
    ...each('string', 'client_collateral_format provider provider_tag provider_collateral_format network_name'),
    ...each('string', 'ipfs_url file_name'),
    ...each('integer', 'deal_id height start_height end_height created_at locked_at verified_provider status'),
    ...each('boolean', 'verified_deal unlocked'),
    ...each('number', 'storage_price_per_epoch storage_price'),
    locked_fee: 'digits',
  },
})

const log = success({
  offline_deal_log: [
    { ...each('integer', 'id offline_deal_id create_at'), ...each('string', 'on_chain_status on_chain_message') },
  ],
})

const payment = success(each('string', 'w_cid pay_amount pay_tx_hash token_address'))

const mint = success({
  ...each('integer', 'id source_file_upload_id create_at update_at'),
  ...each('string', 'nft_tx_hash mint_address token_id'),
})

const billing = success({
  billing: [
    {
      ...each('integer', 'pay_id pay_at unlock_at deadline'),
      ...each('string', 'pay_tx_hash unlock_amount file_name payload_cid network_name token_name'),
      pay_amount: 'digits',
    },
  ],
  total_record_count: 'integer',
})

/** A wallet with its token, in a scene of either variant. */
interface Client {
  readonly keys: Keys
  readonly token: string | undefined
  get(path: string): ReturnType<PaymentScene['call']>
  post(path: string, body: object): ReturnType<PaymentScene['call']>
  upload(name: string, content: string, type?: '0' | '1'): Promise<{ id: number; wCid: string; price: bigint }>
  pay(wCid: string, amount: bigint, more?: object): ReturnType<PaymentScene['call']>
}

async function clientOf(scene: PaymentScene, variant: 'a' | 'b'): Promise<Client> {
  const keys = newKeys()
  const token = variant === 'a' ? await scene.signIn(keys) : undefined
  const get: Client['get'] = (path) => scene.call('GET', `/api/v1${path}`, { token })
  const post: Client['post'] = (path, body) => scene.call('POST', `/api/v1${path}`, { body, token })
  return {
    keys,
    token,
    get,
    post,
    async upload(name, content, type = '0') {
      const form = new FormData()
      for (const [part, value] of Object.entries({ duration: '525', file_type: type, wallet_address: keys.address }))
        form.append(part, value)
      form.append('file', new Blob([content]), name)
      const { json } = await post('/storage/ipfs/upload', form)
      const { source_file_upload_id: id, w_cid: wCid } = json.data
      const { json: shown } = await get(`/storage/source_file_upload/${id}`)
      return { id, wCid, price: BigInt(shown.data.pay_amount) }
    },
    pay: (wCid, amount, more = {}) =>
      post('/billing/deal/lockpayment', {
        w_cid: wCid,
        pay_amount: String(amount),
        signature: keys.sign(paymentOrderText(wCid, amount, NETWORK)),
        ...more,
      }),
  }
}

const fund = (scene: PaymentScene, { keys }: Client, amount: bigint): Promise<void> =>
  withRegistry(scene, (registry) => registry.fund(keys.address, amount))

for (const variant of ['a', 'b'] as const) {
  t.test(`variant ${variant}: each row has the members and types of the interface`, async (t) => {
    const scene = await startPaymentScene(t, { mode: variant === 'a' ? 'signedIn' : 'open' })
    const client = await clientOf(scene, variant)
    const query = `wallet_address=${client.keys.address}`
    const row = async (path: string, shape: Shape) => {
      const { status, json } = await client.get(path)
      t.equal(status, 200, path)
      check(t, json, shape)
      return json.data
    }
    t.same(await row(`/storage/tasks/deals?${query}`, uploads), { source_file_upload: [], total_record_count: 0 })
    t.same(await row(`/billing?${query}`, billing), { billing: [], total_record_count: 0 })
    const { id, wCid, price } = await client.upload('File.txt', 'hello world')
    t.ok(price > 0n)
    const unpaid = await row(`/billing/deal/lockpayment/info?source_file_upload_id=${id}`, payment)
    t.same(unpaid, { w_cid: wCid, pay_amount: '', pay_tx_hash: '', token_address: '' })
    const [pending] = (await row(`/storage/tasks/deals?${query}`, uploads)).source_file_upload
    t.match(pending, { source_file_upload_id: id, car_file_id: 0, file_name: 'File.txt', file_size: 11, duration: 525 })
    t.match(pending, { pin_status: 'Pinned', payload_cid: '', status: 'Pending', token_id: '', offline_deal: [] })

    await fund(scene, client, 10n * price)
    const paid = await client.pay(wCid, price + 5n)
    t.equal(paid.status, 200)
    check(t, paid.json, payment)
    t.equal(await balance(scene, client), 9n * price - 5n)
    const info = await row(`/billing/deal/lockpayment/info?source_file_upload_id=${id}`, payment)
    t.same(info, paid.json.data)
    t.match(info, { pay_amount: String(price + 5n), pay_tx_hash: /^0x[0-9a-f]{64}$/, token_address: /^0x/ })
    const [processing] = (await row(`/storage/tasks/deals?${query}`, uploads)).source_file_upload
    t.equal(processing.status, 'Processing')
    const [bill] = (await row(`/billing?${query}`, billing)).billing
    t.match(bill, { pay_id: 1, pay_tx_hash: info.pay_tx_hash, pay_amount: info.pay_amount, unlock_amount: '' })
    t.match(bill, { unlock_at: 0, file_name: 'File.txt', network_name: NETWORK, token_name: 'STABLE' })
    t.equal(bill.deadline - bill.pay_at, 6 * 86_400)

    const empty = await row(`/storage/deal/detail/0?source_file_upload_id=${id}`, detail)
    t.match(empty.source_file_upload_deal, { deal_id: 0, w_cid: wCid, locked_fee: info.pay_amount, unlocked: false })
    t.same(await row('/storage/deal/log/1', log), { offline_deal_log: [] })
    await addDeal(scene, id)
    const [shown] = (await row(`/storage/tasks/deals?${query}`, uploads)).source_file_upload
    t.match(shown, { car_file_id: 1, payload_cid: 'bafycar', offline_deal: [{ deal_id: 77, miner_id: 1000 }] })
    const full = await row(`/storage/deal/detail/77?source_file_upload_id=${id}`, detail)
    t.match(full.source_file_upload_deal, {
      deal_id: 77,
      deal_cid: 'bafydeal',
      provider: 't01000',
      piece_size_format: '1MiB',
      start_height: 10,
      end_height: 20,
      storage_price_per_epoch: 0.5,
      storage_price: 5,
    })
    t.match(await row('/storage/deal/log/1', log), {
      offline_deal_log: [{ on_chain_status: 'StorageDealCheckForAcceptance' }],
    })

    const nft = { source_file_upload_id: id, tx_hash: '0xab', token_id: 7, mint_address: client.keys.address }
    const minted = await client.post('/storage/mint/info', nft)
    t.equal(minted.status, 200)
    check(t, minted.json, mint)
    t.match(minted.json.data, { nft_tx_hash: '0xab', token_id: '7', source_file_upload_id: id })
    t.same((await client.post('/storage/mint/info', { ...nft, source_file_upload_id: `${id}` })).json, minted.json)
    t.match(await client.post('/storage/mint/info', { ...nft, token_id: '8' }), { status: 409 })
    const [listed] = (await row(`/storage/tasks/deals?${query}&is_minted=y`, uploads)).source_file_upload
    t.match(listed, { token_id: '7', nft_tx_hash: '0xab', mint_address: client.keys.address })
    t.equal((await row(`/storage/tasks/deals?${query}&is_minted=n`, uploads)).total_record_count, 0)
  })
}

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
  const [owner, stranger] = [await clientOf(scene, 'a'), await clientOf(scene, 'a')]
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
    `${payload}`,
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
  const client = await clientOf(scene, 'a')
  const { wCid, price } = await client.upload('a.txt', 'a'.repeat(100_000))
  t.ok(price > 1n, `it costs ${price}`)
  t.match(await client.pay(wCid, price), { status: 409, json: { message: /Fund the wallet/ } })
  await fund(scene, client, 3n * price)
  t.match(await client.pay(wCid, price - 1n), { status: 400, json: { code: 10003, message: /at least/ } })
  t.match(await client.pay(wCid, 3n * price + 1n), { status: 409 })
  t.equal(await balance(scene, client), 3n * price)
  const first = await client.pay(wCid, price)
  t.same((await client.pay(wCid, price)).json, first.json, 'the same order again')
  t.match(await client.pay(wCid, price + 1n), { status: 409, json: { message: /paid already/ } })
  t.equal(await balance(scene, client), 2n * price)
  const all = await Promise.all(Array.from({ length: 10 }, () => client.pay(wCid, price)))
  t.ok(all.every(({ json }) => json.data.pay_tx_hash === first.json.data.pay_tx_hash))
  t.equal(await balance(scene, client), 2n * price, 'it is paid once')
})

t.test('pages and orders of lists', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const client = await clientOf(scene, 'b')
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
    for (const query of ['', '&page_size=x', '&page_size=-1', '&page_size=0', '&page_number=0', '&page_number=x'])
      t.same(await one(query), { names: newest, total: 4 }, query)
    for (const query of ['&order_by=nothing', '&is_ascend=Y', '&is_ascend=n', '&is_ascend=1'])
      t.same(await one(query), { names: newest, total: 4 }, query)
    t.same(await one('&is_ascend=y'), { names, total: 4 })
    t.same(await one('&is_ascend=y&page_size=3&page_number=2'), { names: ['c.txt'], total: 4 })
    t.same(await one('&page_size=3&page_number=3'), { names: [], total: 4 }, 'a page past the end is empty')
    t.same(await one('&file_name=A_&is_ascend=y'), { names: ['A_1.txt'], total: 1 }, 'an underscore is itself')
    t.same(await one('&file_name=%25'), { names: ['a%.txt'], total: 1 })
    t.same((await one('&file_name=A&order_by=file_name&is_ascend=y')).total, 2, 'in any case')
    t.same(await one('&order_by=file_name&is_ascend=y'), { names: ['A_1.txt', 'a%.txt', 'b.txt', 'c.txt'], total: 4 })
  }
  t.same((await uploads('&order_by=file_size&is_ascend=y')).names, ['c.txt', 'a%.txt', 'A_1.txt', 'b.txt'])
  t.same((await bills('&order_by=pay_amount&is_ascend=y')).names, ['c.txt', 'b.txt', 'A_1.txt', 'a%.txt'], 'as numbers')
  for (const order of ['unlock_amount', 'pay_at', 'unlock_at', 'deadline'])
    t.same((await bills(`&order_by=${order}&is_ascend=y`)).names, names, order)
  const { json } = await client.get(`/billing?wallet_address=${client.keys.address}`)
  t.same((await bills(`&tx_hash=${json.data.billing[1].pay_tx_hash}`)).names, ['a%.txt'])
  const stranger = `wallet_address=${newKeys().address}`
  const { data: none } = (await client.get(`/storage/tasks/deals?${stranger}`)).json
  t.same(none, { source_file_upload: [], total_record_count: 0 })
})

t.test('bad input', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const client = await clientOf(scene, 'b')
  const { id, wCid } = await client.upload('a.txt', 'a')
  const wallet = client.keys.address
  const gets: readonly [number, number, string][] = [
    [400, 10001, '/storage/tasks/deals'],
    [400, 10003, '/storage/tasks/deals?wallet_address=x'],
    [400, 10003, `/storage/tasks/deals?wallet_address=${wallet}&file_name=%00`],
    [400, 10001, '/billing'],
    [400, 10003, '/billing?wallet_address=x'],
    [400, 10001, '/billing/deal/lockpayment/info'],
    [400, 10002, '/billing/deal/lockpayment/info?source_file_upload_id=x'],
    [400, 10003, '/billing/deal/lockpayment/info?source_file_upload_id=0'],
    [400, 10003, '/billing/deal/lockpayment/info?source_file_upload_id=-1'],
    [404, 404, '/billing/deal/lockpayment/info?source_file_upload_id=99'],
    [400, 10001, '/storage/deal/detail/0'],
    [400, 10002, `/storage/deal/detail/x?source_file_upload_id=${id}`],
    [400, 10002, '/storage/deal/detail/0?source_file_upload_id=x'],
    [404, 404, '/storage/deal/detail/0?source_file_upload_id=99'],
    [404, 404, `/storage/deal/detail/1?source_file_upload_id=${id}`],
    [400, 10002, '/storage/deal/log/x'],
    [400, 10002, '/storage/source_file_upload/x'],
  ]
  for (const [status, code, path] of gets)
    t.match(await client.get(path), { status, json: { status: 'error', code } }, path)
  const nft = { source_file_upload_id: id, tx_hash: 'x', token_id: '1', mint_address: wallet }
  const order = { w_cid: wCid, pay_amount: '1', signature: '0x' }
  const posts: readonly [number, number, string, object][] = [
    [400, 10001, '/storage/mint/info', {}],
    [400, 10001, '/storage/mint/info', { ...nft, tx_hash: '' }],
    [400, 10001, '/storage/mint/info', { ...nft, token_id: null }],
    [400, 10003, '/storage/mint/info', { ...nft, mint_address: 'x' }],
    [400, 10002, '/storage/mint/info', { ...nft, source_file_upload_id: 'x' }],
    [404, 404, '/storage/mint/info', { ...nft, source_file_upload_id: 99 }],
    [400, 10001, '/billing/deal/lockpayment', { ...order, w_cid: undefined }],
    [400, 10001, '/billing/deal/lockpayment', { ...order, signature: undefined }],
    [400, 10002, '/billing/deal/lockpayment', { ...order, pay_amount: '0' }],
    [400, 10002, '/billing/deal/lockpayment', { ...order, pay_amount: '1.5' }],
    [400, 10002, '/billing/deal/lockpayment', { ...order, pay_amount: '1'.repeat(19) }],
    [401, 401, '/billing/deal/lockpayment', order],
  ]
  for (const [status, code, path, body] of posts)
    t.match(await client.post(path, body), { status, json: { status: 'error', code } }, JSON.stringify(body))
})
