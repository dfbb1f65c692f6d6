import { join } from 'node:path'
import t, { type Test } from 'tap'
import task from '../../../plugins/task/index.js'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { type Credentials, PASSWORD, startSts } from '../../src/s3/sts/sts-scene.js'
import { bytesBelow } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest, unsignedRequest } from '../../support/sign/signed-request.js'
import { stopMonotonicClock } from '../../support/waiting.js'
import { startRecordedPlatform } from './recorded-platform.js'
import { CSV, DEAL_CID, guest, startPlatform, startTaskProxy, taskForm } from './scene.js'

/** A JWT of a platform: it is not checked here. */
function jwtOf(name: string, seconds = 86_400): string {
  const now = Math.floor(Date.now() / 1000)
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'HS256' })}.${part({ sub: name, iat: now, exp: now + seconds })}.c2ln`
}

async function start(t: Test, task: Parameters<typeof startTaskProxy>[2] = {}) {
  const platform = await startRecordedPlatform(t)
  const { gateway } = await startInProcess(t, 'full')
  const proxy = await startTaskProxy(t, gateway, { platformUrl: `${platform.url}/api/v2`, ...task })
  const on = (route: string, ...answers: Parameters<typeof platform.answers.set>[1]) =>
    platform.answers.set(route.replace(' ', ' /api/v2'), answers)
  return { platform, proxy, on }
}

const deal = { id: 12, deal_cid: 'bafy', file_source_url: 'http://x/1.car', status: 'Waiting', task_id: 3, user_id: 1 }

t.test('the wire forms of a deployment', async (t) => {
  const { platform, proxy, on } = await start(t)
  const { ask, refused } = proxy
  const last = () => platform.requests.at(-1)

  on('POST /auth/login', [200, { auth_token: jwtOf('1'), message: 'welcome', status: 'Success' }])
  const login = { Email: 'a@b.c', Password: 'pässword', Store: true }
  t.match(await ask('POST', '/-/task/v1/session', login), { Stored: true })
  const body = '{"email":"a@b.c","password":"pässword"}'
  t.match(last(), { target: '/api/v2/auth/login', type: 'application/json', body })

  const sent = { miners: [{ miner_id: 'f01', offline_deal_available: 1, score: 'x' }] }
  on('GET /miners', [200, { status: 'success', data: sent }])
  t.match(await ask('GET', '/-/task/v1/providers?offline-deal-available=true&order=ascending&max-items=20'), {
    Providers: [{ MinerId: 'f01', OfflineDealAvailable: true, Score: 0, ContactInfo: '' }],
  })
  const target = '/api/v2/miners?limit=20&offset=0&offline_deal_available=1&order=ascending'
  t.match(last(), { target, authorization: undefined })
  on('GET /miners', [200, { status: 'SUCCESS', data: [{ miner_id: 'f02' }] }])
  t.match(await ask('GET', '/-/task/v1/providers'), { Providers: [{ MinerId: 'f02' }] })
  on('GET /miners', [200, { status: 'success', data: { miner: null } }])
  t.match(await ask('GET', '/-/task/v1/providers'), { Providers: [], IsTruncated: false })
  on('GET /miners/f03', [200, { status: 'fail', message: 'Miner Not found' }])
  t.equal(await refused('GET', '/-/task/v1/providers/f03'), 'NoSuchProvider')

  const task = { task_id: 7, task_name: 'n', is_public: 1, tags: 'a, b', created_on: '1613713470' }
  on('GET /my_miner/tasks', [200, { status: 'success', data: [task] }])
  t.match(await ask('GET', '/-/task/v1/my-provider/tasks'), {
    Tasks: [{ TaskId: 7, IsPublic: true, Tags: ['a', 'b'], CreatedAt: '2021-02-19T05:44:30Z', MinerId: null }],
  })
  t.match(last(), { authorization: /^Bearer ey/ })
  on('GET /tasks', [200, { status: 'success', data: { task: [] }, total_items: 0, total_task_count: 5 }])
  const unassigned = await ask('GET', '/-/task/v1/tasks?has-miner=false&tags=a,b')
  t.match(unassigned, { Tasks: [], TotalItems: 0, TotalTaskCount: 5 })
  t.match(last(), { authorization: undefined, target: /has_miner=0&tags=a%2Cb&limit=100&offset=0$/ })

  on('GET /offline_deals/f01', [200, { status: 'success', data: { deals: [deal] } }])
  const ofProvider = await ask('GET', '/-/task/v1/providers/f01/offline-deals')
  t.match(ofProvider, { Deals: [{ Id: 12, MinerId: null, DealCid: 'bafy' }] })
  on('PUT /my_miner/deals/12', [200, { status: 'Success', data: { deal, message: 'updated' } }])
  const change = { Status: 'Waiting', Note: 'a b&c', Extra: { x: '1' } }
  t.match(await ask('PUT', '/-/task/v1/my-provider/deals/12', change), { Message: 'updated' })
  t.match(last(), { method: 'PUT', type: 'application/x-www-form-urlencoded', body: 'x=1&status=Waiting&note=a+b%26c' })
  on('PUT /my_miner/tasks/u/deals/c', [200, { status: 'success', message: 'ok' }])
  t.match(await ask('POST', '/-/task/v1/my-provider/tasks/u/deals/c', { Status: 'DealActive' }), { Message: 'ok' })
  on('POST /miner/info', [200, { status: 'success', data: { bid_mode: 1 } }])
  t.match(await ask('POST', '/-/task/v1/my-provider', { MinerId: 'f01', BidMode: 1 }), { Provider: { bid_mode: '1' } })
  t.match(last(), { body: 'miner_fid=f01&bid_mode=1' })
  on('POST /miner/info', [403, { status: 'fail', message: 'not yours' }])
  t.equal(await refused('POST', '/-/task/v1/my-provider', { MinerId: 'f01' }), 'ProviderRoleRequired')
})

t.test('what a platform may answer, and the error for it', async (t) => {
  const { platform, proxy, on } = await start(t)
  const { refused } = proxy
  const cases = [
    [[200, '<!doctype html><p>console'], 'UpstreamBadResponse'],
    [[200, { status: 'success', data: 5 }], 'UpstreamBadResponse'],
    [[200, { status: 'fail', message: 'database is locked' }], 'PlatformRefused'],
    [[302, 'moved'], 'UpstreamBadResponse'],
    [[400, { status: 'fail', message: 'limit is wrong' }], 'InvalidArgument'],
    [[401, { status: 'fail', message: 'who are you' }], 'UpstreamAuthFailed'],
    [[429, { status: 'fail', message: 'slow down' }], 'SlowDown'],
    [[500, 'oops'], 'UpstreamUnavailable'],
    ['lost', 'UpstreamUnavailable'],
  ] as const
  for (const [answer, code] of cases) {
    on('GET /miners', answer)
    t.equal(await refused('GET', '/-/task/v1/providers'), code, JSON.stringify(answer))
  }
  t.equal(await refused('GET', '/-/task/v1/providers/..'), 'InvalidArgument')
  const before = platform.requests.length
  for (const bad of ['limit=0', 'limit=1001', 'offset=-1', 'colour=red', 'sort-by=name'])
    t.equal(await refused('GET', `/-/task/v1/providers?${bad}`), 'InvalidArgument', bad)
  t.equal(await refused('POST', '/-/task/v1/session', { Email: 'a' }), 'InvalidArgument')
  t.equal(platform.requests.length, before, 'nothing was asked')
})

t.test('a token that is refused is replaced once, and a log-in that is refused is forgotten', async (t) => {
  const { platform, proxy, on } = await start(t)
  const { ask, refused } = proxy
  const empty = [200, { status: 'success', data: { task: [] } }] as const
  const denied = [401, { status: 'fail', message: 'Please provide a valid api token.' }] as const
  on('POST /user/api_keys/jwt', [200, { status: 'success', data: { jwt: jwtOf('first') } }])
  const given = { ApiKey: 'k', AccessToken: 's', Store: true }
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', given), { Stored: true })
  t.match(platform.requests.at(-1), { body: '{"apikey":"k","access_token":"s"}', authorization: undefined })

  on('GET /tasks', empty)
  const logIns = () => platform.requests.filter(({ target }) => target.endsWith('/jwt')).length
  const before = logIns()
  await Promise.all([1, 2, 3].map(() => ask('GET', '/-/task/v1/my-tasks')))
  t.equal(logIns(), before + 1, 'one log-in for requests at the same time')
  on('POST /user/api_keys/jwt', [200, { status: 'success', data: { jwt: jwtOf('second') } }])
  on('GET /tasks', denied, empty)
  t.match(await ask('GET', '/-/task/v1/my-tasks'), { Tasks: [] })
  t.equal(logIns(), before + 2)
  on('GET /tasks', denied)
  t.equal(await refused('GET', '/-/task/v1/my-tasks'), 'UpstreamAuthFailed')
  t.equal(logIns(), before + 3, 'once, not for ever')
  on('POST /user/api_keys/jwt', [200, { status: 'fail', message: 'api_key Not found' }])
  on('GET /tasks', denied)
  t.equal(await refused('GET', '/-/task/v1/my-tasks'), 'UpstreamAuthFailed')
  t.equal(await refused('GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired', 'the log-in is forgotten')
})

t.test('an outage forgets no log-in, and guesses are limited', async (t) => {
  const { platform, proxy, on } = await start(t)
  const { ask, refused } = proxy
  on('POST /auth/login', [200, { auth_token: jwtOf('1', 1), status: 'success' }])
  await ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p', Store: true })
  on('GET /tasks', [200, { status: 'success', data: { task: [] } }])
  for (const outage of ['lost', [503, {}], [429, { status: 'fail' }]] as const) {
    on('POST /auth/login', outage)
    t.match(await refused('GET', '/-/task/v1/my-tasks'), /^(Upstream(Unavailable|Timeout)|SlowDown)$/)
  }
  on('POST /auth/login', [200, { auth_token: jwtOf('1'), status: 'success' }])
  t.match(await ask('GET', '/-/task/v1/my-tasks'), { Tasks: [] })

  on('POST /auth/login', [401, { status: 'fail', message: 'wrong' }])
  const guess = (Password: number) => refused('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: `${Password}` })
  for (let n = 0; n < 5; n++) t.equal(await guess(n), 'UpstreamAuthFailed')
  const asked = platform.requests.length
  t.equal(await refused('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p' }), 'SlowDown')
  t.equal(platform.requests.length, asked)
})

t.test('names and pages of another deployment, a platform that is away, and none', async (t) => {
  const other = { names: { Email: 'username' }, offsets: 'pages' as const, pageSize: 2 }
  const { platform, proxy, on } = await start(t, { task: other })
  on('POST /auth/login', [200, { auth_token: jwtOf('1'), status: 'success' }])
  await proxy.ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p' })
  t.equal(platform.requests.at(-1)?.body, '{"username":"a@b.c","password":"p"}')
  const page = (...ids: string[]) =>
    [200, { status: 'success', data: { miner: ids.map((miner_id) => ({ miner_id })), total_items: 3 } }] as const
  on('GET /miners', page('f01', 'f02'), page('f03'))
  const first = await proxy.ask('GET', '/-/task/v1/providers')
  t.match(first, { IsTruncated: true })
  const second = await proxy.ask('GET', `/-/task/v1/providers?continuation-token=${first.NextContinuationToken}`)
  t.match(second, { Providers: [{ MinerId: 'f03' }], IsTruncated: false })
  t.match(platform.requests.at(-1)?.target, 'limit=2&offset=1')
  t.equal(await proxy.refused('GET', '/-/task/v1/providers?continuation-token=AAAA'), 'InvalidArgument')

  const { gateway } = await startInProcess(t, 'full')
  const away = await startTaskProxy(t, gateway, { platformUrl: 'http://127.0.0.1:9' })
  t.equal(await away.refused('GET', '/-/task/v1/providers'), 'UpstreamUnavailable')
  await away.close()
  const none = await startTaskProxy(t, gateway, { data: away.data })
  t.equal(await none.refused('GET', '/-/task/v1/providers'), 'NotImplemented')
})

const UUID = '0192aaaa-bbbb-7ccc-8ddd-eeeeffff0001'

t.test('every row of the task platform, on the embedded one', async (t) => {
  const { gateway, platform } = await startPlatform(t)
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url })
  const { ask, refused } = proxy
  const { email: Email, password: Password } = platform.user

  t.equal(await refused('GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired')
  t.equal(await refused('POST', '/-/task/v1/api-keys', { KeyName: 'k' }), 'PlatformIdentityRequired')
  t.equal(await refused('POST', '/-/task/v1/session', { Email, Password: 'wrong' }), 'UpstreamAuthFailed')
  const once = await ask('POST', '/-/task/v1/session', { Email, Password })
  t.match(once, { AuthToken: /^ey/, Stored: false, Message: String })
  t.equal(await refused('GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired', 'nothing is kept unasked')
  const stored = await ask('POST', '/-/task/v1/session', { Email, Password, Store: true })
  t.match(stored, { Stored: true, Message: String })
  t.notOk('AuthToken' in stored)

  const key = await ask('POST', '/-/task/v1/api-keys', { KeyName: 'ci' })
  t.match(key, { ApiKey: String, AccessToken: String, Jwt: /^ey/ })
  t.match(key, { KeyName: 'ci', Status: 'Created', CreatedOn: /^\d+$/ })
  const { ApiKey, AccessToken } = key
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken }), { ApiKey, Jwt: /^ey/ })
  t.equal(await refused('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken: 'wrong' }), 'UpstreamAuthFailed')
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken, Store: true }), { Stored: true })

  const { Providers, IsTruncated } = await ask('GET', '/-/task/v1/providers')
  t.equal(IsTruncated, false)
  t.ok(Providers.length > 2)
  t.match(Providers[0], { MinerId: /^t0/, Location: String, Price: String, OfflineDealAvailable: Boolean })
  t.match(Providers[0], { Score: Number, Status: 'Active', UpdatedAt: /Z$/ })
  const raw = JSON.parse((await proxy.send('GET', '/-/task/v1/providers?limit=1&raw=1')).body)
  t.match(raw, { status: 'success', data: { miner: [{ miner_id: /^t0/ }] } })
  t.match(await ask('GET', '/-/task/v1/providers/t01000'), { Provider: { MinerId: 't01000' } })
  t.equal(await refused('GET', '/-/task/v1/providers/t09999'), 'NoSuchProvider')
  t.equal(await refused('GET', '/-/task/v1/providers?location=Mars'), 'InvalidArgument')
  t.match(
    await ask('POST', '/-/task/v1/my-provider', { miner_fid: 't01000', BidMode: '0', OfflineDealAvailable: true }),
    { Message: String, Provider: { miner_fid: 't01000', bid_mode: '0', offline_deal_available: 'true' } },
  )

  const jwt = { authorization: `Bearer ${once.AuthToken}` }
  const form = { task_name: 'nightly', is_public: '0', miner_id: 't01000', tags: 'eu,backup', uuid: UUID }
  const posted = await fetch(`${platform.url}/tasks`, { method: 'POST', headers: jwt, body: taskForm(form, CSV) })
  t.equal(posted.status, 200)
  const open = { task_name: 'holidays', is_public: '1', bid_mode: '0', min_price: '0', max_price: '0.5' }
  await fetch(`${platform.url}/tasks`, { method: 'POST', headers: jwt, body: taskForm(open) })

  t.match(await ask('GET', '/-/task/v1/my-tasks?max-items=1'), {
    Tasks: [{ TaskName: 'holidays', IsPublic: true, MaxPrice: '0.5', DealCount: 0 }],
    TotalItems: 2,
    TotalTaskCount: 2,
    IsTruncated: true,
  })
  const assigned = await ask('GET', '/-/task/v1/my-tasks?status=assigned')
  t.match(assigned, { Tasks: [{ TaskName: 'nightly', MinerId: 't01000' }] })
  const published = await ask('GET', '/-/task/v1/tasks')
  t.same(
    published.Tasks.map(({ TaskName }: { TaskName: string }) => TaskName),
    ['holidays'],
    'public ones alone',
  )
  t.match(await ask('GET', `/-/task/v1/tasks/${UUID}`), {
    Task: { TaskUuid: UUID, TaskName: 'nightly', Status: 'Assigned', Tags: ['eu', 'backup'], CreatedAt: /Z$/ },
    Bids: [],
    Deals: [{ DealCid: DEAL_CID, Status: 'Created', FileSourceUrl: /car/, MinerId: 1000 }],
    AverageBid: '0',
    TotalDealCount: 1,
    Miner: { MinerId: 't01000' },
    Poster: { CompleteTaskCount: 0, MemberSince: /^\d+$/ },
  })
  const xml = await proxy.send('GET', `/-/task/v1/tasks/${UUID}?format=xml`)
  t.match(xml.body, '<GetTaskResult xmlns="urn:dealgate:task:1"><Task>')
  t.match(xml.body, '<Tags><Tag>eu</Tag><Tag>backup</Tag></Tags>')
  t.equal(await refused('GET', `/-/task/v1/tasks/${UUID}`, undefined, guest), 'NoSuchTask', 'private tasks stay so')
  t.equal(await refused('GET', '/-/task/v1/tasks/none'), 'NoSuchTask')
  t.match(await ask('GET', '/-/task/v1/my-provider/tasks'), { Tasks: [{ TaskName: 'nightly' }] })
  const { Deals } = await ask('GET', '/-/task/v1/providers/t01000/offline-deals?deal-status=Created')
  t.match(Deals, [{ DealCid: DEAL_CID, Status: 'Created', TaskId: Number }])

  const deal = `/-/task/v1/my-provider/deals/${Deals[0].Id}`
  t.match(await ask('POST', deal, { Status: 'Waiting', Note: 'soon' }), {
    Deal: { DealCid: DEAL_CID, Status: 'Waiting', Note: 'soon' },
    Message: String,
  })
  t.match(await ask('PUT', deal, { Status: 'Downloading', FilePath: '/data/1.car', FileSize: 2000 }), {
    Deal: { Status: 'Downloading', FilePath: '/data/1.car' },
  })
  const byTask = `/-/task/v1/my-provider/tasks/${UUID}/deals/${DEAL_CID}`
  t.match(await ask('POST', byTask, { Status: 'Downloading' }), { Deal: { DealCid: DEAL_CID, Id: null } })
  t.match(await ask('PUT', byTask, { Status: 'DownloadFailed' }), { Message: /DownloadFailed/ })
  t.equal(await refused('PUT', '/-/task/v1/my-provider/deals/999999', { Status: 'Waiting' }), 'NoSuchDeal')
  t.equal(await refused('PUT', deal, { Status: 'two words' }), 'InvalidArgument')
  t.equal(await refused('PUT', deal, { Status: 'Waiting' }, guest), 'PlatformIdentityRequired')
  t.match(await ask('GET', '/-/task/v1/price-statistics'), {
    AveragePricePerGBPerYear: { Text: / FIL$/, Value: Number, Unit: 'FIL' },
  })

  t.test('with the bearer token of the platform, unsigned', async (t) => {
    const bearer = async (method: string, path: string, headers: Record<string, string> = jwt) =>
      unsignedRequest(proxy.endpoint, { method, path, headers })
    t.match(JSON.parse((await bearer('GET', '/-/task/v1/my-tasks')).body), { TotalItems: 2 })
    t.match(await bearer('GET', '/-/task/v1/my-tasks', { authorization: 'Bearer x.y.z' }), { status: 403 })
    t.match(await bearer('GET', '/-/task/v1/my-tasks', {}), { status: 403 })
    t.match(await bearer('GET', '/-/jobs/v1'), { status: 403 })
    t.match(await bearer('GET', '/-/deal/v1/deals'), { status: 403 })
    t.match(await bearer('POST', '/-/task/v1/session'), { status: 403 })
    const own = { 'x-dealgate-platform-authorization': jwt.authorization }
    const mine = await proxy.send('GET', '/-/task/v1/my-tasks', { keys: guest, headers: own })
    t.match(JSON.parse(mine.body), { TotalItems: 2 })
  })

  t.test('secrets are neither in the log nor in clear in the files', async (t) => {
    const secrets = [Password, AccessToken, once.AuthToken, key.Jwt]
    const log = JSON.stringify(proxy.lines)
    const files = bytesBelow(proxy.data)
    t.match(files, 'task-logins')
    for (const secret of secrets) {
      t.notOk(log.includes(secret))
      t.notOk(files.includes(secret))
    }
    await proxy.close()
    const again = await startTaskProxy(t, gateway, { platformUrl: platform.url, data: proxy.data })
    t.match(await again.ask('GET', '/-/task/v1/my-tasks'), { TotalItems: 2 }, 'the log-in outlives a restart')
    t.notOk(bytesBelow(proxy.data).includes(Password))
    await again.close()
    const replaced = { accessKeyId: 'owner', secretAccessKey: 'another-secret-key' }
    const options = { platformUrl: platform.url, data: proxy.data, proxy: { identities: [replaced] } }
    const other = await startTaskProxy(t, gateway, options)
    const code = await other.refused('GET', '/-/task/v1/my-tasks', undefined, replaced)
    t.equal(code, 'PlatformIdentityRequired', 'another key pair of the same id does not inherit it')
  })
})

t.test('a stored log-in of temporary credentials ends with the secret key of their account', async (t) => {
  const scene = await startSts(t, { plugins: [task({})] })
  const email = 'kept@example.com'
  const token = await scene.newUser(email)
  const call = async (keys: Credentials, method: string, path: string, body?: object) => {
    const json = { query: { format: 'json' }, headers: { 'content-type': 'application/json' } }
    const wanted = { method, path, ...json, ...(body && { body: JSON.stringify(body) }) }
    const answer = await signedRequest(scene.endpoint, keys, wanted)
    const { Code } = JSON.parse(answer.body)
    return Code ?? answer.status
  }
  const before = await scene.assume(token)
  t.equal(await call(before, 'GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired')
  const login = { Email: email, Password: PASSWORD, Store: true }
  t.equal(await call(before, 'POST', '/-/task/v1/session', login), 200)
  const another = await scene.assume(token)
  t.equal(await call(another, 'GET', '/-/task/v1/my-tasks'), 200, 'all sessions of the account have it')
  await scene.restart()
  t.equal(await call(another, 'GET', '/-/task/v1/my-tasks'), 200)

  const registry = await openAccountRegistry(join(scene.folder, 'services'))
  await registry.rotate((await registry.all()).find(({ name }) => name === email)?.accessKey ?? '')
  await registry.close()
  await scene.restart()
  const after = await scene.assume(token)
  t.equal(await call(after, 'GET', '/-/task/v1/my-tasks'), 'PlatformIdentityRequired')
})

t.test('unsigned requests with tokens are limited by address', async (t) => {
  stopMonotonicClock(t)
  const scene = await startSts(t, { plugins: [task({})] })
  const wanted = { method: 'GET', path: '/-/task/v1/my-tasks', query: { format: 'json' } }
  const ask = (authorization: string) => unsignedRequest(scene.endpoint, { ...wanted, headers: { authorization } })
  const token = await scene.owner()
  t.equal((await ask(`Bearer ${token}`)).status, 200)
  const answers: string[] = []
  for (let n = 1; n < 200 && answers.at(-1) !== 'SlowDown'; n++)
    answers.push(JSON.parse((await ask(`Bearer forged.${n}.token`)).body).Code)
  t.equal(answers.at(-1), 'SlowDown')
  t.equal(answers.length, 120)
  const { status, headers } = await ask(`Bearer ${token}`)
  t.match({ status, headers }, { status: 503, headers: { 'retry-after': '5' } })
  const keys = await scene.assume(token)
  const signed = await signedRequest(scene.endpoint, keys, { method: 'GET', path: '/-/jobs/v1' })
  t.equal(signed.status, 200, 'signed requests are not counted')
})

t.test('a sign-in without a key pair', async (t) => {
  const { platform, proxy, on } = await start(t)
  const signIn = async (body: object | string) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const init = { method: 'POST', body: text, headers: { 'content-type': 'application/json' } }
    const answer = await fetch(`${proxy.endpoint}/-/task/v1/sign-in`, init)
    const { RequestId: _, HostId: __, ...json } = (await answer.json()) as Readonly<Record<string, string>>
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), json }
  }
  on('POST /auth/login', [200, { auth_token: jwtOf('1'), message: 'welcome', status: 'Success' }])
  t.match(await signIn({ Email: 'a@b.c', Password: 'pässword' }), { status: 200, json: { AuthToken: /^ey/ } })
  t.match(platform.requests.at(-1), { body: '{"email":"a@b.c","password":"pässword"}', forwarded: '127.0.0.1' })
  for (const body of [
    {},
    { Email: 'a' },
    { Email: 'a', Password: '' },
    { Email: 'a', Password: 'p', Store: true },
    '{',
  ])
    t.match(await signIn(body), { status: 400 }, JSON.stringify(body))

  on('POST /auth/login', [401, { status: 'fail', message: 'wrong password' }])
  const wrong = await signIn({ Email: 'a@b.c', Password: '1' })
  on('POST /auth/login', [404, { status: 'fail', message: 'no such user' }])
  t.same(await signIn({ Email: 'unknown@b.c', Password: '1' }), wrong, 'no answer tells whether a user exists')
  t.match(wrong, { status: 403, json: { Code: 'UpstreamAuthFailed' } })
  t.match(await signIn({ Email: 'A@b.c ', Password: '1' }), { status: 403 })

  // A password of its own does not buy a client further guesses.
  on('POST /auth/login', [200, { auth_token: jwtOf('1'), status: 'Success' }])
  t.match(await signIn({ Email: 'own@b.c', Password: 'own' }), { status: 200 })
  on('POST /auth/login', [401, { status: 'fail' }])
  const codes = []
  for (let n = 0; n < 4; n++) codes.push((await signIn({ Email: 'a@b.c', Password: `${n}` })).json.Code)
  t.same(codes, ['UpstreamAuthFailed', 'UpstreamAuthFailed', 'UpstreamAuthFailed', 'SlowDown'])
  const asked = platform.requests.length
  const right = await signIn({ Email: 'a@b.c', Password: 'pässword' })
  t.match(right, { status: 503, retryAfter: /^\d+$/, json: { Code: 'SlowDown' } })
  for (let n = 0; n < 3; n++) await signIn({ Email: `${n}@b.c`, Password: 'p' })
  t.match(await signIn({ Email: 'another@b.c', Password: 'p' }), { json: { Code: 'SlowDown' } }, 'nor do other users')
  t.equal(platform.requests.length, asked + 2)
})
