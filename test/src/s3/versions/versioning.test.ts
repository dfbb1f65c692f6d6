import t from 'tap'
import { contentMd5 } from '../../../support/content/content.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const document = (contents: string) => `<VersioningConfiguration>${contents}</VersioningConfiguration>`
const enabled = document('<Status>Enabled</Status>')

t.test('full: the versioning of a bucket', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [keys] })
  const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
    signedRequest(endpoint, keys, { method, path, ...more })
  const put = async (body: string, headers: Record<string, string> = contentMd5(body)) => {
    const { status, code } = await send('PUT', '/box', { query: { versioning: '' }, body, headers })
    return `${status} ${code}`
  }
  await send('PUT', '/box')
  const asked = async () => (await send('GET', '/box', { query: { versioning: '' } })).body

  t.match(await asked(), /<VersioningConfiguration xmlns="[^"]*"><\/VersioningConfiguration>/, 'never versioned')
  await send('PUT', '/box/k', { body: 'before' })
  t.equal((await send('GET', '/box/k')).headers['x-amz-version-id'], undefined)
  for (const [contents, answer] of [
    ['<Status>On</Status>', '400 MalformedXML'],
    ['<Status>Enabled</Status><Status>Enabled</Status>', '400 MalformedXML'],
    ['<Status>Enabled</Status><Surprise/>', '400 MalformedXML'],
    ['', '400 IllegalVersioningConfigurationException'],
    ['<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>', '501 NotImplemented'],
    ['<MfaDelete>Disabled</MfaDelete>', '400 IllegalVersioningConfigurationException'],
  ] as const)
    t.equal(await put(document(contents)), answer, contents)
  t.equal(await put(enabled, {}), '400 InvalidRequest', 'a digest is required')
  t.equal(await put('not XML'), '400 MalformedXML')
  t.notMatch(await asked(), 'Status', 'nothing has happened')

  t.equal(await put(document('<Status>Enabled</Status><MfaDelete>Disabled</MfaDelete>')), '200 ')
  t.match(await asked(), '<Status>Enabled</Status>')
  t.equal((await send('GET', '/box/k')).headers['x-amz-version-id'], 'null', 'what was there is the null version')
  const first = (await s3.putObject({ Bucket: 'box', Key: 'k', Body: 'one' })).VersionId
  t.match(first, /^[0-9a-f]{32}$/)
  t.equal(await put(document('<Status>Suspended</Status>')), '200 ')
  t.match(await asked(), '<Status>Suspended</Status>')
  t.equal((await s3.putObject({ Bucket: 'box', Key: 'k', Body: 'two' })).VersionId, 'null')
  t.match(await s3.getObject({ Bucket: 'box', Key: 'k', VersionId: first }), { VersionId: first, ContentLength: 3 })

  t.equal(
    (await send('PUT', '/absent', { query: { versioning: '' }, body: enabled, headers: contentMd5(enabled) })).status,
    404,
  )
  t.equal((await send('DELETE', '/box', { query: { versioning: '' } })).status, 501)
})

t.test('legacy: a gateway with one version of each object', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'legacy', { identities: [keys] })
  const send = (method: string, path: string, more: Partial<Wanted> = {}) =>
    signedRequest(endpoint, keys, { method, path, ...more })
  await send('PUT', '/box')
  await send('PUT', '/box/k', { body: 'x' })
  const refused = await send('PUT', '/box', { query: { versioning: '' }, body: enabled, headers: contentMd5(enabled) })
  t.match(refused, { status: 501, code: 'NotImplemented' })
  t.match(refused.body, 'PutBucketVersioning is not implemented: the gateway keeps one version of each object.')
  t.equal((await s3.getBucketVersioning({ Bucket: 'box' })).Status, undefined)
  t.match(await s3.listObjectVersions({ Bucket: 'box' }), {
    Versions: [{ Key: 'k', VersionId: 'null', IsLatest: true }],
  })
  for (const [path, headers] of [
    ['/locked', { 'x-amz-bucket-object-lock-enabled': 'true' }],
    ['/box/locked', { 'x-amz-object-lock-legal-hold': 'ON' }],
    [
      '/box/locked',
      { 'x-amz-object-lock-mode': 'COMPLIANCE', 'x-amz-object-lock-retain-until-date': '2090-01-01T00:00:00Z' },
    ],
  ] as const) {
    const answer = await send('PUT', path, { headers, body: '' })
    t.match(answer, { status: 501, code: 'NotImplemented' }, path)
    t.match(answer.body, Object.keys(headers)[0])
  }
  t.equal((await send('HEAD', '/locked')).status, 404)
  t.equal((await send('HEAD', '/box/locked')).status, 404)
  t.equal((await send('GET', '/box/k', { query: { retention: '' } })).code, 'InvalidRequest')
  t.equal((await send('GET', '/box', { query: { 'object-lock': '' } })).code, 'ObjectLockConfigurationNotFoundError')
  t.equal((await send('DELETE', '/box/k', { query: { versionId: 'null' } })).status, 204)
  t.equal((await send('HEAD', '/box/k')).status, 404)
})
