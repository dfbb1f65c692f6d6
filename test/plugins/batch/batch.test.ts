import t from 'tap'
import { Between } from '../../support/gateway/between.js'
import { batch, done, endpointOf, keysOf, reaches, reportOf } from '../../support/plugins/batch-scene.js'
import { startInProcess } from '../../support/server/in-process.js'
import { ask } from '../../support/server/many-deaths.js'
import { until } from '../../support/waiting.js'

t.test('objects of a manifest and of a filter are deleted, tagged and copied, with reports', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  const { s3 } = server
  for (const Bucket of ['things', 'others', 'reports']) await s3.createBucket({ Bucket })
  const put = (Key: string, Tagging?: string) =>
    s3.putObject({ Bucket: 'things', Key, Body: Key, ...(Tagging && { Tagging }) })
  const odd = 'a/ü + 100% "x",\n.txt'
  await put('a/1.txt', 'kind=old')
  await put('a/2.log')
  await put('b/3.txt')
  await put(odd)

  const copied = await done(at, {
    Operation: 'Copy',
    Copy: { TargetBucket: 'others', TargetPrefix: 'copy/', Tags: [{ Key: 'k', Value: 'v w' }] },
    Filter: { Bucket: 'things', Prefixes: ['a/'], Suffixes: ['.txt'] },
    Report: { Bucket: 'reports', Prefix: 'r/' },
    Description: 'the texts',
    Tags: [{ Key: 'team', Value: 'x' }],
  })
  t.match(copied, { Status: 'Complete', TotalNumberOfTasks: 2, NumberOfTasksSucceeded: 2, NumberOfTasksFailed: 0 })
  t.match(copied, { Description: 'the texts', Tags: [{ Key: 'team', Value: 'x' }] })
  t.same(await keysOf(s3, 'others'), [`copy/${odd}`, 'copy/a/1.txt'].sort())
  const { TagSet } = await s3.getObjectTagging({ Bucket: 'others', Key: 'copy/a/1.txt' })
  t.same(TagSet, [{ Key: 'k', Value: 'v w' }])
  const { manifest, lines } = await reportOf(s3, copied.Report)
  t.equal(copied.Report.Key, `r/job-${copied.JobId}/manifest.json`)
  t.match(manifest, { Format: 'Report_CSV_20180820', Summary: { TotalNumberOfTasks: 2, NumberOfTasksFailed: 0 } })
  t.same(lines.sort(), [
    'things,a/%C3%BC%20%2B%20100%25%20%22x%22%2C%0A.txt,,succeeded,200,,',
    'things,a/1.txt,,succeeded,200,,',
  ])

  const body = `things,a/1.txt\r\nthings,${encodeURIComponent(odd)}\n"things","none"`
  const { ETag } = await s3.putObject({ Bucket: 'reports', Key: 'rows.csv', Body: body })
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'reports', Key: 'rows.csv', ETag }
  const tagged = await done(at, {
    ...{ Operation: 'Tag', Tag: { Tags: [{ Key: 'new', Value: '1' }] }, Manifest },
    Report: { Bucket: 'reports', Scope: 'FailedTasksOnly' },
  })
  t.match(tagged, { Status: 'Complete', TotalNumberOfTasks: 3, NumberOfTasksSucceeded: 2, NumberOfTasksFailed: 1 })
  t.match(tagged.Failures, [{ Bucket: 'things', Key: 'none', ErrorCode: 'NoSuchKey' }])
  t.match((await reportOf(s3, tagged.Report)).lines, [/^things,none,,failed,404,NoSuchKey,/])
  const tags = async (Key: string) => (await s3.getObjectTagging({ Bucket: 'things', Key })).TagSet
  t.same(await tags('a/1.txt'), [
    { Key: 'kind', Value: 'old' },
    { Key: 'new', Value: '1' },
  ])
  const untagged = await done(at, {
    ...{ Operation: 'Untag', Untag: { TagKeys: ['kind'] } },
    Filter: { Bucket: 'things', Tags: [{ Key: 'kind' }] },
  })
  t.match(untagged, { Status: 'Complete', NumberOfTasksSucceeded: 1 })
  t.same(await tags('a/1.txt'), [{ Key: 'new', Value: '1' }])

  const tried = await done(at, { Operation: 'Delete', DryRun: true, Filter: { Bucket: 'things', Prefixes: ['a/'] } })
  t.match(tried, { Status: 'Complete', TotalNumberOfTasks: 3, NumberOfTasksSucceeded: 0 })
  t.equal(tried.Bytes, Buffer.byteLength(`a/1.txta/2.log${odd}`))
  t.equal((await keysOf(s3, 'things')).length, 4)

  const order = {
    Operation: 'Delete',
    ConfirmationRequired: true,
    Filter: { Bucket: 'things', Prefixes: ['a/', 'a/1'] },
  }
  const waiting = await done(at, order, ['Suspended'])
  t.match(waiting, { TotalNumberOfTasks: 3, NumberOfTasksSucceeded: 0 })
  await batch(at, 'POST', `/${waiting.JobId}/run`)
  t.match(await reaches(at, waiting.JobId), { Status: 'Complete', NumberOfTasksSucceeded: 3 })
  t.same(await keysOf(s3, 'things'), ['b/3.txt'])
})

t.test('a manifest that is not what was ordered fails the job before a task is tried', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  const { s3 } = server
  await s3.createBucket({ Bucket: 'things' })
  await s3.putObject({ Bucket: 'things', Key: 'a', Body: 'a' })
  const fails = async (Body: string, Fields: readonly string[] | undefined, why: RegExp, ETag?: string) => {
    await s3.putObject({ Bucket: 'things', Key: 'm.csv', Body })
    const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'things', Key: 'm.csv', Fields, ETag }
    // One signature is one job, and lasts a second.
    const job = await done(at, { Operation: 'Delete', Description: Body, Manifest, Report: { Bucket: 'things' } })
    t.match(job, { Status: 'Failed', NumberOfTasksSucceeded: 0 })
    t.match(job.FailureReasons[0].FailureReason, why)
  }
  await fails('Bucket,Key\nthings,a\n', undefined, /line of names/)
  await fails('things,a\nthings,a,b\n', undefined, /m.csv, after line 1: a line has more than 2 fields/)
  await fails('things,%E4\n', undefined, /line 1 of m.csv is not percent-encoded UTF-8/)
  const { JobId } = (await batch(at, 'GET')).json.Jobs[0]
  await s3.putObject({ Bucket: 'things', Key: 'm.csv', Body: 'things,none\n' })
  t.equal((await ask(at, 'POST', `/-/jobs/v1/${JobId}/retry`)).status, 200)
  t.match((await reaches(at, JobId, ['Failed'])).FailureReasons, [{ FailureReason: /pre-conditions/ }], 'run again')
  await s3.putObject({ Bucket: 'things', Key: 'm.csv', Body: 'things,%E4\n' })
  // Another signature, also within the same second.
  const headers = { 'x-amz-client-token': 'again' }
  t.equal(
    (await ask(at, 'POST', `/-/jobs/v1/${JobId}/retry`, { headers })).status,
    200,
    'the manifest of its first run',
  )
  t.match((await reaches(at, JobId, ['Failed'])).FailureReasons, [{ FailureReason: /percent-encoded/ }])
  await fails('things,a,\n', ['Bucket', 'Key', 'VersionId'], /lacks its version id/)
  await fails('things,"a\n', undefined, /does not end/)
  await fails('things,a\n', undefined, /pre-conditions/, '"0123"')
  t.same(await keysOf(s3, 'things'), ['a', 'm.csv'], 'no job has tried a task')
  const refused = await batch(at, 'POST', '', { Operation: 'Delete', Filter: { Bucket: 'things' }, Tag: { Tags: [] } })
  t.match(refused, { status: 400, json: { Code: 'InvalidArgument', Message: /leave out Tag/ } })
  const neither = await batch(at, 'POST', '', { Operation: 'Delete' })
  t.match(neither, { status: 400, json: { Code: 'InvalidArgument' } })
})

t.test('rows name only what a request of a client may name', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  await server.s3.createBucket({ Bucket: 'things' })
  const Body = `things/a,b\nthings,${'k'.repeat(1025)}\n`
  await server.s3.putObject({ Bucket: 'things', Key: 'm.csv', Body })
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'things', Key: 'm.csv' }
  const { Failures } = await done(at, { Operation: 'Delete', Manifest })
  const codes = Failures.map(({ ErrorCode }: { readonly ErrorCode: string }) => ErrorCode)
  t.same(codes, ['InvalidBucketName', 'KeyTooLongError'])
})

t.test('noncurrent versions are deleted, and the current one stays', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3 } = server
  const Bucket = 'things'
  await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  for (const Body of ['1', '2', '3']) await s3.putObject({ Bucket, Key: 'a b', Body })
  const job = await done(endpointOf(server), { Operation: 'Delete', Filter: { Bucket, Versions: 'Noncurrent' } })
  t.match(job, { Status: 'Complete', NumberOfTasksSucceeded: 2, NumberOfTasksFailed: 0 })
  const { Versions } = await s3.listObjectVersions({ Bucket })
  t.match(Versions, [{ Key: 'a b', IsLatest: true }])
})

t.test('jobs whose tasks take long keep no other one from its end', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3 } = server
  const between = await Between.start(t, server.gateway)
  await server.restart({ gateway: { url: between.url, account: server.gateway.account } })
  const at = endpointOf(server)
  const Bucket = 'things'
  await s3.createBucket({ Bucket })
  for (const Key of ['slow/1', 'slow/2', 'slow/3', 'slow/4', 'b']) await s3.putObject({ Bucket, Key, Body: 'x' })
  const slow = { Operation: 'Checksum', Priority: 9, Filter: { Bucket, Prefixes: ['slow/'] } }
  let open = () => {}
  const opened = new Promise<'pass'>((resolve) => {
    open = () => resolve('pass')
  })
  let held = 0
  between.fate = ({ method, path }) => {
    if (method !== 'GET' || !path.includes('slow')) return 'pass'
    held++
    return opened
  }
  // They have all turns that there are.
  const jobs: string[] = []
  for (const Description of ['1', '2', '3', '4'])
    jobs.push((await batch(at, 'POST', '', { ...slow, Description })).json.JobId)
  await until('no turn is left', async () => held === 16)
  const fast = await done(at, { Operation: 'Checksum', Filter: { Bucket, Prefixes: ['b'] } })
  t.match(fast, { Status: 'Complete', NumberOfTasksSucceeded: 1 })
  for (const id of jobs) {
    const { json } = await batch(at, 'GET', `/${id}`)
    t.match(json, { Status: 'Active', NumberOfTasksSucceeded: 0 })
  }
  open()
  for (const id of jobs) t.match(await reaches(at, id), { Status: 'Complete', NumberOfTasksSucceeded: 4 })
})
