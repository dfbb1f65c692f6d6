import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t, { type Test } from 'tap'
import type { AuditEntry, AuditLog } from '../../../src/server/audit.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { startInProcess } from '../../support/server/in-process.js'
import { send } from '../../support/sign/send.js'

const OWNER = { region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }

/** A server, and what it records. */
async function startAudited(t: Test, options: Partial<ProxyOptions> = {}) {
  const entries: AuditEntry[] = []
  const audit: AuditLog = { write: async (entry) => void entries.push(entry) }
  return { ...(await startInProcess(t, 'full', { audit, ...options })), entries }
}

t.test('changes of access and settings are recorded before they are answered', async (t) => {
  const { s3, endpoint, entries } = await startAudited(t, {
    identities: [
      { accessKeyId: 'test-key', secretAccessKey: 'test-secret' },
      { accessKeyId: 'limited', secretAccessKey: 'limited-secret', rights: [{ bucket: 'other', access: 'read' }] },
    ],
  })
  const owner = { ...OWNER, endpoint }
  t.equal((await send(owner, { method: 'PUT', target: '/audited' })).status, 200)
  await s3.putObject({ Bucket: 'audited', Key: 'a', Body: 'a' })
  await send(owner, { method: 'GET', target: '/audited/a' })
  const acl = { 'x-amz-acl': 'public-read' }
  const shared = await send(owner, { method: 'PUT', target: '/audited/b', body: Buffer.from('b'), headers: acl })
  t.match(shared, { status: 400, code: 'AccessControlListNotSupported' })
  const body = Buffer.from('<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>')
  const tagged = await send(owner, { method: 'PUT', target: '/audited?tagging=', body })
  t.ok(tagged.status < 300)
  const stranger = { ...owner, accessKey: 'limited', secretKey: 'limited-secret' }
  t.equal((await send(stranger, { method: 'PUT', target: '/audited?policy=', body })).status, 403)
  t.same(
    entries.map(({ action, accessKeyId, bucket, outcome, status }) => [action, accessKeyId, bucket, outcome, status]),
    [
      ['CreateBucket', 'test-key', 'audited', 'ok', 200],
      ['PutObject', 'test-key', 'audited', 'AccessControlListNotSupported', 400],
      ['PutBucketTagging', 'test-key', 'audited', 'ok', tagged.status],
      ['PutBucketPolicy', 'limited', 'audited', 'AccessDenied', 403],
    ],
  )
  t.match(entries[2], {
    requestId: String(tagged.headers['x-amz-request-id']),
    remote: /127\.0\.0\.1/,
    time: /^20.*Z$/,
  })
  t.notMatch(JSON.stringify(entries), /secret|signature/i)
})

t.test('removals of versions are recorded, and which', async (t) => {
  const { s3, entries } = await startAudited(t)
  const Bucket = 'audited'
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  const put = async (more = {}) => (await s3.putObject({ Bucket, Key: 'a', Body: 'a', ...more })).VersionId
  const [one, two] = [await put(), await put()]
  const held = await put({ ObjectLockLegalHoldStatus: 'ON' })
  await s3.deleteObject({ Bucket, Key: 'a' })
  await s3.deleteObjects({ Bucket, Delete: { Objects: [{ Key: 'a' }] } })
  entries.length = 0
  await s3.deleteObject({ Bucket, Key: 'a', VersionId: one })
  await t.rejects(s3.deleteObject({ Bucket, Key: 'a', VersionId: held }), { name: 'AccessDenied' })
  const Objects = [two, held].map((VersionId) => ({ Key: 'a', VersionId }))
  await s3.deleteObjects({ Bucket, Delete: { Objects: [...Objects, { Key: 'b' }] } })
  t.same(
    entries.map(({ action, key, changed, outcome }) => [action, key, changed, outcome]),
    [
      ['DeleteObject', 'a', [`version ${one}`], 'ok'],
      ['DeleteObject', 'a', undefined, 'AccessDenied'],
      ['DeleteObjects', undefined, [`version ${two} of a`], 'ok'],
    ],
  )
})

t.test('forms that give access are recorded with their signer', async (t) => {
  const { s3, endpoint, entries } = await startAudited(t)
  const owner = { ...OWNER, endpoint }
  await send(owner, { method: 'PUT', target: '/forms' })
  const post = async (Fields: Record<string, string>, change: (form: FormData) => void = () => {}) => {
    const { url, fields } = await createPresignedPost(s3, { Bucket: 'forms', Key: 'in/f', Fields })
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) body.append(name, value)
    change(body)
    body.append('file', new Blob(['by form']), 'f')
    return (await fetch(url, { method: 'POST', body })).status
  }
  t.equal(await post({}), 204)
  t.equal(await post({ acl: 'public-read' }), 400)
  t.equal(await post({ acl: 'public-read' }, (form) => form.set('X-Amz-Signature', '0'.repeat(64))), 403)
  t.same(
    entries.map(({ action, accessKeyId, bucket, key, outcome }) => [action, accessKeyId, bucket, key, outcome]),
    [
      ['CreateBucket', 'test-key', 'forms', undefined, 'ok'],
      ['PostObject', 'test-key', 'forms', 'in/f', 'AccessControlListNotSupported'],
    ],
  )
})

t.test('the refusal of an unsigned request waits for no disk', async (t) => {
  const written: [action: string, durable: boolean | undefined][] = []
  const audit: AuditLog = {
    write: async ({ action }, writing) => void written.push([action, writing?.durable]),
  }
  const { endpoint } = await startInProcess(t, 'full', { audit })
  const owner = { ...OWNER, endpoint }
  await send(owner, { method: 'PUT', target: '/signed' })
  t.equal((await fetch(`${endpoint}/signed?policy`, { method: 'PUT', body: '{}' })).status, 403)
  t.equal((await fetch(`${endpoint}/unsigned`, { method: 'PUT' })).status, 403)
  t.equal((await send(owner, { method: 'DELETE', target: '/none' })).status, 404)
  t.same(written, [
    ['CreateBucket', true],
    ['PutBucketPolicy', false],
    ['CreateBucket', false],
    ['DeleteBucket', true],
  ])
})

t.test('a request is answered even if the audit log cannot be written, and the log has its entry', async (t) => {
  const audit = { write: () => Promise.reject(new Error('disk full')) }
  const { endpoint, lines } = await startInProcess(t, 'full', { audit })
  const owner = { ...OWNER, endpoint }
  t.equal((await send(owner, { method: 'PUT', target: '/unwritten' })).status, 200)
  t.ok(
    lines.some(
      ({ msg, audit }) => msg === 'the audit log cannot be written' && JSON.stringify(audit).includes('CreateBucket'),
    ),
  )
})
