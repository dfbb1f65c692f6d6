import t, { type Test } from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import { contentMd5 } from '../../../support/content/content.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { startWorld, type Who } from '../../access/authorizer/world.js'

const keysOf = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: `secret-of-${accessKeyId}` })
const policyOf = (...statements: readonly object[]) => ({ Version: '2012-10-17', Statement: statements })
const only = (...Action: string[]) => policyOf({ Effect: 'Allow', Action, Resource: '*' })

/** Key pairs of the owner's account, by what their policies allow. */
const pairs = {
  deleter: only('s3:DeleteObject'),
  'version-deleter': only('s3:DeleteObjectVersion'),
  passer: only('s3:DeleteObjectVersion', 's3:BypassGovernanceRetention'),
  writer: only('s3:PutObject'),
  retainer: only('s3:PutObject', 's3:PutObjectRetention', 's3:GetObject', 's3:GetObjectRetention'),
  reader: only('s3:GetObject', 's3:GetObjectVersion'),
  capped: policyOf(
    { Effect: 'Allow', Action: ['s3:PutObject', 's3:PutObjectRetention'], Resource: '*' },
    {
      ...{ Effect: 'Deny', Action: ['s3:PutObject', 's3:PutObjectRetention'], Resource: '*' },
      Condition: { NumericGreaterThan: { 's3:object-lock-remaining-retention-days': '10' } },
    },
    {
      ...{ Effect: 'Deny', Action: 's3:PutObjectRetention', Resource: '*' },
      Condition: { StringEquals: { 's3:object-lock-mode': 'COMPLIANCE' } },
    },
  ),
}

/** The bucket `box` of the owner, with versions, and with locks where asked. */
async function startVersions(t: Test, { locks = false } = {}) {
  const world = await startWorld(t, () => [
    ...Object.entries(pairs).map(([name, policy]) => ({ ...keysOf(name), policies: [policy] })),
    { ...keysOf('with-rights'), rights: [{ bucket: 'box', access: 'readwrite' }] },
  ])
  const { as, endpoint } = world
  const owner = async (method: string, path: string, query = {}, body = '', headers = {}) => {
    const answer = await as.owner({ method, path, query, body, headers })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`)
    return answer
  }
  await owner('PUT', '/box', {}, '', locks ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {})
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
  await owner('PUT', '/box', { versioning: '' }, enabled, contentMd5(enabled))
  return {
    ...world,
    owner,
    put: async (key: string, body: string, headers = {}) =>
      String(
        (await owner('PUT', `/box/${key}`, {}, body, { ...contentMd5(body), ...headers })).headers['x-amz-version-id'],
      ),
    by: async (name: keyof typeof pairs | 'with-rights', method: string, path: string, more = {}) => {
      const { status, code } = await signedRequest(endpoint, keysOf(name), { method, path, ...more })
      return `${status} ${code}`
    },
  }
}

t.test('policies of key pairs: deleting an object and deleting a version are two actions', async (t) => {
  const { put, by, owner, endpoint } = await startVersions(t)
  const first = await put('k', 'first')
  const second = await put('k', 'second')
  const version = (versionId: string, headers = {}) => ({ query: { versionId }, headers })
  for (const id of [first, second, 'null'])
    t.equal(await by('deleter', 'DELETE', '/box/k', version(id)), '403 AccessDenied', 'DeleteObject gives no version')
  const list = (...ids: string[]) =>
    `<Delete>${ids.map((id) => `<Object><Key>k</Key>${id && `<VersionId>${id}</VersionId>`}</Object>`).join('')}</Delete>`
  const many = async (name: keyof typeof pairs, ...ids: string[]) => {
    const body = list(...ids)
    const wanted = { method: 'POST', path: '/box', query: { delete: '' }, body, headers: contentMd5(body) }
    const { body: answer } = await signedRequest(endpoint, keysOf(name), wanted)
    return [...answer.matchAll(/<(Deleted|Error)>.*?<\/\1>/g)].map(
      ([text, kind]) => `${kind} ${/<Code>(\w+)/.exec(text)?.[1] ?? ''}`,
    )
  }
  t.same(await many('deleter', first, second), ['Error AccessDenied', 'Error AccessDenied'])
  t.equal((await owner('GET', '/box/k')).body, 'second', 'everything is still there')
  t.equal(await by('version-deleter', 'DELETE', '/box/k'), '403 AccessDenied', 'and the reverse')
  t.same(await many('version-deleter', ''), ['Error AccessDenied'])
  t.equal((await owner('GET', '/box/k')).body, 'second')
  t.equal(await by('with-rights', 'DELETE', '/box/k', version(first)), '403 AccessDenied', 'a right to write')

  t.equal(await by('deleter', 'DELETE', '/box/k'), '204 ', 'a delete marker')
  t.same(await many('version-deleter', first), ['Deleted '])
  t.equal(await by('version-deleter', 'DELETE', '/box/k', version(second)), '204 ')
})

t.test('bucket policies: a grant for one version opens no other', async (t) => {
  const { put, status, owner, as } = await startVersions(t)
  const open = await put('k', 'open')
  const secret = await put('k', 'secret')
  const statement = (Action: string | string[], id: string) => ({
    ...{ Effect: 'Allow', Principal: '*', Action, Resource: 'arn:aws:s3:::box/*' },
    Condition: { StringEquals: { 's3:VersionId': id } },
  })
  const set = async (...statements: object[]) =>
    owner('PUT', '/box', { policy: '' }, JSON.stringify(policyOf(...statements)))
  await set(statement(['s3:GetObjectVersion', 's3:GetObjectVersionTagging', 's3:DeleteObjectVersion'], open))
  for (const who of ['foreigner', 'anonymous'] satisfies Who[]) {
    const get = (versionId: string, more = {}) => status(who, 'GET', '/box/k', { query: { versionId, ...more } })
    t.equal(await get(open), '200 ', who)
    t.equal((await as[who]({ method: 'GET', path: '/box/k', query: { versionId: open } })).body, 'open')
    t.equal(await get(secret), '403 AccessDenied', who)
    t.equal(await get('null'), '403 AccessDenied', who)
    t.equal(await status(who, 'GET', '/box/k'), '403 AccessDenied', `${who}, the current one`)
    t.equal(await get(open, { tagging: '' }), '200 ', who)
    t.equal(await get(secret, { tagging: '' }), '403 AccessDenied', who)
    t.equal(await status(who, 'DELETE', '/box/k', { query: { versionId: secret } }), '403 AccessDenied', who)
    t.equal(await status(who, 'DELETE', '/box/k'), '403 AccessDenied', who)
    const copy = (versionId: string) =>
      status(who, 'PUT', '/theirs/copy', { headers: { 'x-amz-copy-source': `/box/k?versionId=${versionId}` } })
    if (who !== 'foreigner') continue
    t.equal(await status(who, 'PUT', '/theirs'), '200 ')
    t.equal(await copy(open), '200 ')
    t.equal((await as[who]({ method: 'GET', path: '/theirs/copy' })).body, 'open')
    t.equal(await copy(secret), '403 AccessDenied')
  }
  // In one request, the grant for one entry does not carry the others.
  const body = `<Delete>${[open, secret].map((id) => `<Object><Key>k</Key><VersionId>${id}</VersionId></Object>`).join('')}</Delete>`
  const wanted = { method: 'POST', path: '/box', query: { delete: '' }, body, headers: contentMd5(body) }
  const answer = await as.anonymous(wanted)
  t.match(answer.body, new RegExp(`<Deleted><Key>k</Key><VersionId>${open}</VersionId></Deleted>`))
  t.match(answer.body, new RegExp(`<Error><Key>k</Key><VersionId>${secret}</VersionId><Code>AccessDenied</Code>`))
  t.equal((await owner('GET', '/box/k')).body, 'secret')

  await set({ Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/*' })
  t.equal(await status('anonymous', 'GET', '/box/k'), '200 ')
  t.equal(await status('anonymous', 'GET', '/box/k', { query: { versionId: secret } }), '403 AccessDenied')
  await set({ Effect: 'Allow', Principal: '*', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::box' })
  t.equal(await status('anonymous', 'GET', '/box', { query: { versions: '' } }), '403 AccessDenied')
  await set({ Effect: 'Allow', Principal: '*', Action: 's3:ListBucketVersions', Resource: 'arn:aws:s3:::box' })
  t.equal(await status('anonymous', 'GET', '/box', { query: { versions: '' } }), '200 ')
  t.equal(await status('anonymous', 'GET', '/box'), '403 AccessDenied')
})

t.test('the tags of a version decide about it, and not those of the current one', async (t) => {
  const { put, status, owner } = await startVersions(t)
  const shared = await put('k', 'shared', { 'x-amz-tagging': 'share=yes' })
  const closed = await put('k', 'closed', { 'x-amz-tagging': 'share=no' })
  await owner(
    'PUT',
    '/box',
    { policy: '' },
    JSON.stringify(
      policyOf({
        ...{
          Effect: 'Allow',
          Principal: '*',
          Action: ['s3:GetObject', 's3:GetObjectVersion'],
          Resource: 'arn:aws:s3:::box/*',
        },
        Condition: { StringEquals: { 's3:ExistingObjectTag/share': 'yes' } },
      }),
    ),
  )
  const get = (query = {}) => status('anonymous', 'GET', '/box/k', { query })
  t.equal(await get({ versionId: shared }), '200 ')
  t.equal(await get({ versionId: closed }), '403 AccessDenied')
  t.equal(await get(), '403 AccessDenied')
  await owner('DELETE', '/box/k', { versionId: closed })
  t.equal(await get(), '200 ', 'the shared one is the current one again')
})

t.test('the tags of the current version decide where the record of the key is that of an earlier one', async (t) => {
  const { put, status, owner } = await startVersions(t)
  await put('k', 'first', { 'x-amz-tagging': 'class=open' })
  // The gateway tells all of it: the write has no record.
  await put('k', 'second')
  const all = { Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/*' }
  const secret = { StringEquals: { 's3:ExistingObjectTag/class': 'secret' } }
  const policy = policyOf({ Effect: 'Allow', ...all }, { Effect: 'Deny', ...all, Condition: secret })
  await owner('PUT', '/box', { policy: '' }, JSON.stringify(policy))
  t.equal(await status('anonymous', 'GET', '/box/k'), '200 ')
  const tagging = '<Tagging><TagSet><Tag><Key>class</Key><Value>secret</Value></Tag></TagSet></Tagging>'
  await owner('PUT', '/box/k', { tagging: '' }, tagging, contentMd5(tagging))
  t.equal(await status('anonymous', 'GET', '/box/k'), '403 AccessDenied')
})

t.test('a key pair with a right to write does not change the versioning', async (t) => {
  const { by } = await startVersions(t)
  const body = '<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>'
  const change = { query: { versioning: '' }, body, headers: contentMd5(body) }
  t.equal(await by('with-rights', 'PUT', '/box', change), '403 AccessDenied')
})

t.test('a key pair with a right to write lets no versions of others expire by a rule', async (t) => {
  const { by, owner } = await startVersions(t)
  const put = (action: string) => {
    const body = `<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status>${action}</Rule></LifecycleConfiguration>`
    return { query: { lifecycle: '' }, body, headers: contentMd5(body) }
  }
  const days = '<NoncurrentDays>1</NoncurrentDays>'
  const expiring = put(`<NoncurrentVersionExpiration>${days}</NoncurrentVersionExpiration>`)
  t.equal(await by('with-rights', 'PUT', '/box', expiring), '403 AccessDenied')
  t.equal(await by('with-rights', 'PUT', '/box', put('<Expiration><Days>1</Days></Expiration>')), '200 ')
  await owner('PUT', '/box', expiring.query, expiring.body, expiring.headers)
})

const BYPASS = { 'x-amz-bypass-governance-retention': 'true' }
const retention = (mode: string, days: number) =>
  `<Retention><Mode>${mode}</Mode><RetainUntilDate>${new Date(Date.now() + days * DAY_MS).toISOString()}</RetainUntilDate></Retention>`

t.test('policies of key pairs: retention', async (t) => {
  const { put, by, owner } = await startVersions(t, { locks: true })
  const id = await put('k', 'x')
  const long = retention('GOVERNANCE', 20)
  const retain = (name: keyof typeof pairs, body: string, headers = {}) =>
    by(name, 'PUT', '/box/k', { query: { retention: '' }, body, headers: { ...contentMd5(body), ...headers } })
  t.equal(await retain('writer', long), '403 AccessDenied')
  t.equal(await retain('capped', long), '403 AccessDenied', 'beyond the days of the policy')
  t.equal(await retain('capped', retention('COMPLIANCE', 5)), '403 AccessDenied', 'the mode in the body')
  t.equal(await retain('capped', retention('GOVERNANCE', 5)), '200 ')
  t.equal(await retain('retainer', long), '200 ')
  t.equal(await retain('retainer', retention('GOVERNANCE', 1)), '403 AccessDenied')
  t.equal(
    await retain('retainer', retention('GOVERNANCE', 1), BYPASS),
    '403 AccessDenied',
    'the header without the action',
  )

  const headers = {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': new Date(Date.now() + 20 * DAY_MS).toISOString(),
    ...contentMd5('y'),
  }
  t.equal(await by('writer', 'PUT', '/box/new', { body: 'y', headers }), '403 AccessDenied')
  t.equal(await by('capped', 'PUT', '/box/new', { body: 'y', headers }), '403 AccessDenied')
  t.equal(await by('retainer', 'PUT', '/box/new', { body: 'y', headers }), '200 ')
  const hold = { 'x-amz-object-lock-legal-hold': 'ON', ...contentMd5('y') }
  t.equal(await by('retainer', 'PUT', '/box/new', { body: 'y', headers: hold }), '403 AccessDenied', 'another action')

  const version = (extra = {}) => ({ query: { versionId: id }, headers: extra })
  t.equal(await by('version-deleter', 'DELETE', '/box/k', version()), '403 AccessDenied', 'locked')
  t.equal(await by('version-deleter', 'DELETE', '/box/k', version(BYPASS)), '403 AccessDenied', 'the header alone')
  t.equal(await by('passer', 'DELETE', '/box/k', version()), '403 AccessDenied', 'the action alone')
  t.equal((await owner('GET', '/box/k')).body, 'x')
  t.equal(await by('passer', 'DELETE', '/box/k', version(BYPASS)), '204 ', 'both')
})

t.test('GET shows a lock to those who may know it', async (t) => {
  const { put, endpoint } = await startVersions(t, { locks: true })
  await put('k', 'x', {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': new Date(Date.now() + DAY_MS).toISOString(),
    'x-amz-object-lock-legal-hold': 'ON',
  })
  const seen = async (name: string) => {
    const { status, headers } = await signedRequest(endpoint, keysOf(name), { method: 'HEAD', path: '/box/k' })
    return [status, headers['x-amz-object-lock-mode'], headers['x-amz-object-lock-legal-hold']]
  }
  t.same(await seen('reader'), [200, undefined, undefined])
  t.same(await seen('retainer'), [200, 'GOVERNANCE', undefined])
})
