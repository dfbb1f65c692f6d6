import t from 'tap'
import type { Who } from '../../access/authorizer/world.js'
import { contentMd5 } from '../../support/content/content.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { keysOf, type pairs, policyOf, startVersions } from './versions-world.js'

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
