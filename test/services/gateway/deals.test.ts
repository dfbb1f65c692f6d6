import { randomBytes } from 'node:crypto'
import t from 'tap'
import { startDeals, terms, UNTIL_ACTIVE } from './deal-client.js'

const CID = /^b[a-z2-7]{50,}$/
const record = (filename: string) => ({
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
const empty = Object.fromEntries(Object.keys(record('')).map((name) => [name, '']))

t.test('deals of objects', async (t) => {
  const client = await startDeals(t)
  for (const [key, body] of [
    ['photos/2024/ä b#?.jpg', 'small'],
    ['large', randomBytes(300_000)],
    ['empty', ''],
  ] as const) {
    await client.put('bucket', key, body)
    const none = { http: 200, data: { file_name: key, deals: [] }, status: 'success' }
    t.match(await client.retrieve('bucket', key), none)
    const first = await client.deal('bucket', key)
    t.match(first, { http: 200, status: 'success', data: record(`/bucket/${key}`) })
    t.same(Object.keys(first.data), Object.keys(empty), 'the fields of the interface, and no others')
    const second = await client.deal('bucket', key, { VerifiedDeal: 'TRUE', FastRetrieval: 'false', Price: '2' })
    t.match(second.data, { verifiedDeal: 'true', fastRetrieval: 'false', price: '2', dataCid: first.data.dataCid })
    const { data } = await client.retrieve('bucket', key)
    const envelopes = [first, second].map((made) => ({ status: 'success', data: made.data }))
    t.match(data, { file_name: key, deals: envelopes }, 'each in an envelope of its own, the oldest first')
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
  t.match(await from(dealCid), { status: 'success', message: 'The object has been brought back.' })
})

t.test('deals of buckets', async (t) => {
  const client = await startDeals(t)
  const none = { http: 200, status: 'success', data: { bucket_name: 'bucket', deals: [] } }
  t.match(await client.history('bucket'), none)
  t.match(await client.deals('bucket'), { http: 200, data: empty, status: 'fail', message: /bucket is empty/ })
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
  t.match((await deal(spelled)).data, { fastRetrieval: 'true', verifiedDeal: 'false' }, 'as Lotus does')

  const wrong: [object | string, RegExp][] = [
    ['', /^MinerId must name/],
    ['{', /must be a JSON object of texts/],
    ['[]', /must be a JSON object of texts/],
    [Buffer.from([0x7b, 0xff]).toString('latin1'), /must be a JSON object/],
    [{ ...terms, Duration: 518400 }, /member Duration must be a text/],
    ['{"MinerId":"\\ud800"}', /not well-formed/],
    ...['', '-1', '1e3', '1.', `0.${'1'.repeat(19)}`].map((Price): [object, RegExp] => [
      { ...terms, Price },
      /^Price /,
    ]),
    ...['', '0', '1.5', '9'.repeat(10)].map((Duration): [object, RegExp] => [{ ...terms, Duration }, /^Duration /]),
    [{ ...terms, VerifiedDeal: '1' }, /^VerifiedDeal must be/],
    [{ ...terms, FastRetrieval: 'yes' }, /^FastRetrieval must be/],
    [{ ...terms, FastRetrival: 'false' }, /contradict/],
    [{ ...terms, MinerId: 't09999' }, /t09999/],
  ]
  for (const [body, message] of wrong)
    t.match(await deal(body), { http: 200, status: 'fail', data: empty, message }, JSON.stringify(body))
  await client.fault('offline')
  t.match(await deal(terms), { status: 'fail', message: /t01000 is offline/ })
  t.match(await deal('x'.repeat(70_000)), { http: 400, status: 'fail' })
  t.equal((await client.retrieve('bucket', 'key')).data.deals.length, 2, 'of what failed there is no deal')
})

t.test('who may, and what is not there', async (t) => {
  const client = await startDeals(t)
  await client.put('bucket', 'key', 'x')
  await client.gateway.call('SetBucketPolicy', { bucketName: 'bucket', prefix: '', policy: 'readwrite' })
  const writes = ['deal/bucket/key', 'deals/bucket', 'evict/bucket/key', 'network/control']
  const reads = [
    'retrieve/bucket/key',
    'bucket/retrieve/bucket',
    'dealprogress/x',
    'dealstatus/x',
    'deallist',
    'providers',
  ]
  for (const path of [...writes, ...reads]) {
    const asked = (headers: Record<string, string>) =>
      client.gateway.send(
        `/gateway/${path}`,
        writes.includes(path) ? { method: 'POST', headers, body: '{}' } : { headers },
      )
    const none = await asked({})
    t.equal(none.status, 401, path)
    t.match(JSON.parse(none.text), { status: 'fail', message: /^Authentication failed/ })
    t.equal((await asked({ authorization: 'Bearer x' })).status, 401)
    const other = await client.gateway.send(`/gateway/${path}`, { method: 'PUT', headers: client.gateway.headers() })
    t.equal(other.status, 405)
  }
  const of = (file_name: string) => ({ file_name, deals: [] })
  t.match(await client.deal('missing', 'key'), { http: 404, status: 'fail', message: /bucket does not exist/ })
  t.match(await client.deals('missing'), { http: 404, status: 'fail', data: empty })
  t.match(await client.deal('bucket', 'missing'), { http: 404, status: 'fail', message: /key does not exist/ })
  t.match(await client.retrieve('bucket', 'missing'), { http: 404, status: 'fail', data: of('missing') })
  t.match(await client.history('missing'), { http: 404, data: { bucket_name: 'missing', deals: [] } })
  t.match(await client.evict('bucket', 'missing', 'x'), { http: 404 })
  for (const path of ['bucket/other/bucket', 'dealprogress/a%20token']) t.equal((await client.ask(path)).http, 404)
  const { status, headers } = await client.send('dealstatus/bafynone')
  t.match([status, headers['x-cloud-error-code']], [404, 'NoSuchDeal'])
})

t.test('a client token', async (t) => {
  const client = await startDeals(t)
  await client.put('bucket', 'key', randomBytes(500_000))
  await client.put('bucket', 'other', 'x')
  const together = Array.from({ length: 5 }, () => client.deal('bucket', 'key', {}, 'a token'))
  const [first, ...others] = await Promise.all(together)
  t.match(first, { http: 200, status: 'success' })
  for (const other of others) t.same(other, first, 'asked while it was under way')
  await client.put('bucket', 'key', 'overwritten')
  t.same(await client.deal('bucket', 'key', {}, 'a token'), first, 'and later')
  t.equal((await client.retrieve('bucket', 'key')).data.deals.length, 1)
  t.match(await client.ask('dealprogress/a%20token'), {
    http: 200,
    data: { phase: 'Done', bytesDone: 500_000, bytesTotal: 500_000, filesDone: 1, filesTotal: 1 },
  })
  for (const different of [
    client.deal('bucket', 'other', {}, 'a token'),
    client.deals('bucket', {}, 'a token'),
    client.deal('bucket', 'key', { Price: '3' }, 'a token'),
    client.deal('bucket', 'key', { FastRetrieval: 'false' }, 'a token'),
  ])
    t.match(await different, { http: 409, status: 'fail', data: empty, message: /belongs to another deal/ })

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

  const failed = { http: 200, status: 'fail', message: 'Sending deal failed during lotus sending deal' }
  for (const body of [{ ...terms, Price: 'free' }, {}]) t.match(await client.ask('deal/bucket/a/b', body), failed)
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
