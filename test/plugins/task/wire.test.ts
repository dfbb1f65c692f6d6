import t, { type Test } from 'tap'
import { startInProcess } from '../../support/server/in-process.js'
import { startRecordedPlatform } from './recorded-platform.js'
import { startTaskProxy } from './scene.js'

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
  t.match(await ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'pässword', Store: true }), {
    Stored: true,
  })
  t.match(last(), {
    target: '/api/v2/auth/login',
    type: 'application/json',
    body: '{"email":"a@b.c","password":"pässword"}',
  })

  on('GET /miners', [
    200,
    { status: 'success', data: { miners: [{ miner_id: 'f01', offline_deal_available: 1, score: 'x' }] } },
  ])
  t.match(await ask('GET', '/-/task/v1/providers?offline-deal-available=true&order=ascending&max-items=20'), {
    Providers: [{ MinerId: 'f01', OfflineDealAvailable: true, Score: 0, ContactInfo: '' }],
  })
  t.match(last(), {
    target: '/api/v2/miners?limit=20&offset=0&offline_deal_available=1&order=ascending',
    authorization: undefined,
  })
  on('GET /miners', [200, { status: 'SUCCESS', data: [{ miner_id: 'f02' }] }])
  t.match(await ask('GET', '/-/task/v1/providers'), { Providers: [{ MinerId: 'f02' }] })
  on('GET /miners', [200, { status: 'success', data: { miner: null } }])
  t.match(await ask('GET', '/-/task/v1/providers'), { Providers: [], IsTruncated: false })
  on('GET /miners/f03', [200, { status: 'fail', message: 'Miner Not found' }])
  t.equal(await refused('GET', '/-/task/v1/providers/f03'), 'NoSuchProvider')

  on('GET /my_miner/tasks', [
    200,
    { status: 'success', data: [{ task_id: 7, task_name: 'n', is_public: 1, tags: 'a, b', created_on: '1613713470' }] },
  ])
  t.match(await ask('GET', '/-/task/v1/my-provider/tasks'), {
    Tasks: [{ TaskId: 7, IsPublic: true, Tags: ['a', 'b'], CreatedAt: '2021-02-19T05:44:30Z', MinerId: null }],
  })
  t.match(last(), { authorization: /^Bearer ey/ })
  on('GET /tasks', [200, { status: 'success', data: { task: [] }, total_items: 0, total_task_count: 5 }])
  t.match(await ask('GET', '/-/task/v1/tasks?has-miner=false&tags=a,b'), {
    Tasks: [],
    TotalItems: 0,
    TotalTaskCount: 5,
  })
  t.match(last(), { authorization: undefined, target: /has_miner=0&tags=a%2Cb&limit=100&offset=0$/ })

  on('GET /offline_deals/f01', [200, { status: 'success', data: { deals: [deal] } }])
  t.match(await ask('GET', '/-/task/v1/providers/f01/offline-deals'), {
    Deals: [{ Id: 12, MinerId: null, DealCid: 'bafy' }],
  })
  on('PUT /my_miner/deals/12', [200, { status: 'Success', data: { deal, message: 'updated' } }])
  t.match(
    await ask('PUT', '/-/task/v1/my-provider/deals/12', { Status: 'Waiting', Note: 'a b&c', Extra: { x: '1' } }),
    {
      Message: 'updated',
    },
  )
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
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', { ApiKey: 'k', AccessToken: 's', Store: true }), {
    Stored: true,
  })
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
  const codes = []
  for (let n = 0; n < 6; n++)
    codes.push(await refused('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: `${n}` }))
  t.same(codes, [...Array(5).fill('UpstreamAuthFailed'), 'SlowDown'])
  const asked = platform.requests.length
  t.equal(await refused('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p' }), 'SlowDown')
  t.equal(platform.requests.length, asked)
})

t.test('names and pages of another deployment, a platform that is away, and none', async (t) => {
  const { platform, proxy, on } = await start(t, {
    task: { names: { Email: 'username' }, offsets: 'pages', pageSize: 2 },
  })
  on('POST /auth/login', [200, { auth_token: jwtOf('1'), status: 'success' }])
  await proxy.ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p' })
  t.equal(platform.requests.at(-1)?.body, '{"username":"a@b.c","password":"p"}')
  const page = (...ids: string[]) =>
    [200, { status: 'success', data: { miner: ids.map((miner_id) => ({ miner_id })), total_items: 3 } }] as const
  on('GET /miners', page('f01', 'f02'), page('f03'))
  const first = await proxy.ask('GET', '/-/task/v1/providers')
  t.match(first, { IsTruncated: true })
  t.match(await proxy.ask('GET', `/-/task/v1/providers?continuation-token=${first.NextContinuationToken}`), {
    Providers: [{ MinerId: 'f03' }],
    IsTruncated: false,
  })
  t.match(platform.requests.at(-1)?.target, 'limit=2&offset=1')
  t.equal(await proxy.refused('GET', '/-/task/v1/providers?continuation-token=AAAA'), 'InvalidArgument')

  const { gateway } = await startInProcess(t, 'full')
  const away = await startTaskProxy(t, gateway, { platformUrl: 'http://127.0.0.1:9' })
  t.equal(await away.refused('GET', '/-/task/v1/providers'), 'UpstreamUnavailable')
  await away.close()
  const none = await startTaskProxy(t, gateway, { data: away.data })
  t.equal(await none.refused('GET', '/-/task/v1/providers'), 'NotImplemented')
})
