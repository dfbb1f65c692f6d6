import t from 'tap'
import { legacy } from '../../src/services/index.js'
import { temporaryFolder } from '../support/content/folders.js'
import { DealClient, UNTIL_ACTIVE } from './deal-client.js'
import { toFormerSchema } from './former-schema.js'
import { type Client, connectTo, MOZILLA, start } from './gateway-client.js'
import { logIn, twoAccounts } from './two-accounts.js'

const FORBIDDEN = 'Do not have enough permissions to access this resource'
const WRONG = 'Authentication failed, check your access credentials'

for (const [mode, quirks] of [
  ['embedded', []],
  ['legacy', legacy],
] as const) {
  t.test(`two accounts over every method: ${mode}`, async (t) => {
    const { owner, other, anyone } = await twoAccounts(t, { quirks })
    const bare = mode === 'legacy'
    await owner.call('MakeBucket', { bucketName: 'mine' })
    await owner.put('mine', 'private/a', 'a')
    await owner.put('mine', 'open/b', 'b')
    await other.call('MakeBucket', { bucketName: 'theirs' })

    const names = async (client: Client) =>
      (await client.call('ListBuckets')).buckets.map(({ name }: { name: string }) => name)
    t.same([await names(owner), await names(other)], [['mine'], ['theirs']])
    t.match((await anyone.failure('ListBuckets')).message, 'JWT token missing')

    const taken = bare ? /you already own it/ : /The requested bucket name is not available/
    t.match((await other.failure('MakeBucket', { bucketName: 'mine' })).message, taken)
    t.match((await owner.failure('MakeBucket', { bucketName: 'mine' })).message, /you already own it/)

    const inMine = { bucketName: 'mine', prefix: 'open/' }
    for (const [method, params] of [
      ['DeleteBucket', { bucketName: 'mine' }],
      ['ListAllBucketPolicies', { bucketName: 'mine' }],
      ['SetBucketPolicy', { ...inMine, policy: 'readwrite' }],
      ['RemoveObject', { bucketName: 'mine', objects: ['private/a'] }],
      ['ListObjects', inMine],
      ...(bare
        ? []
        : [
            ['FenceUpload', { bucketName: 'mine', objectName: 'private/a', fence: 2e15, writeId: 'w' }],
            [
              'SetObjectRecord',
              { bucketName: 'mine', objectName: 'private/a', generation: 'g', fence: 2e15, record: '' },
            ],
          ]),
    ] as [string, object][]) {
      const refused = await other.failure(method, params)
      const code = bare ? (method === 'ListObjects' ? -32000 : 0) : -32009
      t.match(refused, { code, message: FORBIDDEN, data: bare ? null : { code: 'AccessDenied' } }, method)
    }
    t.match((await other.failure('ListObjects', { bucketName: 'nowhere', prefix: '' })).message, /nowhere/)
    const link = { host: 'gateway.example', bucket: 'mine', object: 'private/a', expiry: 60 }
    t.match((await other.failure('PresignedGet', link)).message, /^Unable to generate shareable URL/)

    const bodyText = bare ? WRONG : FORBIDDEN
    t.match(await other.put('mine', 'private/a', 'x'), { status: 403, text: bodyText })
    t.match(await other.get('mine', 'private/a'), { status: 403, text: bodyText })
    t.match(await anyone.get('mine', 'private/a'), { status: 403, text: WRONG })
    t.match(await other.send('/mine/private/a', { headers: other.headers() }), { status: 403 })
    t.equal((await owner.get('mine', 'private/a')).text, 'a')

    await owner.call('SetBucketPolicy', { ...inMine, policy: 'readwrite' })
    t.equal((await other.get('mine', 'open/b')).text, 'b')
    t.equal((await other.put('mine', 'open/c', 'c')).status, 200)
    t.match(await other.names('mine', { prefix: 'open/' }), ['open/b', 'open/c'])
    const shared = await other.call('PresignedGet', { ...link, object: 'open/b' })
    const { pathname, search } = new URL(`http://${shared.url}`)
    t.equal((await other.send(pathname + search, { headers: { host: 'gateway.example' } })).text, 'b')
    await owner.call('SetBucketPolicy', { ...inMine, policy: 'none' })
    const after = await other.send(pathname + search, { headers: { host: 'gateway.example' } })
    t.equal(after.status, 403, 'the link of an account gives what the account may do')
    t.match((await other.failure('ListObjects', inMine)).message, FORBIDDEN)

    await other.put('theirs', 'large', 'x'.repeat(50_000))
    t.equal((await other.call('StorageInfo')).storageInfo.Used, 50_000)
    t.equal((await owner.call('StorageInfo')).storageInfo.Used, 3)
    t.equal((await other.call('ServerInfo')).GatewayUserInfo.isIAMUser, true)
    t.equal((await owner.call('ServerInfo')).GatewayUserInfo.isIAMUser, false)
    const { token } = await other.call('CreateURLToken')
    t.equal(
      (await other.send(`/gateway/download/theirs/large?token=${token}`, { headers: { 'user-agent': MOZILLA } }))
        .status,
      200,
    )
    const foreign = await owner.send(`/gateway/download/mine/private/a?token=${token}`, {
      headers: { 'user-agent': MOZILLA },
    })
    t.equal(foreign.status, 403)
  })
}

t.test('accounts change their own keys, and only their own', async (t) => {
  const { services, owner, other, keys, book } = await twoAccounts(t)
  const first = await services.gateway.credentials()
  const change = (pair: typeof keys, more = {}) => ({
    currentAccessKey: pair.accessKey,
    currentSecretKey: pair.secretKey,
    newAccessKey: 'chosen',
    newSecretKey: 'new-secret-key',
    ...more,
  })
  t.match(await other.failure('SetAuth', change(first)), { message: /^Current access key or secret key is incorrect/ })
  t.match(await owner.failure('SetAuth', change(keys)), { message: /^Current access key or secret key is incorrect/ })
  t.match(await owner.failure('SetAuth', change(first, { newAccessKey: keys.accessKey })), {
    data: { code: 'InvalidArgument' },
  })
  const { token } = await other.call('SetAuth', change(keys))
  t.match(await other.rpcRaw('{}'), { status: 401 }, 'the old token is invalid')
  other.token = token
  await other.call('ListBuckets')
  const again = await logIn(owner.url, { accessKey: keys.accessKey, secretKey: 'new-secret-key' })
  await again.call('ListBuckets')
  t.match(await owner.failure('Login', { username: 'chosen', password: 'new-secret-key' }), { message: WRONG })
  await owner.call('ListBuckets')

  const { after } = book.rotate(keys.accessKey)
  t.match(await again.rpcRaw('{}'), { status: 401 }, 'another program has changed the keys')
  await (await logIn(owner.url, after)).call('ListBuckets')
})

t.test('an account with buckets stays; one without is gone with its tokens and links', async (t) => {
  const { owner, other, keys, book } = await twoAccounts(t)
  await other.call('MakeBucket', { bucketName: 'theirs' })
  t.throws(() => book.remove(keys.accessKey), { name: 'RangeError', message: /still owns buckets, such as theirs/ })
  await other.call('DeleteBucket', { bucketName: 'theirs' })
  const link = await other.call('PresignedGet', { host: 'h', bucket: 'theirs', object: 'k', expiry: 60 })
  book.remove(keys.accessKey)
  t.match(await other.rpcRaw('{}'), { status: 401 })
  const { pathname, search } = new URL(`http://${link.url}`)
  t.match(await owner.send(pathname + search, { headers: { host: 'h' } }), { status: 400 })
  t.match(await owner.failure('Login', { username: keys.accessKey, password: keys.secretKey }), { message: WRONG })
  const [first] = book.all()
  t.throws(() => book.remove(first?.accessKey ?? ''), { name: 'RangeError', message: /first account/ })
  const { id } = book.add('third', { accessKey: keys.accessKey, secretKey: 'other-secret' })
  t.equal(id, 3, 'ids are not used again')
  t.throws(() => book.add('fourth', { accessKey: keys.accessKey, secretKey: 'other-secret' }), /Another account/)
})

t.test('deals, their tokens and their wallet belong to the account', async (t) => {
  const { owner, other } = await twoAccounts(t, {}, { control: true })
  const [mine, theirs] = [new DealClient(owner), new DealClient(other)]
  await owner.call('MakeBucket', { bucketName: 'mine' })
  await other.call('MakeBucket', { bucketName: 'theirs' })
  await owner.put('mine', 'key', 'mine')
  await other.put('theirs', 'key', 'theirs')
  await owner.call('SetBucketPolicy', { bucketName: 'mine', prefix: '', policy: 'readwrite' })
  for (const [what, refused] of [
    ['deal', await theirs.deal('mine', 'key', {}, 'a-token')],
    ['deals', await theirs.deals('mine', {}, 'b-token')],
    ['retrieve', await theirs.retrieve('mine', 'key')],
  ] as const) {
    t.match(refused, { status: 'fail', message: FORBIDDEN }, what)
  }
  const first = await mine.deal('mine', 'key', {}, 'token')
  const second = await theirs.deal('theirs', 'key', {}, 'token')
  t.equal(second.status, 'success', 'the same token of another account')
  t.not(first.data.dealCid, second.data.dealCid)
  t.not(first.data.walletAddress, second.data.walletAddress)
  const status = (client: Client, cid: string) =>
    client.send(`/gateway/dealstatus/${cid}`, { headers: client.headers() })
  t.equal((await status(owner, first.data.dealCid)).status, 200)
  t.equal((await status(other, second.data.dealCid)).status, 200)
  t.equal((await status(other, first.data.dealCid)).status, 404)
  await owner.put('mine', 'more', 'm')
  await mine.deal('mine', 'more', {}, 'of-mine')
  const progress = (client: Client, token: string) =>
    client.send(`/gateway/dealprogress/${token}`, { headers: client.headers() })
  t.equal((await progress(owner, 'of-mine')).status, 200)
  t.equal((await progress(other, 'of-mine')).status, 404)
  await mine.advance(UNTIL_ACTIVE)
  const { headers } = await owner.head('mine', 'key')
  const evicted = await theirs.evict('mine', 'key', String(headers['x-cloud-generation']))
  t.match(evicted, { status: 'fail', message: FORBIDDEN })
  const control = await other.send('/gateway/network/control', {
    method: 'POST',
    headers: other.headers(),
    body: '{"AdvanceEpochs":"1"}',
  })
  t.equal(control.status, 403, 'the network is that of all accounts')
})

t.test('state epochs belong to the account', async (t) => {
  const { owner, other } = await twoAccounts(t)
  await owner.call('StateEpoch', { epoch: 'one', keep: true })
  t.match(await other.call('StateEpoch', { epoch: 'one' }), { known: false, others: false })
  t.match(await other.call('StateEpoch', { epoch: 'two', over: ['one'], keep: true }), { known: false, others: false })
  t.match(await owner.call('StateEpoch', { epoch: 'one' }), { known: true, others: false })
})

t.test('a folder of the schema without accounts has one account, which owns everything', async (t) => {
  const data = temporaryFolder(t)
  const before = await start(data, {}, { control: true })
  const client = await connectTo(before)
  const pair = await before.gateway.credentials()
  await client.call('MakeBucket', { bucketName: 'bucket' })
  await client.put('bucket', 'key', 'kept')
  await client.call('StateEpoch', { epoch: 'epoch', keep: true })
  const deal = await new DealClient(client).deal('bucket', 'key', {}, 'token')
  await before.stop()
  toFormerSchema(data, pair)

  const upgraded = await start(data)
  t.teardown(() => upgraded.stop())
  t.same(await upgraded.gateway.credentials(), pair)
  const again = await connectTo(upgraded)
  t.equal((await again.call('ListBuckets')).buckets[0].name, 'bucket')
  t.equal((await again.get('bucket', 'key')).text, 'kept')
  t.match(await again.call('StateEpoch', { epoch: 'epoch' }), { known: true })
  const repeated = await new DealClient(again).deal('bucket', 'key', {}, 'token')
  t.equal(repeated.data.dealCid, deal.data.dealCid, 'the token of before')
  t.equal(repeated.data.walletAddress, deal.data.walletAddress)
})
