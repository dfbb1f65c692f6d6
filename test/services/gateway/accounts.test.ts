import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { OwnFailures } from '../../../services/failure-table.js'
import { LogInAttempts } from '../../../services/gateway/access.js'
import { GatewayError } from '../../../services/gateway/errors.js'
import { clientOf } from '../../../services/http/server.js'
import { silentLog } from '../../../services/log.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { stopMonotonicClock } from '../../support/waiting.js'
import { Client, connectTo, logIn, MOZILLA, start, startGateway, twoAccounts } from './client.js'
import { DealClient, UNTIL_ACTIVE } from './deal-client.js'

const FORBIDDEN = 'Do not have enough permissions to access this resource'
const WRONG = 'Authentication failed, check your access credentials'

const keys = { accessKey: 'owner', secretKey: 'very-secret' }

t.test('log-in', async (t) => {
  const client = await startGateway(t, keys)
  const anybody = new Client(client.url, 'gateway')
  const refused = { message: WRONG, data: { code: 'AccessDenied' } }
  for (const [username, password] of [
    ['other', 'very-secret'],
    ['owner', 'very-wrong'],
    ['', ''],
  ] as const)
    t.match(await anybody.failure('Login', { username, password }), refused, 'which key is wrong is not said')
  const login = await anybody.call('Login', { USERNAME: 'owner', PassWord: 'very-secret' })
  t.ok(login.token && login.uiVersion)
})

const right = { username: 'owner', password: 'very-secret' }
const wrong = { username: 'owner', password: 'very-wrong' }

/**
 * Answers of `web.Login` to a client that a proxy on this machine names. No time passes: who must wait must wait to the
 * end of the test.
 */
async function startLoggingIn(t: Test) {
  stopMonotonicClock(t)
  const { url } = await startGateway(t, keys)
  return async (params: object, forwardedFor?: string) => {
    const headers: Record<string, string> = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'web.Login', params })
    const { text } = await new Client(url, 'gateway').rpcRaw(body, headers)
    return JSON.parse(text)
  }
}

const isRefused = { error: { message: /^Authentication failed/ } }
const mustWait = { error: { message: /^Too many log-ins with wrong keys/ } }
const isLetIn = { result: { token: /./ } }

t.test('a guesser must wait, other clients need not', async (t) => {
  const logIn = await startLoggingIn(t)
  for (let i = 0; i < 5; i++) t.match(await logIn(wrong, '203.0.113.7'), isRefused)
  t.match(await logIn(wrong, '203.0.113.7'), mustWait)
  t.match(await logIn(right, '203.0.113.7'), mustWait, 'the right keys are not looked at either')
  t.match(await logIn(right, '203.0.113.7, 203.0.113.8'), isLetIn, 'the proxy names the client last')
  t.match(await logIn(right), isLetIn, 'a program on this machine')
  const nobody = { username: 'nobody', password: 'very-secret' }
  for (let i = 0; i < 5; i++) t.match(await logIn(nobody, '203.0.113.9'), isRefused)
  t.match(await logIn(nobody, '203.0.113.9'), mustWait, 'a name that does not exist counts as one that does')
  t.match(await logIn(right, '203.0.113.9'), isLetIn)
  for (let i = 0; i < 50; i++) await logIn({ ...nobody, username: `nobody-${i}` }, '203.0.113.10')
  t.match(await logIn(right, '203.0.113.10'), mustWait, 'many names from one address')
})

t.test('a guesser on this machine does not shut the proxy out', async (t) => {
  const logIn = await startLoggingIn(t)
  for (let i = 0; i < 5; i++) t.match(await logIn(wrong), isRefused)
  t.match(await logIn(wrong), { error: { data: { code: 'SlowDown' } } })
  t.match(await logIn(right), isLetIn)
  t.match(await logIn(wrong), isRefused, 'which begins anew')
})

t.test('waits double, end, and are bounded', async (t) => {
  let now = 0
  const logIns = new LogInAttempts(silentLog, new OwnFailures(() => now))
  const client = { network: '203.0.113.7', local: false }
  /** Guesses, and resolves to whether the keys were looked at. */
  const guess = async () => {
    let seen = false
    const attempt = logIns.attempt(client, 'owner', () => {
      seen = true
      throw new GatewayError('Authentication')
    })
    await attempt.catch(() => {})
    return seen
  }
  const waits: number[] = []
  while (waits.length < 14) {
    const begun = now
    while (!(await guess())) now += 1000
    waits.push((now - begun) / 1000)
  }
  t.same(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60])
  now += 16 * 60_000
  for (let i = 0; i < 5; i++) t.ok(await guess(), 'forgotten after a while')
})

t.test('who a client is', async (t) => {
  const of = (remoteAddress: string, forwarded?: string) =>
    clientOf({
      socket: { remoteAddress } as never,
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    })
  t.same(of('127.0.0.1'), { network: '127.0.0.1', local: true })
  t.same(of('::ffff:127.0.0.1'), { network: '127.0.0.1', local: true })
  t.same(of('198.51.100.1', '203.0.113.7'), { network: '198.51.100.1', local: false }, 'not believed from elsewhere')
  t.same(of('127.0.0.1', '203.0.113.7').network, 'forwarded 203.0.113.7')
  t.same(of('127.0.0.1', '127.0.0.1').local, false)
  t.equal(of('2001:db8:1:2:3:4:5:6').network, '2001:db8:1:2::/64')
  t.equal(of('2001:db8::9').network, '2001:db8:0:0::/64')
  t.equal(of('127.0.0.1', 'x'.repeat(1000)).network, 'forwarded unknown')
})

t.test('two accounts over every method', async (t) => {
  const { owner, other, anyone } = await twoAccounts(t)
  await owner.call('MakeBucket', { bucketName: 'mine' })
  await owner.put('mine', 'private/a', 'a')
  await owner.put('mine', 'open/b', 'b')
  await other.call('MakeBucket', { bucketName: 'theirs' })

  const names = async (client: Client) =>
    (await client.call('ListBuckets')).buckets.map(({ name }: { name: string }) => name)
  t.same([await names(owner), await names(other)], [['mine'], ['theirs']])

  const taken = await other.failure('MakeBucket', { bucketName: 'mine' })
  t.match(taken, { message: /^The requested bucket name is not available/, data: { code: 'BucketAlreadyExists' } })

  const inMine = { bucketName: 'mine', prefix: 'open/' }
  const object = { bucketName: 'mine', objectName: 'private/a', fence: 2e15 }
  for (const [method, params] of [
    ['DeleteBucket', { bucketName: 'mine' }],
    ['ListAllBucketPolicies', { bucketName: 'mine' }],
    ['SetBucketPolicy', { ...inMine, policy: 'readwrite' }],
    ['RemoveObject', { bucketName: 'mine', objects: ['private/a'] }],
    ['ListObjects', inMine],
    ['FenceUpload', { ...object, writeId: 'w' }],
    ['SetObjectRecord', { ...object, generation: 'g', record: '' }],
  ] as const)
    t.match(await other.failure(method, params), { message: FORBIDDEN, data: { code: 'AccessDenied' } }, method)
  t.match((await other.failure('ListObjects', { bucketName: 'nowhere', prefix: '' })).message, /nowhere/)
  const link = { host: 'gateway.example', bucket: 'mine', object: 'private/a', expiry: 60 }
  t.match((await other.failure('PresignedGet', link)).message, /^Unable to generate shareable URL/)

  t.match(await other.put('mine', 'private/a', 'x'), { status: 403, text: FORBIDDEN })
  t.match(await other.get('mine', 'private/a'), { status: 403, text: FORBIDDEN })
  t.match(await anyone.get('mine', 'private/a'), { status: 403, text: WRONG })
  t.match(await other.send('/mine/private/a', { headers: other.headers() }), { status: 403 })
  t.equal((await owner.get('mine', 'private/a')).text, 'a')

  await owner.call('SetBucketPolicy', { ...inMine, policy: 'readwrite' })
  t.equal((await other.get('mine', 'open/b')).text, 'b')
  t.equal((await other.put('mine', 'open/c', 'c')).status, 200)
  t.same(await other.names('mine', { prefix: 'open/' }), ['open/b', 'open/c'])
  const shared = await other.call('PresignedGet', { ...link, object: 'open/b' })
  const { pathname, search } = new URL(`http://${shared.url}`)
  const open = () => other.send(pathname + search, { headers: { host: 'gateway.example' } })
  t.equal((await open()).text, 'b')
  await owner.call('SetBucketPolicy', { ...inMine, policy: 'none' })
  t.equal((await open()).status, 403, 'the link of an account gives what the account may do')

  await other.put('theirs', 'large', 'x'.repeat(50_000))
  t.equal((await other.call('StorageInfo')).storageInfo.Used, 50_000)
  t.equal((await owner.call('StorageInfo')).storageInfo.Used, 3)
  t.equal((await other.call('ServerInfo')).GatewayUserInfo.isIAMUser, true)
  t.equal((await owner.call('ServerInfo')).GatewayUserInfo.isIAMUser, false)
  const { token } = await other.call('CreateURLToken')
  for (const [place, status] of [
    ['theirs/large', 200],
    ['mine/private/a', 403],
  ] as const) {
    const target = `/gateway/download/${place}?token=${token}`
    t.equal((await owner.send(target, { headers: { 'user-agent': MOZILLA } })).status, status, place)
  }
})

t.test('accounts change their own keys, and only their own', async (t) => {
  const { services, owner, other, keys, registry } = await twoAccounts(t)
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

  const { after } = await registry.rotate(keys.accessKey)
  t.match(await again.rpcRaw('{}'), { status: 401 }, 'another program has changed the keys')
  await (await logIn(owner.url, after)).call('ListBuckets')
})

t.test('an account with buckets stays; one without is gone with its tokens and links', async (t) => {
  const { owner, other, keys, registry } = await twoAccounts(t)
  await other.call('MakeBucket', { bucketName: 'theirs' })
  await t.rejects(registry.remove(keys.accessKey), {
    name: 'RangeError',
    message: /still owns buckets, such as theirs/,
  })
  await other.call('DeleteBucket', { bucketName: 'theirs' })
  const link = await other.call('PresignedGet', { host: 'h', bucket: 'theirs', object: 'k', expiry: 60 })
  await registry.remove(keys.accessKey)
  t.match(await other.rpcRaw('{}'), { status: 401 })
  const { pathname, search } = new URL(`http://${link.url}`)
  t.match(await owner.send(pathname + search, { headers: { host: 'h' } }), { status: 400 })
  t.match(await owner.failure('Login', { username: keys.accessKey, password: keys.secretKey }), { message: WRONG })
  const [first] = await registry.all()
  await t.rejects(registry.remove(first?.accessKey ?? ''), { name: 'RangeError', message: /first account/ })
  const { id } = await registry.add('third', { accessKey: keys.accessKey, secretKey: 'other-secret' })
  t.ok(id >= 3, 'ids are not used again')
  await t.rejects(registry.add('fourth', { accessKey: keys.accessKey, secretKey: 'other-secret' }), /Another account/)
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
  ] as const)
    t.match(refused, { status: 'fail', message: FORBIDDEN }, what)
  const first = await mine.deal('mine', 'key', {}, 'token')
  const second = await theirs.deal('theirs', 'key', {}, 'token')
  t.equal(second.status, 'success', 'the same token of another account')
  t.not(first.data.dealCid, second.data.dealCid)
  t.not(first.data.walletAddress, second.data.walletAddress)
  await owner.put('mine', 'more', 'm')
  await mine.deal('mine', 'more', {}, 'of-mine')
  for (const path of [`dealstatus/${first.data.dealCid}`, 'dealprogress/of-mine']) {
    t.equal((await mine.ask(path)).http, 200, path)
    t.equal((await theirs.ask(path)).http, 404, path)
  }
  await mine.advance(UNTIL_ACTIVE)
  const { headers } = await owner.head('mine', 'key')
  const evicted = await theirs.evict('mine', 'key', String(headers['x-cloud-generation']))
  t.match(evicted, { status: 'fail', message: FORBIDDEN })
  t.equal((await theirs.advance('1')).http, 403, 'the network is that of all accounts')
})

t.test('state epochs belong to the account', async (t) => {
  const { owner, other } = await twoAccounts(t)
  await owner.call('StateEpoch', { epoch: 'one', keep: true })
  t.match(await other.call('StateEpoch', { epoch: 'one' }), { known: false, others: false })
  t.match(await other.call('StateEpoch', { epoch: 'two', over: ['one'], keep: true }), { known: false, others: false })
  t.match(await owner.call('StateEpoch', { epoch: 'one' }), { known: true, others: false })
})

t.test('an index of before accounts has one, with the key pair of its file, which owns everything', async (t) => {
  const data = temporaryFolder(t)
  const pair = { accessKey: 'former-key', secretKey: 'former-secret' }
  const gateway = join(data, 'gateway')
  mkdirSync(gateway)
  writeFileSync(join(gateway, 'account.json'), JSON.stringify({ ...pair, configured: null }))
  const db = new DatabaseSync(join(gateway, 'index.db'))
  db.exec(readFileSync('test/services/released-index.sql', 'utf8'))
  db.exec("DROP TABLE accounts; INSERT INTO buckets (name, created, changed) VALUES ('bucket', '', '')")
  db.close()

  const upgraded = await start(data)
  t.teardown(() => upgraded.stop())
  t.same(await upgraded.gateway.credentials(), pair)
  t.notOk(existsSync(join(gateway, 'account.json')))
  const client = await connectTo(upgraded)
  t.equal((await client.call('ListBuckets')).buckets[0].name, 'bucket')
  const write = { 'x-cloud-fence': String(Date.now() * 1000), 'x-cloud-write-id': 'new', 'x-cloud-record': 'record' }
  t.equal((await client.put('bucket', 'key', 'new', write)).status, 200)
  t.equal((await client.head('bucket', 'key', { 'x-cloud-with-record': '1' })).headers['x-cloud-record'], 'record')
})
