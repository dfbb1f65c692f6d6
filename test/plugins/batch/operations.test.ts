import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { batch, done, endpointOf, keysOf, reaches, reportOf } from '../../support/plugins/batch-scene.js'
import { configure, inventory } from '../../support/plugins/inventory-scene.js'
import { startInProcess } from '../../support/server/in-process.js'

t.test('locks, ACLs, encryption and checksums', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  const { s3 } = server
  const Bucket = 'locked'
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true, ObjectOwnership: 'ObjectWriter' })
  for (const Key of ['a', 'b'])
    await s3.putObject({ Bucket, Key, Body: `content of ${Key}`, ChecksumAlgorithm: 'SHA256' })
  const Filter = { Bucket }
  const until = new Date(Math.floor(Date.now() / 1000) * 1000 + DAY_MS).toISOString()
  const complete = { Status: 'Complete', NumberOfTasksSucceeded: 2, NumberOfTasksFailed: 0 }
  t.match(
    await done(at, { Operation: 'Retain', Retain: { Mode: 'GOVERNANCE', RetainUntilDate: until }, Filter }),
    complete,
  )
  t.equal((await s3.getObjectRetention({ Bucket, Key: 'a' })).Retention?.RetainUntilDate?.toISOString(), until)
  t.match(await done(at, { Operation: 'LegalHold', LegalHold: { Status: 'ON' }, Filter }), complete)
  t.equal((await s3.getObjectLegalHold({ Bucket, Key: 'b' })).LegalHold?.Status, 'ON')
  const versions = { ...Filter, Versions: 'All' }
  const kept = await done(at, { Operation: 'Delete', Delete: { BypassGovernance: true }, Filter: versions })
  t.match(kept, { NumberOfTasksFailed: 2, Failures: [{ ErrorCode: 'AccessDenied' }, { ErrorCode: 'AccessDenied' }] })
  t.match(await done(at, { Operation: 'LegalHold', LegalHold: { Status: 'OFF' }, Filter }), complete)
  t.match(await done(at, { Operation: 'Acl', Acl: { CannedAcl: 'authenticated-read' }, Filter }), complete)
  t.equal((await s3.getObjectAcl({ Bucket, Key: 'a' })).Grants?.length, 2)
  t.match(await done(at, { Operation: 'Encrypt', Filter }), complete)
  t.equal((await s3.headObject({ Bucket, Key: 'a' })).ServerSideEncryption, 'AES256')
  t.match(await done(at, { Operation: 'Rewrap', Filter }), complete)
  const Report = { Bucket }
  const verified = await done(at, { Operation: 'Checksum', Checksum: { Algorithm: 'SHA256' }, Filter, Report })
  t.match(verified, complete)
  const { lines } = await reportOf(s3, verified.Report)
  const sha = createHash('sha256').update('content of a').digest('base64')
  t.ok(lines[0]?.startsWith(`locked,a,,succeeded,200,,"{""checksum_base64"":""${sha}""`))

  const gone = await done(at, { Operation: 'Delete', Delete: { BypassGovernance: true }, Filter: versions })
  t.match(gone, { Status: 'Complete', NumberOfTasksFailed: 0 })
  t.same(await keysOf(s3, Bucket), [])
})

t.test('a copy onto a folder that exists has what it copies, where all folders look alike', async (t) => {
  const server = await startInProcess(t, 'legacy')
  const { s3 } = server
  for (const Bucket of ['from', 'onto']) {
    await s3.createBucket({ Bucket })
    await s3.putObject({ Bucket, Key: 'folder/', Metadata: { of: Bucket } })
  }
  const copied = await done(endpointOf(server), {
    Operation: 'Copy',
    Copy: { TargetBucket: 'onto' },
    Filter: { Bucket: 'from' },
  })
  t.match(copied, { Status: 'Complete', NumberOfTasksSucceeded: 1 })
  t.same((await s3.headObject({ Bucket: 'onto', Key: 'folder/' })).Metadata, { of: 'from' })
})

t.test('an inventory is a manifest', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  const { s3 } = server
  for (const Bucket of ['source', 'reports']) await s3.createBucket({ Bucket })
  for (const Key of ['a b+c%d', 'e/"f"', 'ü']) await s3.putObject({ Bucket: 'source', Key, Body: 'x' })
  await configure(s3, 'all', { fields: ['Size', 'ETag'] })
  const { Manifest: Key } = await inventory(server.endpoint, 'all')
  const { ETag } = await s3.headObject({ Bucket: 'reports', Key })
  const Manifest = { Format: 'S3InventoryReport_CSV_20161130', Bucket: 'reports', Key, ETag }
  const job = await done(at, { Operation: 'Delete', Manifest })
  t.match(job, { Status: 'Complete', TotalNumberOfTasks: 3, NumberOfTasksSucceeded: 3 })
  t.same(await keysOf(s3, 'source'), [])
})

t.test('rights are those of the moment, and a job whose tasks fail ends', async (t) => {
  const own = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
  const rights = [
    { bucket: 'things', access: 'readwrite' },
    { bucket: 'admin', access: 'readwrite' },
  ] as const
  const other = { accessKeyId: 'other', secretAccessKey: 'other-secret', rights, actions: ['batch:*'] }
  const server = await startInProcess(t, 'full', { identities: [own, other], standard: { batch: { rate: 100_000 } } })
  const { s3 } = server
  const at = endpointOf(server, 'other', 'other-secret')
  for (const Bucket of ['things', 'admin', 'private']) await s3.createBucket({ Bucket })
  for (const Key of ['a', 'b']) await s3.putObject({ Bucket: 'things', Key, Body: 'x' })
  await s3.putObject({ Bucket: 'private', Key: 'a', Body: 'x' })
  await s3.putObject({ Bucket: 'admin', Key: 'm', Body: 'private,a\nthings,a\n' })
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'admin', Key: 'm' }
  const mixed = await done(at, { Operation: 'Delete', Manifest })
  t.match(mixed, { NumberOfTasksSucceeded: 1, NumberOfTasksFailed: 1, Failures: [{ ErrorCode: 'AccessDenied' }] })
  t.same(await keysOf(s3, 'private'), ['a'])
  t.equal((await batch(endpointOf(server), 'GET', `/${mixed.JobId}`)).status, 200)
  const mine = await done(endpointOf(server), { Operation: 'Checksum', Filter: { Bucket: 'things' } })
  t.equal((await batch(at, 'GET', `/${mine.JobId}`)).json.Code, 'NoSuchJob', 'a job of another key pair')

  const order = { Operation: 'Delete', ConfirmationRequired: true, Filter: { Bucket: 'things' } }
  const waiting = await done(at, order, ['Suspended'])
  await server.restart({ identities: [own, { ...other, rights: rights.slice(1) }] })
  t.equal(
    (await batch(at, 'POST', `/${waiting.JobId}/run`)).json.Code,
    'AccessDenied',
    'who lacks the rights of the job',
  )
  t.equal((await batch(endpointOf(server), 'POST', `/${waiting.JobId}/run`)).status, 200)
  t.match(await reaches(at, waiting.JobId), { Status: 'Complete', Failures: [{ ErrorCode: 'AccessDenied' }] })
  t.same(await keysOf(s3, 'things'), ['b'], 'the right was taken away meanwhile')

  const rows = Array.from({ length: 1200 }, (_, at) => `things,missing/${at}\n`).join('')
  await s3.putObject({ Bucket: 'admin', Key: 'm', Body: rows })
  await server.restart()
  const failed = await done(at, { Operation: 'Untag', Manifest, Report: { Bucket: 'admin', Prefix: 'r' } })
  t.match(failed, {
    Status: 'Failed',
    FailureReasons: [{ FailureCode: 'TooManyFailedTasks' }],
    NumberOfTasksFailed: 1000,
  })
  const { manifest, lines } = await reportOf(s3, failed.Report)
  t.equal(lines.length, 1000)
  t.match(manifest.Summary, { TotalNumberOfTasks: 1200, NumberOfTasksFailed: 1000 })
})

t.test('jobs pause, go on, end and wait for those of a higher priority', async (t) => {
  const server = await startInProcess(t, 'full')
  const at = endpointOf(server)
  const { s3 } = server
  for (const Bucket of ['things', 'admin']) await s3.createBucket({ Bucket })
  await s3.putObject({ Bucket: 'things', Key: 'a', Body: 'x' })
  const rows = (count: number) => s3.putObject({ Bucket: 'admin', Key: 'm', Body: 'things,a\n'.repeat(count) })
  await rows(400)
  const Manifest = { Format: 'S3BatchOperations_CSV_20180820', Bucket: 'admin', Key: 'm' }
  const slow = { Operation: 'Checksum', Manifest, RequestsPerSecond: 20, Report: { Bucket: 'admin' } }
  const { json } = await batch(at, 'POST', '', slow)
  const begun = async () => (await batch(at, 'GET', `/${json.JobId}`)).json.NumberOfTasksSucceeded > 0
  while (!(await begun()));
  await batch(at, 'POST', `/${json.JobId}/pause`)
  const paused = await reaches(at, json.JobId, ['Paused'])
  t.ok(paused.NumberOfTasksSucceeded < 400)
  await server.restart()
  t.match((await batch(at, 'GET', `/${json.JobId}`)).json, { Status: 'Paused' })
  t.equal((await batch(at, 'POST', `/${json.JobId}/priority`, { Priority: 7 })).json.Priority, 7)
  await batch(at, 'POST', `/${json.JobId}/resume`)
  await reaches(at, json.JobId, ['Active'])
  await batch(at, 'POST', `/${json.JobId}/cancel`)
  const cancelled = await reaches(at, json.JobId)
  t.match(cancelled, { Status: 'Cancelled', NumberOfTasksFailed: 0 })
  const { lines } = await reportOf(s3, cancelled.Report)
  t.equal(lines.length, cancelled.NumberOfTasksSucceeded)
  t.ok(lines.length >= paused.NumberOfTasksSucceeded && lines.length < 400)
  const again = await batch(at, 'POST', `/${json.JobId}/pause`)
  t.match(again, { status: 400, json: { Code: 'JobStatusException' } })
  const once = { 'x-amz-client-token': 'one' }
  const first = await batch(at, 'POST', '', slow, once)
  t.equal((await batch(at, 'POST', '', slow, once)).json.JobId, first.json.JobId)
  t.equal((await batch(at, 'POST', '', { ...slow, Priority: 3 }, once)).json.Code, 'IdempotencyParameterMismatch')
  t.equal((await batch(at, 'GET')).json.Jobs.length, 2)

  // What it asks for is the same, though the times that it means are others by then.
  const Filter = { Bucket: 'things', OlderThanDays: 2, NewerThanDays: 5, DealEndsWithinDays: 3 }
  const old = { Operation: 'Delete', DryRun: true, Filter }
  const token = { 'x-amz-client-token': 'two' }
  const { JobId } = (await batch(at, 'POST', '', old, token)).json
  await sleep(2)
  t.equal((await batch(at, 'POST', '', old, token)).json.JobId, JobId)
  const other = { ...old, Filter: { ...Filter, OlderThanDays: 3 } }
  t.equal((await batch(at, 'POST', '', other, token)).json.Code, 'IdempotencyParameterMismatch')
})
