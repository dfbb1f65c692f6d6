import t, { type Test } from 'tap'
import { SecondAccount } from '../../support/gateway/second-account.js'
import {
  type DealProxy,
  type Embedded,
  owner,
  startDealProxy,
  startEmbedded,
} from '../../support/plugins/deal-proxy.js'
import { signedCall, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'

const terms = { MinerId: 't01000', Price: '0.0001', DurationEpochs: 518400 }

interface Server extends DealProxy {
  readonly gateway: Embedded
}

async function start(
  t: Test,
  mode: 'full' | 'legacy',
  options: Parameters<typeof startDealProxy>[2] = {},
): Promise<Server> {
  const gateway = await startEmbedded(t, mode)
  const server = { ...(await startDealProxy(t, gateway, options)), gateway }
  t.equal((await send(server, 'PUT', '/photos')).status, 200)
  for (const [key, body] of [
    ['2021/a.zip', 'the first'],
    ['2021/b.zip', 'the second'],
    ['empty', ''],
  ] as const)
    t.equal((await send(server, 'PUT', `/photos/${key}`, body)).status, 200)
  return server
}

function send(
  { endpoint }: Pick<Server, 'endpoint'>,
  method: string,
  target: string,
  body?: string | object,
  headers: Record<string, string> = {},
  keys = owner,
): Promise<TextAnswer> {
  return signedCall(endpoint, keys, method, target, { body, headers })
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at documents of any shape
async function ask(server: Server, method: string, target: string, body?: object, status = 200): Promise<any> {
  const separator = target.includes('?') ? '&' : '?'
  const answer = await send(server, method, `${target}${separator}format=json`, body)
  if (answer.status !== status) throw new Error(`${method} ${target}: ${answer.status} ${answer.body}`)
  return JSON.parse(answer.body)
}

/** Every element of that name that holds text. */
function texts(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text]) => text ?? '')
}

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: deals of an object`, async (t) => {
    const server = await start(t, mode)
    const Status = mode === 'full' ? 'StorageDealCheckForAcceptance' : 'Recorded'
    const made = await send(server, 'POST', '/photos/2021/a.zip?x-deal=', terms, { accept: 'application/json' })
    t.equal(made.status, 200, made.body)
    t.match(JSON.parse(made.body), {
      ...{ Bucket: 'photos', Key: '2021/a.zip', JobId: made.headers['x-dealgate-job-id'] },
      Deal: {
        ...terms,
        ...{ DealCid: /^bafy/, DataCid: /^bafk?/, VerifiedDeal: false, FastRetrieval: true, Status },
        ...{ TimeStamp: /^\d{16}$/, CreatedAt: /^\d{4}-.*\.\d{6}Z$/ },
      },
    })
    const own =
      '{"MinerId":"t01000","Price":"0.0002","Duration":"518400","VerifiedDeal":"false","FastRetrival":"false"}'
    const spelled = await send(server, 'POST', '/photos/2021/a.zip?x-deal=', own)
    t.match(spelled.body, /<DealResult xmlns="urn:dealgate:deal:1"><Bucket>photos<\/Bucket>.*<FastRetrieval>false</)
    const head = await send(server, 'HEAD', '/photos/2021/a.zip')
    t.match(head.headers, {
      ...{ 'x-amz-meta-cid': /^baf/, 'x-amz-meta-deal-cid': /^bafy/, 'x-amz-meta-deal-count': '2' },
      ...{ 'x-amz-meta-deal-provider': 't01000', 'x-amz-meta-deal-status': Status },
    })
    t.equal('x-amz-meta-deal-expiry' in head.headers, mode === 'full')
    // As tools do that copy what they were told.
    const facts = Object.entries(head.headers).filter(([name]) => name.startsWith('x-amz-meta-'))
    const kept = { ...Object.fromEntries(facts as [string, string][]), 'x-amz-meta-mine': 'yes' }
    await send(server, 'PUT', '/photos/copy', 'x', kept)
    const copied = (await send(server, 'HEAD', '/photos/copy')).headers
    t.same(
      Object.keys(copied).filter((name) => name.startsWith('x-amz-meta-')),
      ['x-amz-meta-mine'],
    )
    await send(server, 'PUT', '/photos/2021/a.zip', 'another')
    const replaced = await send(server, 'HEAD', '/photos/2021/a.zip')
    t.notOk('x-amz-meta-deal-cid' in replaced.headers, 'the deals are not of the new object')
  })

  t.test(`${mode}: lists of deals, in pages`, async (t) => {
    const server = await start(t, mode)
    const none = await send(server, 'GET', '/photos/empty?x-deal=')
    t.equal(none.status, 200)
    t.match(none.body, /<ListDealsResult.*<Bucket>photos<\/Bucket><Key>empty<\/Key><IsTruncated>false/s)
    t.notMatch(none.body, 'DealEntry')
    t.same((await ask(server, 'GET', '/photos?x-deal=')).DealEntry, [])
    const cids: string[] = []
    for (let i = 0; i < 3; i++) {
      const deal = { ...terms, Price: `0.000${i + 1}` }
      cids.push((await ask(server, 'POST', '/photos/2021/a.zip?x-deal=', deal)).Deal.DealCid)
    }
    const pages: string[] = []
    let token = ''
    do {
      const page = await ask(server, 'GET', `/photos/2021/a.zip?x-deal=&max-items=2${token}`)
      t.ok(page.DealEntry.length <= 2)
      for (const { Status, Deal } of page.DealEntry) {
        t.equal(Status, 'success')
        t.equal(Deal.Status, mode === 'full' ? 'StorageDealCheckForAcceptance' : 'Recorded')
        pages.push(Deal.DealCid)
      }
      token = page.IsTruncated ? `&continuation-token=${page.NextContinuationToken}` : ''
    } while (token)
    t.same(pages, cids, 'the oldest first, each once')

    const whole = await ask(server, 'POST', '/photos?x-deal=', terms)
    t.notOk('Key' in whole)
    const list = await ask(server, 'GET', '/photos?x-deal=')
    t.match(list, { Bucket: 'photos', IsTruncated: false, DealEntry: [{ Deal: { DealCid: whole.Deal.DealCid } }] })
    t.equal(list.DealEntry.length, 1)

    const raw = JSON.parse((await send(server, 'GET', '/photos?x-deal=&raw=1')).body)
    t.match(raw, { status: 'success', data: { deals: [{ data: { dealCid: whole.Deal.DealCid } }] } })
    const never = await send(server, 'GET', '/photos/empty?x-deal=&raw=1')
    t.equal(never.status, 200, 'what it says of an object that never had a deal, which public ones call an error')
    t.match(JSON.parse(never.body), { status: mode === 'full' ? 'success' : 'fail', data: { deals: [] } })

    const deals = (query: string) => ask(server, 'GET', `/-/deal/v1/deals?${query}`)
    const cidsOf = ({ Deals }: { Deals: { DealCid: string }[] }) => Deals.map(({ DealCid }) => DealCid)
    const all = await deals('max-items=3')
    t.same(cidsOf(all), [whole.Deal.DealCid, ...cids.slice(1).reverse()], 'the newest first')
    await ask(server, 'POST', '/photos/2021/b.zip?x-deal=', terms)
    const rest = await deals(`max-items=3&continuation-token=${all.NextContinuationToken}`)
    t.same(cidsOf(rest), cids.slice(0, 1), 'a new one moves nothing')
    const state = mode === 'full' ? 'StorageDealCheckForAcceptance' : 'Recorded'
    t.equal(cidsOf(await deals(`bucket=photos&miner-id=${terms.MinerId}&status=${state}`)).length, 5)
    for (const none of ['bucket=phot', 'miner-id=t09', 'status=StorageDealActive', 'ends-before=2020-01-01T00:00:00Z'])
      t.same(cidsOf(await deals(none)), [], none)
    t.equal((await send(server, 'GET', '/-/deal/v1/deals?ends-before=soon')).status, 400)
    t.match(await ask(server, 'GET', `/-/deal/v1/deals/${cids[0]}`), {
      ...{ Bucket: 'photos', Key: '2021/a.zip', Cause: 'call', DealCid: cids[0] },
    })
    t.match(await send(server, 'GET', '/-/deal/v1/deals/bafynone'), { status: 404, body: /NoSuchDeal/ })
  })
}

t.test('what is refused', async (t) => {
  const server = await start(t, 'full')
  const refused = async (target: string, body: object, code: string, message: RegExp | string = '<Error>') => {
    const answer = await send(server, 'POST', target, body, { accept: 'application/xml' })
    t.equal(answer.code, code, `${target} ${JSON.stringify(body)}: ${answer.body}`)
    t.match(answer.body, message)
    return answer
  }
  t.equal((await refused('/photos/2021/a.zip?x-deal=', {}, 'DealTermsRequired')).status, 400)
  const { body } = await refused('/photos/2021/a.zip?x-deal=', { MinerId: '?', VerifiedDeal: 'x' }, 'DealTermsInvalid')
  t.equal(texts(body, 'Violations').length, 4)
  const json = await send(server, 'POST', '/photos/2021/a.zip?x-deal=&format=json', { MinerId: '?' })
  t.match(JSON.parse(json.body), {
    __type: 'DealTermsInvalid',
    Details: { Violations: [/MinerId/, /Price/, /Duration/] },
  })
  await refused('/photos/2021/a.zip?x-deal=', { ...terms, Prize: '1' }, 'InvalidArgument', 'Prize')
  await refused('/photos/2021/a.zip?x-deal=', { ...terms, Duration: 1 }, 'InvalidArgument', 'DurationEpochs')
  const long = '{"Price":0.00000012345678901234567,"DurationEpochs":518400}'
  const rounded = await send(server, 'POST', '/photos/2021/a.zip?x-deal-quote=&format=json', long)
  t.match(JSON.parse(rounded.body), { Code: 'InvalidArgument', Message: /Price .*string/ }, 'it would be rounded')
  await refused('/photos/none?x-deal=', terms, 'NoSuchKey')
  await refused('/nowhere/none?x-deal=', terms, 'NoSuchBucket')
  await refused('/nowhere?x-deal=', terms, 'NoSuchBucket')
  t.equal((await send(server, 'PUT', '/hollow')).status, 200)
  t.equal((await refused('/hollow?x-deal=', terms, 'BucketEmpty')).status, 409)
  const rejected = await refused('/photos/2021/a.zip?x-deal=', { ...terms, MinerId: 't099' }, 'DealRejected')
  t.equal(rejected.status, 409)
  t.match(rejected.body, '<Service>gateway</Service><UpstreamStatus>fail</UpstreamStatus>')
  t.equal((await send(server, 'GET', '/photos/none?x-deal=')).code, 'NoSuchKey')
  t.equal((await send(server, 'GET', '/nowhere?x-deal=')).code, 'NoSuchBucket')
  t.equal((await send(server, 'PUT', '/photos/2021/a.zip?x-deal=', 'x')).status, 501)
  t.equal((await send(server, 'DELETE', '/photos/2021/a.zip?x-deal=')).status, 501)
  t.equal((await send(server, 'GET', '/photos/2021/a.zip')).body, 'the first')
  t.same((await ask(server, 'GET', '/-/deal/v1/deals')).Deals, [], 'no deal was made')
})

t.test('the answer to a client token outlives the bucket of its deal', async (t) => {
  const server = await start(t, 'full')
  const target = '/photos/2021/a.zip?x-deal=&format=json'
  const order = () => send(server, 'POST', target, terms, { 'x-amz-client-token': 'once' })
  const [{ body }, ...others] = await Promise.all([order(), order(), order()])
  for (const other of others) t.equal(other.body, body, 'the same token, the same deal')
  for (const key of ['2021/a.zip', '2021/b.zip', 'empty']) await send(server, 'DELETE', `/photos/${key}`)
  t.equal((await send(server, 'DELETE', '/photos')).status, 204)
  t.match(await order(), { status: 200, body }, 'the deal was made and paid')
  t.match(await send(server, 'POST', target, terms), { body: /NoSuchBucket/ }, 'a new one is refused')
  t.equal((await send(server, 'PUT', '/photos')).status, 200)
  t.match(await order(), { status: 200, body }, 'and a bucket of its name')
})

t.test('terms of the bucket and of the object, and caps', async (t) => {
  await farFromMidnight()
  const server = await start(t, 'full', { deal: { maxSpendPerDay: '1000', storageClassMap: { FILECOIN: 'GLACIER' } } })
  const configuration = {
    Terms: [terms, { StorageClass: 'GLACIER', MinerId: 't01001' }],
    StorageClassMap: [{ Word: 'FILECOIN', StorageClass: 'GLACIER_IR' }],
    RenewBeforeDays: 30,
    MaxSpendPerDay: '104',
  }
  t.match(await ask(server, 'POST', '/photos?x-deal-config=', configuration), configuration)
  const xml = await send(server, 'GET', '/photos?x-deal-config=')
  t.match(xml.body, '<DealConfiguration xmlns="urn:dealgate:deal:1"><Terms>')
  const back = await send(server, 'POST', '/photos?x-deal-config=', xml.body)
  t.equal(back.status, 200, back.body)
  t.match(await ask(server, 'GET', '/photos?x-deal-config='), configuration, 'what XML tells can be sent back')

  t.match(await ask(server, 'POST', '/photos/2021/a.zip?x-deal='), { Deal: terms })
  await send(server, 'PUT', '/photos/own', 'x', { 'x-amz-meta-deal-terms': 'price=0.00009;miner=t01000' })
  t.match(await ask(server, 'POST', '/photos/own?x-deal='), { Deal: { ...terms, Price: '0.00009' } })
  // 51.84 and 46.656 of 104 are spent.
  const capped = await send(server, 'POST', '/photos/2021/b.zip?x-deal=')
  t.equal(capped.code, 'SpendCapReached')
  t.match(capped.body, '98.496')
  t.equal((await send(server, 'POST', '/photos/2021/b.zip?x-deal=', { Price: '0.00001' })).status, 200)

  for (const [bad, code] of [
    [{ Terms: [{ MinerId: 'a b' }] }, 'DealTermsInvalid'],
    [{ Terms: [terms, terms] }, 'InvalidArgument'],
    [{ StorageClassMap: [{ Word: 'TAPE', StorageClass: 'GLACIER' }] }, 'InvalidArgument'],
    [{ RenewBeforeDays: 0 }, 'InvalidArgument'],
    [{ MaxSpendPerDay: 'much' }, 'InvalidArgument'],
  ] as const) {
    const answer = await send(server, 'POST', '/photos?x-deal-config=', bad, { accept: 'application/xml' })
    t.equal(answer.code, code, answer.body)
  }
  t.same(await ask(server, 'POST', '/photos?x-deal-config=', {}), {})
  t.same(await ask(server, 'GET', '/photos?x-deal-config='), {})
})

t.test('what it would cost', async (t) => {
  const server = await start(t, 'full')
  const quote = (target: string, body: object) => ask(server, 'POST', `/photos${target}?x-deal-quote=`, body)
  const whole = await quote('', { DurationEpochs: 518400 })
  t.match(whole, { Bytes: 19, Objects: 3, Currency: 'fil', DurationEpochs: 518400 })
  t.notOk('DailyCap' in whole, 'there is no cap')
  t.ok(whole.Candidates.length >= 3)
  t.equal(whole.Total, whole.Candidates[0].Total)
  t.ok(whole.Candidates.every(({ MinPieceSize }: { MinPieceSize: string }) => !/[MG]iB/.test(MinPieceSize)))
  const { PieceSize, PricePerGibEpoch, Price } = await quote('/2021/a.zip', { MinerId: 't01000' })
  t.equal(PricePerGibEpoch, '0.0000005')
  const exact = (500_000_000_000n * BigInt(PieceSize) + (1n << 30n) - 1n) >> 30n
  t.equal(BigInt(Math.round(Number(Price) * 1e18)), exact)
  t.equal((await send(server, 'POST', '/photos/2021/a.zip?x-deal=', { ...terms, Price })).status, 200, 'it is enough')
  t.match(await quote('', { ...terms, Price: '1e-18' }), {
    ...{ Total: '0.0000000000005184', Warnings: [/asks .* more than the stated Price/] },
  })
  const { Warnings } = await quote('', { MinerId: 't01003' })
  t.match(Warnings, [/No DurationEpochs/, /t01003 takes pieces of/])
  t.match((await quote('', { MinerId: 't0999', DurationEpochs: 1 })).Warnings, [/does not know/])
  t.equal((await send(server, 'POST', '/photos?x-deal-quote=', { Price: '-1' })).status, 400)
  t.equal((await ask(server, 'GET', '/-/deal/v1/deals')).Deals.length, 1, 'a quote makes no deal')
})

t.test('providers, and a deal as it goes on', async (t) => {
  const server = await start(t, 'full')
  const { Providers } = await ask(server, 'GET', '/-/deal/v1/providers')
  t.match(
    Providers.find(({ MinerId }: { MinerId: string }) => MinerId === 't01000'),
    {
      ...{ Price: '0.0000005', VerifiedPrice: '0.00000005', MinPieceSize: '128B', MaxPieceSize: '64GiB' },
      ...{ Status: 'Active', Score: Number },
    },
  )
  const { Deal, JobId } = await ask(server, 'POST', '/photos/2021/a.zip?x-deal=', terms)
  const { Phase, ProgressSummary } = await ask(server, 'GET', `/-/jobs/v1/${JobId}`)
  t.match([Phase, ProgressSummary.Bytes.Done], ['Done', ProgressSummary.Bytes.Total])
  await server.gateway.advance(400)
  const now = await until('it is active', async () => {
    const deal = await ask(server, 'GET', `/-/deal/v1/deals/${Deal.DealCid}`)
    return deal.Status === 'StorageDealActive' && deal
  })
  t.match(now, { PieceCid: /^baga/, PieceSize: Number, StartEpoch: Number, EndEpoch: Number, EstimatedExpiry: /Z$/ })
  t.match(await ask(server, 'GET', '/photos/2021/a.zip?x-deal='), {
    DealEntry: [{ Deal: { Status: 'StorageDealActive' } }],
  })
  await server.gateway.fault('t01001', 'offline')
  const offline = await ask(server, 'POST', '/photos?x-deal-quote=', { ...terms, MinerId: 't01001' })
  t.match(offline.Warnings, [/t01001 is Offline/])
  t.equal((await send(server, 'POST', '/photos/2021/a.zip?x-deal=', { ...terms, MinerId: 't01001' })).status, 409)
})

t.test('who may see and do what, and store in a class that is paid for', async (t) => {
  const pair = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: `${accessKeyId}-secret-key` })
  const [reader, dealer, writer] = [pair('reader'), pair('dealer'), pair('writer')]
  const reads = (prefix: string) => [{ bucket: 'photos', prefix, access: 'read' as const }]
  const server = await start(t, 'full', {
    identities: [
      owner,
      { ...reader, rights: reads('2021/') },
      { ...dealer, rights: reads('2021/a'), actions: ['deal:Create*', 'deal:ListProviders'] },
      { ...writer, rights: [{ bucket: 'photos', access: 'readwrite' }] },
    ],
  })
  const [first, other] = [
    await ask(server, 'POST', '/photos/2021/a.zip?x-deal=', terms),
    await ask(server, 'POST', '/photos/empty?x-deal=', terms),
  ]
  await ask(server, 'POST', '/photos?x-deal=', terms)
  const seen = await send(server, 'GET', '/-/deal/v1/deals', undefined, {}, reader)
  t.match(JSON.parse(seen.body).Deals, [{ DealCid: first.Deal.DealCid }], 'those of keys that may be read')
  t.equal(JSON.parse(seen.body).Deals.length, 1)
  for (const [keys, method, target, status] of [
    [reader, 'GET', `/-/deal/v1/deals/${first.Deal.DealCid}`, 200],
    [reader, 'GET', `/-/deal/v1/deals/${other.Deal.DealCid}`, 404],
    [reader, 'GET', '/photos/2021/a.zip?x-deal=', 200],
    [reader, 'GET', '/photos/empty?x-deal=', 403],
    [reader, 'GET', '/photos?x-deal=', 403],
    [reader, 'GET', '/-/deal/v1/providers', 403],
    [dealer, 'GET', '/-/deal/v1/providers', 200],
    [reader, 'GET', '/photos?x-deal-config=', 403],
    [reader, 'POST', '/photos?x-deal-config=', 403],
    [reader, 'POST', '/photos/2021/a.zip?x-deal=', 403],
    [reader, 'POST', '/photos/2021/a.zip?x-deal-retrieve=', 403],
    [dealer, 'POST', '/photos/2021/a.zip?x-deal=', 200],
    [dealer, 'POST', '/photos/2021/b.zip?x-deal=', 403],
    [dealer, 'POST', '/photos?x-deal=', 403],
  ] as const) {
    const body = target.endsWith('x-deal=') && method === 'POST' ? terms : undefined
    const what = `${keys.accessKeyId} ${method} ${target}`
    t.equal((await send(server, method, target, body, {}, keys)).status, status, what)
  }
  const ofClass = { 'x-amz-storage-class': 'GLACIER', 'x-amz-meta-deal-terms': 'miner=t01000;price=1;duration=518400' }
  const copy = { 'x-amz-copy-source': '/photos/2021/a.zip', ...ofClass }
  t.equal((await send(server, 'PUT', '/photos/a', 'content', ofClass, writer)).status, 403)
  t.equal((await send(server, 'HEAD', '/photos/a')).status, 404, 'nothing is stored')
  t.equal((await send(server, 'PUT', '/photos/c', undefined, copy, writer)).status, 403)
  t.equal((await send(server, 'POST', '/photos/d?uploads=', undefined, ofClass, writer)).status, 403)
})

t.test(
  'an account learns nothing of the deals of another, also of an object that had the name of its own',
  async (t) => {
    const gateway = await startEmbedded(t, 'full')
    const hop = await SecondAccount.start(t, gateway, { looks: false })
    const second = { accessKeyId: 'second', secretAccessKey: 'second-secret-key' }
    const identities = [owner, { ...second, account: hop.account }]
    const server = await startDealProxy(t, { ...gateway, url: hop.url }, { identities })
    const as = (keys: typeof owner) => async (method: string, target: string, body?: string | object) => {
      const answer = await send(server, method, target, body, {}, keys)
      t.equal(Math.floor(answer.status / 100), 2, `${method} ${target} ${answer.body}`)
      return answer.body
    }
    const [ofOwner, ofSecond] = [as(owner), as(second)]
    const store = async (call: typeof ofOwner, bucket: string) => {
      await call('PUT', `/${bucket}`)
      await call('PUT', `/${bucket}/a`, 'a'.repeat(1000))
      return JSON.parse(await call('POST', `/${bucket}/a?x-deal=&format=json`, terms)).Deal.DealCid as string
    }
    const others = await store(ofOwner, 'firsts')
    const own = await store(ofSecond, 'seconds')
    const { Deals } = JSON.parse(await ofSecond('GET', '/-/deal/v1/deals?format=json'))
    t.same(
      Deals.map(({ DealCid }: { DealCid: string }) => DealCid),
      [own],
    )
    t.notMatch(await ofSecond('GET', '/-?list-type=2&prefix=deal/'), others)
    for (const cid of [others, 'bafyunknown']) {
      const answer = await send(server, 'GET', `/-/deal/v1/deals/${cid}`, undefined, {}, second)
      t.match(answer, { status: 404, body: /NoSuchDeal/ })
    }

    const history = '/firsts/a?x-deal-history=&format=json'
    const namesOf = (body: string) => {
      const names: string[] = JSON.parse(body).History.map(({ Event }: { Event: string }) => Event)
      // That of the network comes when the gateway is asked.
      return names.filter((name) => name !== 'DealState')
    }
    t.same(namesOf(await ofOwner('GET', history)), ['Stored', 'DealRequested', 'DealMade'])
    t.equal((await send(server, 'GET', history, undefined, {}, second)).status, 403)
    t.equal((await fetch(server.endpoint + history)).status, 403)
    await ofOwner('DELETE', '/firsts/a')
    t.same(namesOf(await ofOwner('GET', history)), ['DealRequested', 'DealMade'], 'its own account still does')
    await ofOwner('DELETE', '/firsts')
    await ofSecond('PUT', '/firsts')
    await ofSecond('PUT', '/firsts/a', 'b')
    t.same(namesOf(await ofSecond('GET', history)), ['Stored'])
  },
)
