import t from 'tap'
import { conditionsOf } from '../../../../src/access/conditions.js'
import { CONDITION_KEYS } from '../../../../src/access/language/condition-keys.js'
import type { Caller } from '../../../../src/api/identity.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { keptLog } from '../../../support/server/kept-log.js'
import { requestHead } from '../../../support/sign/request-head.js'
import { example } from '../../../support/sign/sign-head.js'
import { signedRequest, unsignedRequest } from '../../../support/sign/signed-request.js'
import { until } from '../../../support/waiting.js'

const VALUES: Readonly<Record<string, string>> = {
  'x-amz-acl': 'private',
  'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
  'x-amz-copy-source': '/bucket/key',
  'x-amz-metadata-directive': 'COPY',
  'x-amz-object-ownership': 'ObjectWriter',
  'x-amz-server-side-encryption': 'AES256',
  'x-amz-server-side-encryption-aws-kms-key-id': 'key',
  'x-amz-server-side-encryption-customer-algorithm': 'AES256',
  'x-amz-storage-class': 'STANDARD',
  'x-amz-website-redirect-location': '/there',
}

t.test('a request supplies every condition key that a policy can name', async (t) => {
  const headers = CONDITION_KEYS.filter((key) => key.startsWith('s3:x-amz-')).map(
    (key) => [key.slice(3), VALUES[key.slice(3)] ?? `id=${'a'.repeat(64)}`] as const,
  )
  const head = requestHead({
    target: '/bucket?prefix=a&delimiter=/&max-keys=1&versionId=null',
    headers: [
      ...headers,
      ['Referer', 'https://app.example/'],
      ['User-Agent', 'test'],
      ['x-amz-object-lock-mode', 'GOVERNANCE'],
      ['x-amz-object-lock-retain-until-date', '2026-01-11T00:00:00Z'],
      ['x-amz-object-lock-legal-hold', 'ON'],
    ],
  })
  const caller: Caller = {
    identity: example,
    presigned: false,
    signatureVersion: 'AWS4-HMAC-SHA256',
    authType: 'REST-HEADER',
    payload: { kind: 'unsigned' },
  }
  const tags = [{ key: 'team', value: 'a' }]
  const conditions = conditionsOf({ ...head, remoteAddress: '127.0.0.1' }, caller, {
    owner: 'a'.repeat(64),
    stored: tags,
    requested: tags,
  })
  const spelled = [
    { key: 'Team', value: 'a' },
    { key: 'team', value: 'b' },
    { key: 'TEAMS', value: 'c' },
  ]
  const tagged = conditionsOf(head, caller, { stored: spelled, requested: spelled })
  for (const kind of ['existing', 'request'])
    t.same(tagged.get(`s3:${kind}objecttag/team`), ['a', 'b'], `${kind}: the case of the key does not matter`)
  t.same(tagged.get('s3:requestobjecttagkeys'), ['Team', 'team', 'TEAMS'], 'it does among the values')
  const now = Date.parse('2026-01-01T00:00:01Z')
  t.same(conditionsOf(head, caller, { now }).get('s3:object-lock-remaining-retention-days'), ['10'])
  t.same(conditionsOf(head, caller, { versionId: 'a' }).get('s3:versionid'), ['a'], 'of an entry of a document')
  for (const key of CONDITION_KEYS) t.ok(conditions.get(key.endsWith('/') ? `${key}team` : key), key)
})

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }
const OFFICE = '192.0.2.10'
const OTHER = '203.0.113.9'

/** Everyone in the office reads, by TLS. */
const POLICY = {
  Version: '2012-10-17',
  Statement: {
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: 'arn:aws:s3:::photos/*',
    Condition: { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' }, Bool: { 'aws:SecureTransport': 'true' } },
  },
}

for (const [what, trusted, trustedProxies] of [
  ['another trusted proxy', false, ['198.51.100.0/24', '2001:db8::/32']],
  ['a trusted proxy', true, ['198.51.100.0/24', '127.0.0.1']],
] as const) {
  t.test(`${what}: conditions and the access log`, async (t) => {
    const { log, lines } = keptLog()
    const { endpoint } = await startInProcess(t, 'full', { identities: [owner], trustedProxies, log })
    const put = (path: string, query: Record<string, string>, body: string) =>
      signedRequest(endpoint, owner, { method: 'PUT', path, query, body })
    t.equal((await put('/photos', {}, '')).status, 200)
    t.equal((await put('/photos/cat', {}, 'a cat')).status, 200)
    t.equal((await put('/photos', { policy: '' }, JSON.stringify(POLICY))).status, 204)

    for (const [chain, proto, opens, client] of [
      [OFFICE, 'https', true, OFFICE],
      [OFFICE, 'http', false, OFFICE],
      [`${OFFICE}, ${OTHER}`, 'https', false, OTHER],
      [`${OTHER}, ${OFFICE}`, 'https', true, OFFICE],
      [`${OTHER}, ${OFFICE}, 198.51.100.3`, 'https', true, OFFICE],
      [`${OFFICE}:80`, 'https', false, '127.0.0.1'],
    ] as const) {
      const headers = { 'x-forwarded-for': chain, 'x-forwarded-proto': proto }
      const name = `${chain} by ${proto}`
      const known = lines.length
      const { status } = await unsignedRequest(endpoint, { method: 'GET', path: '/photos/cat', headers })
      t.equal(status, trusted && opens ? 200 : 403, name)
      const remote = () =>
        lines.slice(known).flatMap(({ access }) => (access ? [(access as { remote: string }).remote] : []))
      await until('the line is logged', () => remote().length > 0)
      t.same(remote(), [trusted ? client : '127.0.0.1'], `${name}: the access log`)
    }
    const known = lines.length
    const broken = { method: 'GET', path: `/photos/${'k'.repeat(1025)}`, headers: { 'x-forwarded-for': OTHER } }
    await unsignedRequest(endpoint, broken)
    const refused = () => lines.slice(known).find(({ access }) => access)?.access
    await until('the request whose head is refused is logged', () => refused() !== undefined)
    t.match(refused(), { remote: trusted ? OTHER : '127.0.0.1' })
  })
}
