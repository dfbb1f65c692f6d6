import type { S3 } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import { contentMd5 } from '../../../support/content/content.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'
import { until } from '../../../support/waiting.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'vault'
const ahead = (days: number) => new Date(Date.now() + days * DAY_MS)

/** A bucket with object lock. */
async function startVault(t: Parameters<typeof startInProcess>[0]) {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
    signedRequest(endpoint, keys, { method, path, ...more })
  /** Status and code of a document that is put. */
  const put = async (path: string, query: string, body: string, headers = contentMd5(body)) => {
    const { status, code } = await send('PUT', path, { query: { [query]: '' }, body, headers })
    return `${status} ${code}`
  }
  return { s3, send, put }
}

const locked = { name: 'AccessDenied', message: /object lock|neither shortened nor ended/ }
const versionOf = async (s3: S3, Key: string, Body = 'x') => (await s3.putObject({ Bucket, Key, Body })).VersionId

t.test('the configuration of a bucket', async (t) => {
  const { s3, send, put } = await startVault(t)
  t.equal((await s3.getBucketVersioning({ Bucket })).Status, 'Enabled')
  t.same((await s3.getObjectLockConfiguration({ Bucket })).ObjectLockConfiguration, { ObjectLockEnabled: 'Enabled' })
  await t.rejects(s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Suspended' } }), {
    name: 'InvalidBucketState',
    message: /An Object Lock configuration is present/,
    $metadata: { httpStatusCode: 409 },
  })
  const rule = (retention: string, enabled = 'Enabled') =>
    `<ObjectLockConfiguration><ObjectLockEnabled>${enabled}</ObjectLockEnabled><Rule><DefaultRetention>${retention}</DefaultRetention></Rule></ObjectLockConfiguration>`
  for (const [body, answer] of [
    [rule('<Mode>GOVERNANCE</Mode><Days>0</Days>'), '400 InvalidRetentionPeriod'],
    [rule('<Mode>GOVERNANCE</Mode><Days>-1</Days>'), '400 InvalidRetentionPeriod'],
    [rule('<Mode>GOVERNANCE</Mode><Days>36501</Days>'), '400 InvalidRetentionPeriod'],
    [rule('<Mode>GOVERNANCE</Mode><Years>0</Years>'), '400 InvalidRetentionPeriod'],
    [rule('<Mode>GOVERNANCE</Mode><Years>101</Years>'), '400 InvalidRetentionPeriod'],
    [rule('<Mode>GOVERNANCE</Mode><Days>1.5</Days>'), '400 MalformedXML'],
    [rule('<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>'), '400 MalformedXML'],
    [rule('<Mode>GOVERNANCE</Mode>'), '400 MalformedXML'],
    [rule('<Mode>governance</Mode><Days>1</Days>'), '400 MalformedXML'],
    [rule('<Days>1</Days>'), '400 MalformedXML'],
    [rule('<Mode>GOVERNANCE</Mode><Days>1</Days>', 'Disabled'), '400 MalformedXML'],
    ['<ObjectLockConfiguration/>', '400 MalformedXML'],
  ] as const)
    t.equal(await put(`/${Bucket}`, 'object-lock', body), answer, body)
  const days = rule('<Mode>COMPLIANCE</Mode><Days>3</Days>')
  t.equal((await send('PUT', `/${Bucket}`, { query: { 'object-lock': '' }, body: days })).code, 'InvalidRequest')
  t.equal(await put(`/${Bucket}`, 'object-lock', days), '200 ')
  t.same((await s3.getObjectLockConfiguration({ Bucket })).ObjectLockConfiguration, {
    ObjectLockEnabled: 'Enabled',
    Rule: { DefaultRetention: { Mode: 'COMPLIANCE', Days: 3 } },
  })

  const VersionId = await versionOf(s3, 'k')
  const { Retention } = await s3.getObjectRetention({ Bucket, Key: 'k' })
  t.equal(Retention?.Mode, 'COMPLIANCE', 'new objects get the default')
  t.ok(Math.abs(Number(Retention?.RetainUntilDate) - Number(ahead(3))) < 60_000)
  await t.rejects(s3.deleteObject({ Bucket, Key: 'k', VersionId }), locked)
  const own = { ObjectLockMode: 'GOVERNANCE', ObjectLockRetainUntilDate: ahead(1) } as const
  await s3.putObject({ Bucket, Key: 'own', Body: 'x', ...own })
  t.equal(
    (await s3.getObjectRetention({ Bucket, Key: 'own' })).Retention?.Mode,
    'GOVERNANCE',
    'what is asked for counts',
  )

  await s3.createBucket({ Bucket: 'plain' })
  const only = '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>'
  t.equal(await put('/plain', 'object-lock', only), '409 InvalidBucketState', 'not versioned')
  await t.rejects(s3.getObjectLockConfiguration({ Bucket: 'plain' }), { name: 'ObjectLockConfigurationNotFoundError' })
  await s3.putBucketVersioning({ Bucket: 'plain', VersioningConfiguration: { Status: 'Enabled' } })
  t.equal(await put('/plain', 'object-lock', only), '200 ')
  t.equal(
    (await s3.getObjectLockConfiguration({ Bucket: 'plain' })).ObjectLockConfiguration?.ObjectLockEnabled,
    'Enabled',
  )
  const again = async (headers: Record<string, string>, name = 'plain') =>
    (await send('PUT', `/${name}`, { headers })).status
  t.equal(await again({ 'x-amz-bucket-object-lock-enabled': 'true' }), 200, 'created again with what it has')
  await s3.createBucket({ Bucket: 'open' })
  t.equal(await again({ 'x-amz-bucket-object-lock-enabled': 'true' }, 'open'), 409)
  t.equal(await again({ 'x-amz-bucket-object-lock-enabled': 'maybe' }, 'open'), 400)
})

t.test('retention', async (t) => {
  const { s3, put } = await startVault(t)
  const retain = (Key: string, Mode: 'GOVERNANCE' | 'COMPLIANCE', days: number, bypass = false) =>
    s3.putObjectRetention({
      ...{ Bucket, Key, Retention: { Mode, RetainUntilDate: ahead(days) } },
      BypassGovernanceRetention: bypass,
    })

  t.test('GOVERNANCE is shortened and passed by with the header alone', async (t) => {
    const VersionId = await versionOf(s3, 'g')
    await retain('g', 'GOVERNANCE', 10)
    await retain('g', 'GOVERNANCE', 20)
    await t.rejects(retain('g', 'GOVERNANCE', 5), locked, 'not shortened')
    await t.rejects(s3.deleteObject({ Bucket, Key: 'g', VersionId }), locked)
    await retain('g', 'GOVERNANCE', 5, true)
    t.equal(await put(`/${Bucket}/g`, 'retention', '<Retention/>'), '403 AccessDenied')
    await s3.deleteObject({ Bucket, Key: 'g', VersionId, BypassGovernanceRetention: true })
    await t.rejects(s3.headObject({ Bucket, Key: 'g' }), { name: 'NotFound' })
  })

  t.test('COMPLIANCE is only extended', async (t) => {
    const VersionId = await versionOf(s3, 'c')
    await retain('c', 'GOVERNANCE', 1)
    await retain('c', 'COMPLIANCE', 10)
    await retain('c', 'COMPLIANCE', 20)
    for (const bypass of [false, true]) {
      await t.rejects(retain('c', 'COMPLIANCE', 5, bypass), locked, `shortened, bypass ${bypass}`)
      await t.rejects(retain('c', 'GOVERNANCE', 30, bypass), locked, `another mode, bypass ${bypass}`)
      await t.rejects(
        s3.deleteObject({ Bucket, Key: 'c', VersionId, BypassGovernanceRetention: bypass }),
        locked,
        `deleted, bypass ${bypass}`,
      )
      const { Errors } = await s3.deleteObjects({
        ...{ Bucket, Delete: { Objects: [{ Key: 'c', VersionId }] } },
        BypassGovernanceRetention: bypass,
      })
      t.match(Errors, [{ Key: 'c', VersionId, Code: 'AccessDenied' }])
    }
    t.ok((await s3.putObject({ Bucket, Key: 'c', Body: 'newer' })).VersionId, 'a locked object takes a new version')
    t.match(await s3.deleteObject({ Bucket, Key: 'c' }), { DeleteMarker: true }, 'and a delete marker')
    t.equal(await (await s3.getObject({ Bucket, Key: 'c', VersionId })).Body?.transformToString(), 'x')
    await t.rejects(s3.deleteBucket({ Bucket }), { name: 'BucketNotEmpty' })
  })

  t.test('headers of a write', async (t) => {
    const lock = { ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: ahead(2) } as const
    const { VersionId } = await s3.putObject({ Bucket, Key: 'h', Body: 'x', ...lock, ObjectLockLegalHoldStatus: 'ON' })
    const head = await s3.headObject({ Bucket, Key: 'h', VersionId })
    t.match(head, { ...lock, ObjectLockLegalHoldStatus: 'ON', VersionId })
    t.match(await s3.getObject({ Bucket, Key: 'h' }), { ObjectLockMode: 'COMPLIANCE' })
    await s3.copyObject({ Bucket, Key: 'copy', CopySource: `${Bucket}/h`, ...lock })
    t.match(await s3.headObject({ Bucket, Key: 'copy' }), lock)
    await s3.copyObject({ Bucket, Key: 'free', CopySource: `${Bucket}/h` })
    t.equal((await s3.headObject({ Bucket, Key: 'free' })).ObjectLockMode, undefined, 'a copy takes no lock along')
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'parts', ...lock })
    const part = { Bucket, Key: 'parts', UploadId }
    const { ETag } = await s3.uploadPart({ ...part, PartNumber: 1, Body: 'x' })
    await s3.completeMultipartUpload({ ...part, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } })
    t.match(await s3.headObject({ Bucket, Key: 'parts' }), lock)
    const until = lock.ObjectLockRetainUntilDate.toISOString()
    const Fields = { 'x-amz-object-lock-mode': 'COMPLIANCE', 'x-amz-object-lock-retain-until-date': until }
    const { url, fields } = await createPresignedPost(s3, { Bucket, Key: 'form', Fields })
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    form.append('file', new Blob(['by form']))
    const posted = await fetch(url, { method: 'POST', body: form })
    const byForm = posted.headers.get('x-amz-version-id') ?? ''
    t.match(await s3.headObject({ Bucket, Key: 'form', VersionId: byForm }), { ...lock, ContentLength: 7 })
    await s3.createBucket({ Bucket: 'free' })
    await t.rejects(s3.putObject({ Bucket: 'free', Key: 'h', Body: 'x', ...lock }), {
      name: 'InvalidRequest',
      message: 'Bucket is missing ObjectLockConfiguration',
    })
    await t.rejects(s3.headObject({ Bucket: 'free', Key: 'h' }), { name: 'NotFound' }, 'nothing was stored unlocked')
  })

  t.test('refusals', async (t) => {
    const VersionId = await versionOf(s3, 'r')
    for (const [contents, answer] of [
      ['<Mode>GOVERNANCE</Mode>', '400 MalformedXML'],
      ['<RetainUntilDate>2090-01-01T00:00:00Z</RetainUntilDate>', '400 MalformedXML'],
      ['<Mode>governance</Mode><RetainUntilDate>2090-01-01T00:00:00Z</RetainUntilDate>', '400 MalformedXML'],
      ['<Mode>GOVERNANCE</Mode><RetainUntilDate>2090-02-30T00:00:00Z</RetainUntilDate>', '400 MalformedXML'],
      ['<Mode>GOVERNANCE</Mode><RetainUntilDate>2090</RetainUntilDate>', '400 MalformedXML'],
      ['<Mode>GOVERNANCE</Mode><RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate>', '400 InvalidArgument'],
    ] as const)
      t.equal(await put(`/${Bucket}/r`, 'retention', `<Retention>${contents}</Retention>`), answer, contents)
    await t.rejects(s3.getObjectRetention({ Bucket, Key: 'r' }), { name: 'NoSuchObjectLockConfiguration' })
    await t.rejects(retain('absent', 'GOVERNANCE', 1), { name: 'NoSuchKey' })
    await s3.deleteObject({ Bucket, Key: 'r', VersionId })
    const Retention = { Mode: 'GOVERNANCE', RetainUntilDate: ahead(1) } as const
    await t.rejects(s3.putObjectRetention({ Bucket, Key: 'r', VersionId, Retention }), { name: 'NoSuchVersion' })
    await s3.createBucket({ Bucket: 'none' })
    await s3.putObject({ Bucket: 'none', Key: 'k', Body: 'x' })
    const missing = { name: 'InvalidRequest', message: 'Bucket is missing Object Lock Configuration' }
    await t.rejects(s3.putObjectRetention({ Bucket: 'none', Key: 'k', Retention }), missing)
    await t.rejects(s3.getObjectRetention({ Bucket: 'none', Key: 'k' }), missing)
    await t.rejects(s3.getObjectLegalHold({ Bucket: 'none', Key: 'k' }), missing)
  })
})

t.test('a legal hold keeps a version, whatever retention it has', async (t) => {
  const { s3, put } = await startVault(t)
  const VersionId = await versionOf(s3, 'k')
  t.equal((await s3.getObjectLegalHold({ Bucket, Key: 'k' })).LegalHold?.Status, 'OFF')
  const hold = (Status: 'ON' | 'OFF', version?: string) =>
    s3.putObjectLegalHold({ Bucket, Key: 'k', LegalHold: { Status }, VersionId: version })
  await hold('ON')
  t.equal((await s3.getObjectLegalHold({ Bucket, Key: 'k' })).LegalHold?.Status, 'ON')
  t.equal((await s3.headObject({ Bucket, Key: 'k' })).ObjectLockLegalHoldStatus, 'ON')
  for (const BypassGovernanceRetention of [false, true])
    await t.rejects(s3.deleteObject({ Bucket, Key: 'k', VersionId, BypassGovernanceRetention }), locked)
  const newer = await versionOf(s3, 'k', 'newer')
  await s3.deleteObject({ Bucket, Key: 'k', VersionId: newer })
  await hold('OFF', VersionId)
  t.equal((await s3.getObjectLegalHold({ Bucket, Key: 'k', VersionId })).LegalHold?.Status, 'OFF')
  for (const body of ['<LegalHold/>', '<LegalHold><Status>on</Status></LegalHold>', '<Hold/>'])
    t.equal(await put(`/${Bucket}/k`, 'legal-hold', body), '400 MalformedXML', body)
  await s3.deleteObject({ Bucket, Key: 'k', VersionId })
  await s3.deleteBucket({ Bucket })
})

t.test('a delete marker has no lock', async (t) => {
  const { s3 } = await startVault(t)
  await versionOf(s3, 'k')
  const { VersionId } = await s3.deleteObject({ Bucket, Key: 'k' })
  const Retention = { Mode: 'GOVERNANCE', RetainUntilDate: ahead(1) } as const
  await t.rejects(s3.putObjectRetention({ Bucket, Key: 'k', VersionId, Retention }), { name: 'MethodNotAllowed' })
  await s3.deleteObject({ Bucket, Key: 'k', VersionId })
  t.ok((await s3.headObject({ Bucket, Key: 'k' })).VersionId, 'the marker is deleted, and the version is back')
})

t.test('an upload in parts keeps a date that has passed before its completion', async (t) => {
  const { s3 } = await startVault(t)
  const place = { Bucket, Key: 'parts' }
  const end = new Date(Math.ceil(Date.now() / 1000) * 1000 + 2000)
  const lock = { ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: end } as const
  const { UploadId } = await s3.createMultipartUpload({ ...place, ...lock })
  const { ETag } = await s3.uploadPart({ ...place, UploadId, PartNumber: 1, Body: 'x' })
  await until('the date has passed', () => Date.now() > Number(end))
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
  const { VersionId } = await s3.completeMultipartUpload({ ...place, UploadId, MultipartUpload })
  const shown = await s3.headObject(place)
  t.equal(shown.ObjectLockMode, 'COMPLIANCE')
  t.same(shown.ObjectLockRetainUntilDate, end)
  await s3.deleteObject({ ...place, VersionId })
})

t.test('a key pair that may not lock is refused when its upload begins', async (t) => {
  const writer = { accessKeyId: 'writer', secretAccessKey: 'writer-secret' }
  const rights = [{ bucket: Bucket, access: 'readwrite' as const }]
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [keys, { ...writer, rights }] })
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  const begin = (headers: Record<string, string>) =>
    signedRequest(endpoint, writer, { method: 'POST', path: `/${Bucket}/k`, query: { uploads: '' }, headers })
  t.equal((await begin({})).status, 200, 'without a lock')
  t.match(await begin({ 'x-amz-object-lock-legal-hold': 'ON' }), { status: 403, code: 'AccessDenied' })
})
