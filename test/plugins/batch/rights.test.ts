import t, { type Test } from 'tap'
import { startInProcess } from '../../support/server/in-process.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'

const OWNER = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const TENANT = { accessKeyId: 'tenant-key', secretAccessKey: 'tenant-secret' }

type Keys = typeof OWNER

async function start(t: Test, options: Parameters<typeof startInProcess>[2] = {}) {
  const server = await startInProcess(t, 'full', { identities: [OWNER], ...options })
  const { endpoint, s3 } = server
  await s3.createBucket({ Bucket: 'things' })
  const call = async (
    keys: Keys,
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const answer = await signedCall(endpoint, keys, method, `${path}?format=json`, { body, headers })
    return { status: answer.status, code: answer.code, json: JSON.parse(answer.body) }
  }
  /** A session of the key pair that may make the calls of jobs, and what the statements allow. */
  const session = async (...Statement: readonly object[]): Promise<Keys> => {
    const calls = { Effect: 'Allow', Action: ['batch:*'], Resource: '*' }
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [calls, ...Statement] })
    const body = new URLSearchParams({ Action: 'GetSessionToken', Version: '2011-06-15', Policy }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await signedCall(endpoint, OWNER, 'POST', '/', { body, headers })
    const member = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(answer.body)?.[1] ?? ''
    const sessionToken = member('SessionToken')
    const keys = { accessKeyId: member('AccessKeyId'), secretAccessKey: member('SecretAccessKey'), sessionToken }
    t.not(sessionToken, '', answer.body)
    return keys
  }
  const reaches = (id: string, ...states: readonly string[]) =>
    until(`the job is ${states.join(' or ')}`, async () => {
      const { json } = await call(OWNER, 'GET', `/-/batch/v1/${id}`)
      return states.includes(json.Status) && json
    })
  let orders = 0
  const order = async (body: object, ...states: readonly string[]) => {
    const made = await call(OWNER, 'POST', '/-/batch/v1', body, { 'x-amz-client-token': `order-${orders++}` })
    t.equal(made.status, 202, JSON.stringify(made.json))
    await reaches(made.json.JobId, ...states)
    return made.json.JobId as string
  }
  const control = (keys: Keys, id: string, query: string) =>
    signedCall(endpoint, keys, 'POST', `/v20180820/jobs/${id}/${query}`, {
      headers: { 'x-amz-account-id': '111122223333' },
    })
  const put = async (...keys: readonly string[]) => {
    for (const Key of keys) await s3.putObject({ Bucket: 'things', Key, Body: 'x' })
  }
  const keysOf = async () => (await s3.listObjectsV2({ Bucket: 'things' })).Contents?.map(({ Key }) => Key) ?? []
  return { ...server, call, session, reaches, order, control, put, keysOf }
}

const READS = { Effect: 'Allow', Action: ['s3:GetObject', 's3:ListBucket'], Resource: '*' }
const deletes = (...prefixes: readonly string[]) => ({
  ...{ Effect: 'Allow', Action: ['s3:DeleteObject', 's3:PutObject'] },
  Resource: prefixes.map((prefix) => `arn:aws:s3:::things/${prefix}*`),
})
const DELETE_A = { Operation: 'Delete', ConfirmationRequired: true, Filter: { Bucket: 'things', Prefixes: ['a/'] } }

t.test('a session wakes only jobs whose rights it holds', async (t) => {
  const { call, session, order, control, put, keysOf, reaches } = await start(t)
  await put('a/1', 'a/2', 'b/1')
  // `s3:UpdateJobStatus` and all other actions, except those of the tasks.
  const others = { Effect: 'Allow', NotAction: ['s3:DeleteObject', 's3:PutObject'], Resource: '*' }
  const narrow = await session(READS, others)
  const id = await order(DELETE_A, 'Suspended')
  t.match(await call(narrow, 'GET', `/-/batch/v1/${id}`), { status: 200 }, 'it sees the job')
  t.match(await call(narrow, 'POST', `/-/batch/v1/${id}/run`), { status: 403, json: { Code: 'AccessDenied' } })
  t.match(await call(narrow, 'POST', `/-/batch/v1/${id}/priority`, { Priority: 9 }), { status: 403 })
  t.equal((await control(narrow, id, 'status?requestedJobStatus=Ready')).status, 403)
  t.equal((await control(narrow, id, 'priority?priority=9')).status, 403)
  t.match(await call(narrow, 'POST', `/-/batch/v1/${id}/pause`), { status: 200 }, 'to stop a job takes no right of it')
  t.match(await call(narrow, 'POST', `/-/batch/v1/${id}/resume`), { status: 403 })
  t.match(
    await call(await session(READS, deletes('b/')), 'POST', `/-/batch/v1/${id}/run`),
    { status: 403 },
    'elsewhere',
  )
  t.same(await keysOf(), ['a/1', 'a/2', 'b/1'])
  const wide = await session(READS, deletes('a/'))
  t.match(await call(wide, 'POST', `/-/batch/v1/${id}/resume`), { status: 200 })
  t.match(await call(wide, 'POST', `/-/batch/v1/${id}/run`), { status: 200 })
  t.match(await reaches(id, 'Complete'), { NumberOfTasksSucceeded: 2 })
  t.same(await keysOf(), ['b/1'])

  const report = { ...DELETE_A, Report: { Bucket: 'things', Prefix: 'reports' } }
  await put('a/1')
  const reporting = await order(report, 'Suspended')
  t.match(await call(wide, 'POST', `/-/batch/v1/${reporting}/run`), { status: 403 }, 'the report is written, too')
  const both = await session(READS, deletes('a/', 'reports/'))
  t.match(await call(both, 'POST', `/-/batch/v1/${reporting}/run`), { status: 200 })
  t.match(await reaches(reporting, 'Complete'), { NumberOfTasksSucceeded: 1 })
})

t.test('policies decide about each call of S3 Control', async (t) => {
  const { endpoint, session, order, control, put } = await start(t)
  await put('a/1')
  const id = await order(DELETE_A, 'Suspended')
  const wide = [READS, deletes('a/')]
  const account = { headers: { 'x-amz-account-id': '111122223333' } }
  const describe = (keys: Keys) => signedCall(endpoint, keys, 'GET', `/v20180820/jobs/${id}`, account)
  const ready = (keys: Keys) => control(keys, id, 'status?requestedJobStatus=Ready')
  const reader = await session(...wide, { Effect: 'Allow', Action: 's3:DescribeJob', Resource: '*' })
  t.equal((await describe(reader)).status, 200)
  t.equal((await ready(reader)).status, 403, 'it has not the action')
  const allowed = { Effect: 'Allow', Action: ['s3:UpdateJobStatus', 's3:UpdateJobPriority'], Resource: '*' }
  const denied = { Effect: 'Deny', Action: 's3:UpdateJobStatus', Resource: '*' }
  const refused = await session(...wide, allowed, denied)
  t.equal((await describe(refused)).status, 403)
  t.equal((await control(refused, id, 'priority?priority=9')).status, 200)
  t.equal((await ready(refused)).status, 403)
  t.equal((await ready(await session(...wide, allowed))).status, 200)
})

t.test('what is not known when a job is woken is decided for the session, too', async (t) => {
  const { call, session, order, put, s3, keysOf, reaches } = await start(t)
  await put('b/last')
  const keys = [...Array.from({ length: 100 }, (_, at) => `a/${at}`), 'b/last']
  await s3.putObject({ Bucket: 'things', Key: 'm.csv', Body: keys.map((key) => `things,${key}\n`).join('') })
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'things', Key: 'm.csv' }
  const id = await order({ Operation: 'Delete', ConfirmationRequired: true, Manifest }, 'Suspended')
  t.match(await call(await session(deletes('a/')), 'POST', `/-/batch/v1/${id}/run`), { status: 200 })
  t.match(await reaches(id, 'Complete'), {
    NumberOfTasksSucceeded: 100,
    Failures: [{ Key: 'b/last', ErrorCode: 'AccessDenied' }],
  })
  t.same(await keysOf(), ['b/last', 'm.csv'])
})

t.test('a session runs a failed job again only with the rights of the job', async (t) => {
  const { call, session, order, put, s3, keysOf, reaches } = await start(t)
  await put('a/1')
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'things', Key: 'm.csv' }
  const id = await order({ Operation: 'Delete', Manifest }, 'Failed')
  await s3.putObject({ Bucket: 'things', Key: 'm.csv', Body: 'things,a/1\n' })
  const calls = { Effect: 'Allow', Action: ['batch:*', 'jobs:*'], Resource: '*' }
  const retry = `/-/jobs/v1/${id}/retry`
  t.match(await call(await session(calls), 'POST', retry), { status: 403 }, 'it may not read the manifest')
  const reader = await session(calls, READS)
  t.match(await call(reader, 'POST', retry), { status: 200 })
  t.match(await reaches(id, 'Complete'), { NumberOfTasksSucceeded: 0, Failures: [{ ErrorCode: 'AccessDenied' }] })
  t.same(await keysOf(), ['a/1', 'm.csv'], 'the policy of the session limits the job from then on')
})

t.test('the address of who wakes a job counts', async (t) => {
  const { call, order, put, s3, keysOf } = await start(t, { trustedProxies: ['127.0.0.1'] })
  await put('a/1')
  const Statement = [
    {
      ...{ Effect: 'Deny', Principal: '*', Action: 's3:DeleteObject', Resource: 'arn:aws:s3:::things/*' },
      Condition: { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } },
    },
  ]
  await s3.putBucketPolicy({ Bucket: 'things', Policy: JSON.stringify({ Version: '2012-10-17', Statement }) })
  const id = await order(DELETE_A, 'Suspended')
  const from = { 'x-forwarded-for': '192.0.2.7' }
  t.match(await call(OWNER, 'POST', `/-/batch/v1/${id}/run`, undefined, from), { status: 403 })
  t.same(await keysOf(), ['a/1'])
})

t.test('a key pair of another account does not wake a job', async (t) => {
  const account = { accessKey: 'tenant', secretKey: 'tenant-secret-of-the-gateway' }
  const { call, put } = await start(t, { identities: [OWNER, { ...TENANT, account }] })
  await put('a/1')
  const made = await call(TENANT, 'POST', '/-/batch/v1', { ...DELETE_A, DryRun: true })
  t.equal(made.status, 202)
  t.equal((await call(TENANT, 'POST', `/-/jobs/v1/${made.json.JobId}/cancel`)).status, 200)
  await until('the job is cancelled', async () => {
    const { json } = await call(OWNER, 'GET', `/-/jobs/v1/${made.json.JobId}`)
    return json.Status === 'Cancelled'
  })
  t.match(await call(OWNER, 'POST', `/-/jobs/v1/${made.json.JobId}/retry`), {
    status: 403,
    json: { Message: /another account/ },
  })
})
