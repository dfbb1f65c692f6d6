import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { account, logsIn } from '../../cli/account-commands.js'
import { sha256 } from '../../support/content/content.js'
import { runCli } from '../../support/server/cli.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { answerTo, open, presigned, type Sending, send, sign, UNSIGNED_PAYLOAD } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

interface Pair {
  readonly accessKey: string
  readonly secretKey: string
}

/** Makes calls, and returns their answers with the status. */
function callsOf(server: Dealgate) {
  const { endpoint, region } = server
  const as = ({ accessKey, secretKey }: Pair) => ({ endpoint, region, accessKey, secretKey })
  const owner = { accessKey: server.accessKey, secretKey: server.secretKey }
  const request = (who: Pair, sending: Sending) => send(as(who), sending)
  let calls = 0
  async function call(method: string, path: string, json?: object, who: Pair = owner) {
    const headers = { accept: 'application/json', 'content-type': 'application/json' }
    const body = method === 'GET' ? undefined : Buffer.from(JSON.stringify(json ?? {}))
    // Two equal requests of one second have the same signature, which counts once.
    const target = `${path}${path.includes('?') ? '&' : '?'}x-call=${++calls}`
    const answer = await send(as(who), { method, target, headers, ...(body && { body }) })
    return { ...JSON.parse(answer.body.toString()), status: answer.status }
  }
  async function add(id: string, json: object = { All: true }): Promise<Pair> {
    const { status, SecretAccessKey } = await call('POST', `/-/keys/v1/${id}`, json)
    if (status !== 200) throw new Error(`${id} was not added`)
    return { accessKey: id, secretKey: SecretAccessKey }
  }
  return { owner, request, call, add }
}

/** Temporary credentials of a key pair. */
async function sessionOf(server: Dealgate, { accessKey, secretKey }: Pair) {
  const { endpoint, region } = server
  const body = Buffer.from('Action=GetSessionToken&Version=2011-06-15')
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await send({ endpoint, region, accessKey, secretKey }, { method: 'POST', target: '/', headers, body })
  const text = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(answer.body.toString())?.[1] ?? ''
  return {
    pair: { accessKey: text('AccessKeyId'), secretKey: text('SecretAccessKey') },
    token: { 'x-amz-security-token': text('SessionToken') },
  }
}

t.test('key pairs', async (t) => {
  const server = await startDealgate(t)
  const { owner, request, call, add } = callsOf(server)
  for (const target of ['/photos', '/photos/a/1', '/photos/b/1']) await request(owner, { method: 'PUT', target })

  const rights = [{ Bucket: 'photos', Prefix: 'a/', Access: 'read' }]
  const added = await call('POST', '/-/keys/v1/reader', { Rights: rights, Actions: ['deal:ListDeals'] })
  t.match(added, { status: 200, AccessKeyId: 'reader', Rights: rights, Actions: ['deal:ListDeals'] })
  const reader = { accessKey: 'reader', secretKey: added.SecretAccessKey }
  t.match(reader.secretKey, /^[0-9a-f]{40}$/)
  t.equal(statSync(join(server.data, 'credentials.json')).mode & 0o777, 0o600)
  const read = async (target: string, who = reader) => (await request(who, { method: 'GET', target })).status
  t.same([await read('/photos/a/1'), await read('/photos/b/1')], [200, 403])
  t.match(await call('POST', '/-/keys/v1/reader', { All: true }), { status: 409, Code: 'EntityAlreadyExists' })
  t.match(await call('POST', `/-/keys/v1/${owner.accessKey}`, { All: true }), { status: 409 })

  const changed = await call('POST', '/-/keys/v1/reader/rights', {
    Rights: [{ Bucket: 'photos', Access: 'readwrite' }],
  })
  t.match(changed, { status: 200, Rights: [{ Bucket: 'photos', Access: 'readwrite' }] })
  t.notOk('Actions' in changed, 'what is not given is removed')
  t.equal(await read('/photos/b/1'), 200)

  const { SecretAccessKey } = await call('POST', '/-/keys/v1/reader/rotate')
  t.equal(await read('/photos/a/1'), 403, 'the former secret is refused')
  t.equal(await read('/photos/a/1', { ...reader, secretKey: SecretAccessKey }), 200)

  const listed = await call('GET', '/-/keys/v1')
  t.match(listed, { Owner: owner.accessKey, Keys: [{ AccessKeyId: 'reader' }] })
  t.notMatch(JSON.stringify(listed), new RegExp(`${SecretAccessKey}|[Ss]ecret`))
  t.match(await call('POST', '/-/keys/v1/reader/remove'), { status: 200, AccessKeyId: 'reader' })
  t.equal(await read('/photos/a/1', { ...reader, secretKey: SecretAccessKey }), 403)
  t.match(await call('POST', '/-/keys/v1/reader/remove'), { status: 404, Code: 'NoSuchEntity' })
  t.match(await call('POST', `/-/keys/v1/${owner.accessKey}/remove`), { status: 400, Code: 'InvalidRequest' })

  const policy = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: 's3:GetObject', Resource: '*' }] }
  for (const [id, json] of [
    ['a,b', { All: true }],
    ['DGSABCDEFGHIJKLMNOPQ', { All: true }],
    ['wrong', {}],
    ['wrong', { Rights: null }],
    ['wrong', { Rights: [], All: true }],
    ['wrong', { Actions: ['deal:ListDeals'] }],
    ['wrong', { Rights: [], Actions: ['Deal'] }],
    ['wrong', { Policies: [JSON.stringify({ ...policy, Statement: [{ Effect: 'Permit' }] })] }],
    ['wrong', { AccountAccessKey: 'absent', All: true }],
    ['wrong', { SecretAccessKey: 'chosen-by-the-client', All: true }],
  ] as const)
    t.match(await call('POST', `/-/keys/v1/${encodeURIComponent(id)}`, json), { status: 400 }, JSON.stringify(json))
  const narrow = await add('narrow', { Policies: [JSON.stringify(policy)] })
  for (const json of [{}, { Rights: null }, { Policies: [] }])
    t.match(await call('POST', '/-/keys/v1/narrow/rights', json), { status: 400, Code: 'InvalidArgument' })
  t.same([await read('/photos/a/1', narrow), await read('/photos', narrow)], [200, 403])
  const together = await Promise.all(Array.from({ length: 12 }, (_, i) => add(`key-${i}`, { Rights: [] })))
  t.equal(together.length, 12, 'concurrent changes all count')
  t.equal((await call('GET', '/-/keys/v1')).Keys.length, 13)
  await refusals(t, server)
  await wrongFile(t, server)
  await repeated(t, server)
})

/** A captured request that is sent again. */
async function repeated(t: Test, server: Dealgate): Promise<void> {
  const { call } = callsOf(server)
  const method = 'POST'
  const target = '/-/keys/v1/captured'
  const body = Buffer.from('{"All":true}')
  const { headers } = sign(server, { method, target, payloadHash: sha256(body) })
  const sent = () => {
    const request = open(server, method, target, { ...headers, 'content-length': String(body.length) }, false)
    const answer = answerTo(request)
    request.end(body)
    return answer
  }
  t.equal((await sent()).status, 200)
  t.equal((await call('POST', `${target}/remove`)).status, 200)
  t.match(await sent(), { status: 409 })
  t.notMatch(JSON.stringify(await call('GET', '/-/keys/v1')), /captured/, 'it stays removed')
  const link = presigned(server, 'POST', '/-/keys/v1/stays/rotate')
  t.equal((await fetch(link, { method: 'POST' })).status, 403)
}

/** A file that was edited by hand, and has a policy that the server does not accept. */
async function wrongFile(t: Test, server: Dealgate): Promise<void> {
  const { request, call, add } = callsOf(server)
  const file = join(server.data, 'credentials.json')
  const stays = await add('stays', { Rights: [{ Bucket: 'photos', Access: 'read' }] })
  const before = readFileSync(file, 'utf8')
  const wrong = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: 'deal:NoSuchCall', Resource: '*' }] }
  const text = JSON.stringify([
    ...JSON.parse(before),
    { ...JSON.parse(before)[0], accessKeyId: 'by-hand', policies: [wrong] },
  ])
  writeFileSync(file, text)
  for (const what of ['remove', 'rotate']) {
    const answer = await call('POST', `/-/keys/v1/stays/${what}`)
    t.match(answer, { status: 400, Code: 'InvalidRequest', Message: /policies\[0\].*NoSuchCall/ }, what)
  }
  t.equal(readFileSync(file, 'utf8'), text, 'nothing has changed')
  const status = async () => (await request(stays, { method: 'GET', target: '/photos/a/1' })).status
  t.equal(await status(), 200)
  writeFileSync(file, before)
  t.match(await call('POST', '/-/keys/v1/stays/remove'), { status: 200 })
  t.equal(await status(), 403)
}

async function refusals(t: Test, server: Dealgate): Promise<void> {
  const { owner, request, call, add } = callsOf(server)
  const policy = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: ['*'], Resource: '*' }] }
  const tenant = await account(server.data, 'add', '--name', 'tenant')
  const session = await sessionOf(server, owner)
  const callers: [string, Pair, Record<string, string>?][] = [
    ['a session', session.pair, session.token],
    [
      'rights with all actions',
      await add('limited', { Rights: [{ Bucket: '*', Access: 'readwrite' }], Actions: ['*'] }),
    ],
    ['a policy that allows everything', await add('by-policy', { Policies: [JSON.stringify(policy)] })],
    ['another account', await add('tenant', { AccountAccessKey: tenant.accessKey, All: true })],
  ]
  const before = await call('GET', '/-/keys/v1')
  for (const [who, pair, headers = {}] of callers) {
    for (const call of [
      ...['keys/v1/stolen', 'keys/v1/limited/rights', 'keys/v1/limited/rotate', 'keys/v1/limited/remove'],
      ...['stolen', `${tenant.accessKey}/rotate`, `${tenant.accessKey}/remove`].map((path) => `accounts/v1/${path}`),
    ]) {
      const sending = { method: 'POST', target: `/-/${call}?format=xml`, headers, body: Buffer.from('{}') }
      t.match(await request(pair, sending), { status: 403, code: 'AccessDenied' }, `${call} by ${who}`)
    }
  }
  t.same(await call('GET', '/-/keys/v1'), before, 'nothing has changed')
  const list = (pair: Pair, headers = {}) => request(pair, { method: 'GET', target: '/-/keys/v1', headers })
  t.equal((await list(session.pair, session.token)).status, 200, 'a session may read them')
  const { SecretAccessKey: secretKey } = await call('POST', '/-/keys/v1/tenant/rotate')
  t.equal((await list({ accessKey: 'tenant', secretKey })).status, 403)
  t.equal((await fetch(`${server.endpoint}/-/keys/v1/anonymous`, { method: 'POST', body: '{}' })).status, 403)
  const target = '/-/keys/v1/another'
  const sending = { method: 'POST', target, payloadHash: UNSIGNED_PAYLOAD, body: Buffer.from('{}') }
  t.equal((await request(owner, sending)).status, 403, 'the signature has to cover the body')
}

t.test('accounts, and who changed what', async (t) => {
  const server = await startDealgate(t, { args: ['--workers', '2'] })
  const { owner, request, call, add } = callsOf(server)
  const { SecretKey } = await call('POST', '/-/accounts/v1/tenant', { Name: 'Tenant <b>' })
  const gateway = (secretKey: string) => logsIn(server.gateway, { accessKey: 'tenant', secretKey })
  t.ok(await gateway(SecretKey))
  t.match(await call('POST', '/-/accounts/v1/tenant'), { status: 409, Code: 'EntityAlreadyExists', Message: /already/ })
  const tenant = await add('tenant-key', { AccountAccessKey: 'tenant', All: true })
  for (let i = 0; i < 8; i++)
    t.equal((await request(tenant, { method: 'GET', target: '/' })).status, 200, 'every worker knows it')
  t.equal((await request(tenant, { method: 'PUT', target: '/of-tenant' })).status, 200)
  t.equal((await call('POST', '/-/keys/v1/tenant-key/rights', { All: true })).status, 200)
  t.match((await request(tenant, { method: 'GET', target: '/' })).body.toString(), '>of-tenant<', 'it acts as before')
  const withBucket = await call('POST', '/-/accounts/v1/tenant/remove')
  t.match(withBucket, { status: 400, Code: 'InvalidRequest', Message: /bucket/ })
  const quota = (json: object, who = owner) => call('POST', '/-/accounts/v1/tenant/quota', json, who)
  const bounded = { Quota: { Bytes: 4, Objects: 9 }, Stored: { Bytes: 0, Objects: 0 } }
  t.match(await quota({ Bytes: 4, Objects: 9, Uploads: 2 }), { status: 200, AccessKey: 'tenant', ...bounded })
  t.strictSame((await quota({ Uploads: null })).Quota, bounded.Quota, 'what is absent stays')
  t.match(await quota({ Bytes: null }, { accessKey: 'tenant-key', secretKey: tenant.secretKey }), { status: 403 })
  t.match(await call('POST', '/-/accounts/v1/none/quota'), { status: 404, Code: 'NoSuchEntity' })
  const put = (body: string) => request(tenant, { method: 'PUT', target: '/of-tenant/a', body: Buffer.from(body) })
  t.same([(await put('12345')).status, (await put('123')).status], [403, 200], 'a running gateway follows')
  t.equal((await request(tenant, { method: 'DELETE', target: '/of-tenant/a' })).status, 204)
  t.equal((await call('POST', '/-/gateway/v1/credentials/rotate', {}, tenant)).status, 501, 'with workers')
  const { status, SecretKey: next, Keys } = await call('POST', '/-/accounts/v1/tenant/rotate')
  t.same([status, Keys], [200, ['tenant-key']])
  t.same([await gateway(SecretKey), await gateway(next)], [false, true])
  t.equal((await request(tenant, { method: 'DELETE', target: '/of-tenant' })).status, 204, 'its key pair goes on')
  const listed = await call('GET', '/-/accounts/v1')
  const shown = listed.Accounts.find(({ AccessKey }: { AccessKey: string }) => AccessKey === 'tenant')
  t.match(shown, { Name: 'Tenant <b>', Own: false, Buckets: 0, ...bounded })
  t.notMatch(JSON.stringify(listed), next)
  t.match(await call('POST', '/-/accounts/v1/tenant/remove'), { status: 200, Keys: ['tenant-key'] })
  t.match(await call('POST', '/-/accounts/v1/tenant/remove'), { status: 404, Code: 'NoSuchEntity' })
  t.match(await call('POST', '/-/accounts/v1/tenant/rotate'), { status: 404, Code: 'NoSuchEntity' })
  t.match(
    await call('POST', '/-/accounts/v1/tenant'),
    { status: 409, Code: 'EntityAlreadyExists', Message: /tenant-key/ },
    'its key pairs would become those of another account',
  )
  t.match(await call('POST', '/-/reload'), { status: 200 })

  const changes = async (query = '', who = owner) => call('GET', `/-/changes/v1${query}`, undefined, who)
  const first = await changes('?max-items=7')
  t.same(
    first.Changes.map(({ Action, Resource }: Record<string, string>) => [Action, Resource]),
    [
      ['Reload', undefined],
      ['RemoveAccount', 'tenant'],
      ['RotateAccount', 'tenant'],
      ['SetAccountQuota', 'tenant'],
      ['SetAccountQuota', 'tenant'],
      ['SetKeyRights', 'tenant-key'],
      ['AddKey', 'tenant-key'],
    ],
    'what was refused has changed nothing',
  )
  t.match(first.Changes[1], { AccessKeyId: owner.accessKey, Time: /^20.*Z$/, Address: /127\.0\.0\.1/, RequestId: /./ })
  const rest = await changes(`?continuation-token=${first.NextContinuationToken}&max-items=4`)
  t.match(first.Changes[3].Details, 'bytes:4 objects:9 uploads:2 → bytes:4 objects:9 uploads:none')
  t.match(rest, { IsTruncated: false, Changes: [{ Action: 'AddAccount', Resource: 'tenant' }] })
  t.match((await changes('?of=buckets')).Changes, [
    { Action: 'DeleteBucket', AccessKeyId: 'tenant-key', Resource: 'of-tenant' },
    { Action: 'CreateBucket', Resource: 'of-tenant' },
  ])
  for (const secret of [SecretKey, next, tenant.secretKey, server.secretKey])
    t.notMatch(JSON.stringify([first, rest]), secret)
  t.equal(first.Changes[6].Details, 'all')
  const Rights = [{ Bucket: 'photos', Access: 'read' }]
  await call('POST', '/-/keys/v1/tenant-key/rights', { Rights, Actions: ['pay:*'] })
  t.match((await changes()).Changes[0], { Action: 'SetKeyRights', Details: 'all → read:photos pay:*' })
  t.match(await changes('?continuation-token=no'), { status: 400 })
  t.match(await changes('', await add('reader', { Rights: [{ Bucket: '*', Access: 'read' }] })), { status: 403 })
  await runCli(['keys', 'remove', 'reader', '--data', server.data])
  t.match(await call('GET', '/-/keys/v1'), { Keys: [{ AccessKeyId: 'tenant-key' }] })
})

t.test('a rotation names the jobs of the key pair, and ends them where that is asked for', async (t) => {
  const server = await startDealgate(t)
  const { owner, request, call, add } = callsOf(server)
  await request(owner, { method: 'PUT', target: '/photos' })
  const worker = await add('worker')
  const order = { Operation: 'Delete', ConfirmationRequired: true, Filter: { Bucket: 'photos' } }
  const { JobId } = await call('POST', '/-/batch/v1?format=json', order, worker)
  const rotate = (json: object) => call('POST', '/-/keys/v1/worker/rotate', json)
  t.match(await rotate({}), { status: 200, JobsGoingOn: [JobId], JobsEnded: { length: 0 } })
  t.match(await rotate({ EndJobs: true }), { status: 200, JobsGoingOn: { length: 0 }, JobsEnded: [JobId] })
  await until(
    'the job is cancelled',
    async () => (await call('GET', `/-/jobs/v1/${JobId}?format=json`)).Status === 'Cancelled',
  )
  t.match(await rotate({ EndJobs: true }), { JobsGoingOn: { length: 0 }, JobsEnded: { length: 0 } })
})
