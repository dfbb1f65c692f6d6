import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Client } from './client.js'
import { startDeals, terms, UNTIL_ACTIVE } from './deal-client.js'

const CID = /^b[a-z2-7]{50,}$/
const record = (filename: string): object => ({
  filename,
  walletAddress: /^t1[a-z2-7]{39}$/,
  verifiedDeal: 'false',
  fastRetrieval: 'true',
  dataCid: CID,
  minerId: 't01000',
  price: '0.0001',
  duration: '518400',
  dealCid: CID,
  timeStamp: /^\d{16}$/,
})
const FIELDS = 'filename walletAddress verifiedDeal fastRetrieval dataCid minerId price duration dealCid timeStamp'
const empty = Object.fromEntries(FIELDS.split(' ').map((name) => [name, '']))

t.test('deals of objects', async (t) => {
  const client = await startDeals(t)
  for (const [key, body] of [
    ['photos/2024/ä b#?.jpg', 'small'],
    ['large', randomBytes(300_000)],
    ['empty', ''],
  ] as const) {
    await client.put('bucket', key, body)
    t.same(await client.retrieve('bucket', key), {
      http: 200,
      data: { file_name: key, deals: [] },
      status: 'success',
      message: 'The specified object does not have deals',
    })
    const first = await client.deal('bucket', key)
    t.match(first, { http: 200, status: 'success', data: record(`/bucket/${key}`) })
    t.same(Object.keys(first.data), Object.keys(empty), 'the fields of the interface, and no others')
    const second = await client.deal('bucket', key, { VerifiedDeal: 'TRUE', FastRetrieval: 'false', Price: '2' })
    t.match(second.data, { verifiedDeal: 'true', fastRetrieval: 'false', price: '2', dataCid: first.data.dataCid })
    const { data, status } = await client.retrieve('bucket', key)
    t.equal(status, 'success')
    t.same(data.file_name, key)
    const kept = data.deals.map((deal: { status: string; data: object }) => ({ status: deal.status, data: deal.data }))
    const envelopes = [first, second].map((made) => ({ status: 'success', data: made.data }))
    t.same(kept, envelopes, 'each in an envelope of its own, the oldest first')
  }
  t.same((await client.history('bucket')).data, { bucket_name: 'bucket', deals: [] })

  await client.putCold('bucket', 'cold', 'cold')
  const used = await client.used()
  const told = await client.ask('retrieve/bucket/cold', undefined, { 'x-cloud-history-only': 'true' })
  t.match(told, { status: 'success', data: { deals: [{ status: 'success' }] } })
  t.equal(await client.used(), used, 'asked for the history alone, it brings nothing back')
  const { dealCid } = told.data.deals[0].data
  const from = (cid: string) => client.ask('retrieve/bucket/cold', undefined, { 'x-cloud-deal-cid': cid })
  t.match(await from(`${dealCid}x`), { status: 'fail', message: /No deal holds the current generation of this object/ })
  t.equal(await client.used(), used)
  t.match(await from(dealCid), { status: 'success', message: 'The object has been brought back.' })
})

t.test('deals of buckets', async (t) => {
  const client = await startDeals(t)
  t.match(await client.history('bucket'), {
    http: 200,
    status: 'success',
    data: { bucket_name: 'bucket', deals: [] },
    message: 'The specified bucket does not have deals',
  })
  t.same(await client.deals('bucket'), {
    http: 200,
    data: empty,
    status: 'fail',
    message: 'The bucket is empty: upload objects before making a deal of it.',
  })
  const bodies = new Map<string, Buffer>()
  for (const key of ['a', 'a/b', 'a/b/c', 'a//c', '.', '..', 'x/', 'ü', 'z'.repeat(300)]) {
    const body = randomBytes(key.length * 7000)
    bodies.set(key, body)
    await client.put('bucket', key, body)
  }
  const made = await client.deals('bucket', {}, 'nightly')
  t.match(made, { http: 200, status: 'success', data: record('/bucket') })
  const { deals } = (await client.history('bucket')).data
  t.match(deals, [{ data: made.data }])
  t.equal(deals.length, 1)
  t.same((await client.ask('dealprogress/nightly')).data.filesTotal, bodies.size)

  await client.advance(UNTIL_ACTIVE)
  const { objects } = await client.gateway.call('ListObjects', { bucketName: 'bucket', delimiter: '' })
  for (const { name, generation } of objects)
    t.match(await client.evict('bucket', name, generation), { status: 'success', data: { file_name: name } })
  t.equal(await client.used(), 0)
  for (const [key, body] of bodies) {
    t.match(await client.retrieve('bucket', key), { status: 'success', message: 'The object has been brought back.' })
    t.ok((await client.gateway.get('bucket', key)).body.equals(body), `${key} comes back out of the bucket's deal`)
  }
})

t.test('the body of the request', async (t) => {
  const client = await startDeals(t)
  await client.put('bucket', 'key', 'x')
  const deal = (body: object | string) => client.ask('deal/bucket/key', body)
  const spelled = { minerid: 't01000', PRICE: '0.0001', duration: '518400', verifieddeal: 'false' }
  const misspelled = (await deal({ ...spelled, FastRetrival: 'false', Unknown: 'x' })).data
  t.match(misspelled, { fastRetrieval: 'false', minerId: 't01000' })
  t.match((await deal({ ...spelled, fastretrieval: 'true', FastRetrival: 'true' })).data, { fastRetrieval: 'true' })
  t.match((await deal(spelled)).data, { fastRetrieval: 'true', verifiedDeal: 'false' }, 'as Lotus does')

  const fails = async (body: object | string, message: RegExp) =>
    t.match(await deal(body), { http: 200, status: 'fail', data: empty, message })
  await fails('', /^MinerId must name/)
  await fails('{', /must be a JSON object of texts/)
  await fails('[]', /must be a JSON object of texts/)
  await fails(Buffer.from([0x7b, 0xff]).toString('latin1'), /must be a JSON object/)
  await fails({ ...terms, Duration: 518400 }, /member Duration must be a text/)
  await fails('{"MinerId":"\\ud800"}', /not well-formed/)
  for (const Price of ['', '-1', '1e3', 'free', '0x1', '1.', `0.${'1'.repeat(19)}`])
    await fails({ ...terms, Price }, /^Price must be a decimal number/)
  for (const Duration of ['', '0', '-1', '1.5', '1e5', '9'.repeat(10)])
    await fails({ ...terms, Duration }, /^Duration must be a whole number/)
  await fails({ ...terms, VerifiedDeal: '1' }, /^VerifiedDeal must be/)
  await fails({ ...terms, FastRetrieval: 'yes' }, /^FastRetrieval must be/)
  await fails({ ...terms, FastRetrival: 'false' }, /contradict/)
  await fails({ ...terms, MinerId: 't09999' }, /t09999/)
  await client.fault('offline')
  await fails(terms, /t01000 is offline/)
  t.match(await deal('x'.repeat(70_000)), { http: 400, status: 'fail' })
  t.equal((await client.retrieve('bucket', 'key')).data.deals.length, 3, 'of what failed there is no deal')
})

t.test('who may, and what is not there', async (t) => {
  const client = await startDeals(t)
  await client.put('bucket', 'key', 'x')
  const paths = ['deal/bucket/key', 'deals/bucket', 'evict/bucket/key', 'network/control'].map((path) => [path, '{}'])
  const ofDeals = ['retrieve/bucket/key', 'bucket/retrieve/bucket', 'dealprogress/x', 'dealstatus/x', 'deallist']
  const reads = [...ofDeals, 'providers']
  const anybody = new Client(client.gateway.url, 'gateway')
  await client.gateway.call('SetBucketPolicy', { bucketName: 'bucket', prefix: '', policy: 'readwrite' })
  for (const [path, body] of [...paths, ...reads.map((path) => [path, undefined])]) {
    const method = body === undefined ? 'GET' : 'POST'
    const asked = (headers: Record<string, string>) =>
      anybody.send(`/gateway/${path}`, { method, headers, ...(body !== undefined && { body }) })
    const none = await asked({})
    t.equal(none.status, 401, `${path}`)
    t.match(JSON.parse(none.text), { status: 'fail', message: /^Authentication failed/ })
    t.equal((await asked({ authorization: 'Bearer x' })).status, 401)
    const other = await client.gateway.send(`/gateway/${path}`, { method: 'PUT', headers: client.gateway.headers() })
    t.equal(other.status, 405)
  }
  t.match(await client.deal('missing', 'key'), { http: 404, status: 'fail', message: /bucket does not exist/ })
  t.match(await client.deals('missing'), { http: 404, status: 'fail', data: empty })
  t.match(await client.deal('bucket', 'missing'), { http: 404, status: 'fail', message: /key does not exist/ })
  const none = { file_name: 'missing', deals: [] }
  t.match(await client.retrieve('bucket', 'missing'), { http: 404, status: 'fail', data: none })
  t.match(await client.history('missing'), { http: 404, data: { bucket_name: 'missing', deals: [] } })
  t.match(await client.ask('bucket/other/bucket'), { http: 404 })
  t.match(await client.ask('network/other', {}), { http: 404 })
  t.match(await client.ask('dealstatus/bafynone'), { http: 404, data: null, message: 'There is no such deal.' })
  t.match(await client.evict('bucket', 'missing', 'x'), { http: 404 })
  const { headers } = await client.send('dealstatus/bafynone')
  t.equal(headers['x-cloud-error-code'], 'NoSuchDeal')
  t.match(headers['content-type'], /^application\/json/)
})

t.test('a client token', async (t) => {
  const client = await startDeals(t)
  await client.put('bucket', 'key', randomBytes(500_000))
  await client.put('bucket', 'other', 'x')
  t.match(await client.ask('dealprogress/a%20token'), { http: 404, status: 'fail', data: null })
  const together = Array.from({ length: 5 }, () => client.deal('bucket', 'key', {}, 'a token'))
  const [first, ...others] = await Promise.all(together)
  t.match(first, { http: 200, status: 'success' })
  for (const other of others) t.same(other, first, 'asked while it was under way')
  t.same(await client.deal('bucket', 'key', {}, 'a token'), first, 'and later')
  await client.put('bucket', 'key', 'overwritten')
  t.same(await client.deal('bucket', 'key', {}, 'a token'), first)
  t.equal((await client.retrieve('bucket', 'key')).data.deals.length, 1)
  t.match(await client.ask('dealprogress/a%20token'), {
    http: 200,
    status: 'success',
    data: { phase: 'Done', bytesDone: 500_000, bytesTotal: 500_000, filesDone: 1, filesTotal: 1 },
  })

  for (const different of [
    client.deal('bucket', 'other', {}, 'a token'),
    client.deals('bucket', {}, 'a token'),
    client.deal('bucket', 'key', { Price: '3' }, 'a token'),
    client.deal('bucket', 'key', { FastRetrieval: 'false' }, 'a token'),
  ])
    t.match(await different, { http: 409, status: 'fail', data: empty, message: /belongs to another deal/ })
  await client.gateway.call('RemoveObject', { bucketName: 'bucket', objects: ['key'] })
  t.same(await client.deal('bucket', 'key', {}, 'a token'), first, 'the object has gone, the deal has not')
  t.match(await client.deal('bucket', 'key', {}, 'another token'), { http: 404 })
  await client.put('bucket', 'key', 'new')

  await client.fault('offline')
  t.match(await client.deal('bucket', 'other', {}, 'failing'), { http: 200, status: 'fail' })
  t.equal((await client.ask('dealprogress/failing')).http, 404, 'nothing came of it')
  await client.fault('offline', false)
  t.match(await client.deal('bucket', 'other', { Price: '4' }, 'failing'), { status: 'success' }, 'free again')

  t.match(await client.deal('bucket', 'key', {}, 'x'.repeat(128)), { status: 'success' })
  for (const token of ['x'.repeat(129), '', 'ü'])
    t.match(await client.deal('bucket', 'key', {}, token), { http: 400, status: 'fail', message: /client-token/ })
})
t.test('as public gateways are', async (t) => {
  const client = await startDeals(t, {
    quirks: [
      ...['plain-deals' as const, 'unchecked-deals' as const, 'empty-bucket-deals' as const],
      ...['history-only' as const, 'retrieve-500' as const, 'retrieve-one-segment' as const],
    ],
  })
  const features = ['paged-listing', 'object-head', 'exact-remove', 'any-key', 'fixed-creation-date', 'write-fences']
  const others = ['state-epoch', 'upload-quota', 'bucket-quota', 'object-records', 'versions', 'locks']
  t.same((await client.gateway.call('ServerInfo')).GatewayFeatures, [...features, ...others])
  for (const path of ['dealprogress/x', 'dealstatus/x', 'providers']) t.equal((await client.send(path)).status, 404)
  for (const path of ['evict/bucket/a', 'network/control']) t.equal((await client.send(path, '{}')).status, 404)
  t.match(await client.deals('bucket'), { status: 'success' }, 'of an empty bucket')

  await client.put('bucket', 'a/b', 'x')
  t.match(await client.retrieve('bucket', 'a%2Fb'), { http: 404 })
  t.match(await client.ask('retrieve/bucket/a%2fb'), { http: 500, status: 'fail', message: /internal error/ })
  const page = await client.send('retrieve/bucket/a/b')
  t.match([page.status, page.headers['content-type']], [200, /^text\/html/])

  const first = await client.deal('bucket', 'a/b', {}, 'token')
  t.not((await client.deal('bucket', 'a/b', {}, 'token')).data.dealCid, first.data.dealCid, 'the service has no tokens')
  t.equal((await client.ask('retrieve/bucket/a%2fb')).data.deals.length, 2)
  const bothSpellings = await client.deal('bucket', 'a/b', { FastRetrieval: 'false', FastRetrival: 'true' })
  t.match(bothSpellings, { status: 'success', data: { fastRetrieval: 'false' } }, 'nor of the other spelling')

  const { FastRetrieval, ...rest } = terms
  const failed = { http: 200, status: 'fail', message: 'Sending deal failed during lotus sending deal' }
  for (const body of [{ ...rest, FastRetrival: 'true' }, { ...terms, Price: 'free' }, {}])
    t.match(await client.ask('deal/bucket/a/b', body), failed)
  const undecodable = await client.send('deal/bucket/a/b', '{"MinerId":1}')
  t.match([undecodable.status, undecodable.text], [200, /^bad request: /])
})

t.test('what one deal delivers is compared with the object, here or cold', async (t) => {
  const client = await startDeals(t)
  // Larger than the smallest piece that the second provider takes.
  const body = randomBytes(100_000)
  const generation = await client.put('bucket', 'key', body)
  const cidOf = async (MinerId: string): Promise<string> => {
    const { data } = await client.deal('bucket', 'key', { MinerId })
    return (data as { dealCid: string }).dealCid
  }
  const [first, second] = [await cidOf('t01000'), await cidOf('t01001')]
  const verify = (dealCid: string, of = generation) => client.verify('bucket', 'key', of, dealCid)
  t.match(await verify(first), { http: 409, status: 'fail', message: /not active/ })
  await client.advance(UNTIL_ACTIVE)
  const data = { bucket_name: 'bucket', file_name: 'key', generation, size: 100_000 }
  t.match(await verify(first), { http: 200, status: 'success', data: { ...data, dealCid: first } })
  t.match(await verify(second), { status: 'success', data: { dealCid: second, minerId: 't01001' } })
  t.match(await verify('bafynone'), { http: 409, message: /does not hold the current generation of this object/ })
  t.match(await verify(first, 'another'), { http: 409, message: /overwritten/ })
  t.match(await client.verify('bucket', 'missing', generation, first), { http: 404 })

  await client.fault('corrupts-data', true, 't01001')
  t.match(await verify(second), { http: 409, status: 'fail' })
  t.match(await client.evict('bucket', 'key', generation, { DealCid: second }), { http: 409 }, 'only that deal counts')
  const evicted = await client.evict('bucket', 'key', generation, { DealCid: first })
  t.match(evicted, { status: 'success', data: { dealCid: first } })
  t.match(await verify(first), { status: 'success' }, 'cold, compared with its ETag')
  t.match(await verify(second), { http: 409 })
  await client.fault('offline', true, 't01000')
  t.match(await verify(first), { http: 409, message: /offline/ })
})
