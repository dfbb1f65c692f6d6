import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { unsignedRequest } from '../../support/sign/signed-request.js'
import { CSV, DEAL_CID, guest, startPlatform, startTaskProxy, taskForm } from './scene.js'

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
  t.match(key, {
    ApiKey: String,
    AccessToken: String,
    Jwt: /^ey/,
    KeyName: 'ci',
    Status: 'Created',
    CreatedOn: /^\d+$/,
  })
  const { ApiKey, AccessToken } = key
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken }), { ApiKey, Jwt: /^ey/ })
  t.equal(await refused('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken: 'wrong' }), 'UpstreamAuthFailed')
  t.match(await ask('POST', '/-/task/v1/api-keys/jwt', { ApiKey, AccessToken, Store: true }), { Stored: true })

  const { Providers, IsTruncated } = await ask('GET', '/-/task/v1/providers')
  t.equal(IsTruncated, false)
  t.ok(Providers.length > 2)
  t.match(Providers[0], {
    MinerId: /^t0/,
    Location: String,
    Price: String,
    OfflineDealAvailable: Boolean,
    Score: Number,
    Status: 'Active',
    UpdatedAt: /Z$/,
  })
  const ids = []
  let token = ''
  do {
    const page = await ask('GET', `/-/task/v1/providers?max-items=2&sort-by=price&order=descending${token}`)
    t.ok(page.Providers.length <= 2)
    ids.push(...page.Providers.map(({ MinerId }: { MinerId: string }) => MinerId))
    token = page.IsTruncated ? `&continuation-token=${page.NextContinuationToken}` : ''
  } while (token)
  t.equal(new Set(ids).size, Providers.length, 'pages show each once')
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
  const form = {
    task_name: 'nightly',
    is_public: '0',
    miner_id: 't01000',
    type: 'regular',
    tags: 'eu,backup',
    uuid: UUID,
  }
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
  t.match(await ask('GET', '/-/task/v1/my-tasks?status=assigned'), {
    Tasks: [{ TaskName: 'nightly', MinerId: 't01000' }],
  })
  const published = await ask('GET', '/-/task/v1/tasks')
  t.same(
    published.Tasks.map(({ TaskName }: { TaskName: string }) => TaskName),
    ['holidays'],
    'public ones alone',
  )
  t.match(await ask('GET', `/-/task/v1/tasks/${UUID}`), {
    Task: {
      TaskUuid: UUID,
      TaskName: 'nightly',
      Type: 'regular',
      Status: 'Assigned',
      Tags: ['eu', 'backup'],
      CreatedAt: /Z$/,
    },
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
  t.equal(
    await refused('GET', `/-/task/v1/tasks/${UUID}`, undefined, guest),
    'NoSuchTask',
    'private tasks are their own',
  )
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
    t.match(JSON.parse((await proxy.send('GET', '/-/task/v1/my-tasks', { keys: guest, headers: own })).body), {
      TotalItems: 2,
    })
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
    const other = await startTaskProxy(t, gateway, {
      platformUrl: platform.url,
      data: proxy.data,
      proxy: { identities: [replaced] },
    })
    const code = await other.refused('GET', '/-/task/v1/my-tasks', undefined, replaced)
    t.equal(code, 'PlatformIdentityRequired', 'another key pair of the same id does not inherit it')
  })
})

/** All that the files below a folder hold, as Latin-1. */
function bytesBelow(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('')
}
