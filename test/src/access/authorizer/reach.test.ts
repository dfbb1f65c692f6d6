import t from 'tap'
import { canonicalId } from '../../../../src/auth/credentials.js'
import { contentMd5 } from '../../../support/content/content.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'
import { startWorld } from './world.js'

const limited = { accessKeyId: 'limited-foreigner', secretAccessKey: 'secret-of-the-limited' }
const byPolicy = { accessKeyId: 'by-policy', secretAccessKey: 'secret-of-the-one-with-policies' }
const ON_DOTS = {
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Action: 's3:*', Resource: 'arn:aws:s3:::dots/p/*' },
    {
      Effect: 'Allow',
      Action: 's3:ListBucket',
      Resource: 'arn:aws:s3:::dots',
      Condition: { StringLike: { 's3:prefix': 'p/*' } },
    },
  ],
}

t.test('a grant reaches what it names, and nothing else', async (t) => {
  const { as, endpoint, hop } = await startWorld(t, (hop) => [
    { ...limited, account: hop, rights: [{ bucket: 'mine', access: 'readwrite' }] },
    { ...byPolicy, policies: [ON_DOTS] },
  ])
  const them = { CanonicalUser: canonicalId({ account: hop.account }) }
  const policy = (bucket: string, ...statements: object[]) =>
    as.owner({
      method: 'PUT',
      path: `/${bucket}`,
      query: { policy: '' },
      body: JSON.stringify({ Version: '2012-10-17', Statement: statements }),
    })
  const status = async (answer: ReturnType<typeof as.owner>) => {
    const { status, code } = await answer
    return `${status} ${code}`
  }
  const allow = (Principal: unknown, Action: string | string[], Resource: string | string[], Condition?: object) => ({
    ...{ Effect: 'Allow', Principal, Action, Resource },
    ...(Condition && { Condition }),
  })

  await t.test('a right to write does not read by a copy', async (t) => {
    await as.owner({ method: 'PUT', path: '/drop', headers: { 'x-amz-object-ownership': 'ObjectWriter' } })
    await as.owner({ method: 'PUT', path: '/drop/in/secret', body: 'secret' })
    t.equal((await policy('drop', allow(them, 's3:PutObject', 'arn:aws:s3:::drop/*'))).status, 204)
    const put = (key: string, more: Partial<Wanted>) =>
      status(as.foreigner({ method: 'PUT', path: `/drop/${key}`, ...more }))
    t.equal(await put('in/own', { body: 'x' }), '200 ')
    const source = { 'x-amz-copy-source': '/drop/in/secret' }
    t.match(await put('in/copy', { headers: source }), /^403/)
    t.match(await put('in/secret', { headers: { ...source, 'x-amz-metadata-directive': 'REPLACE' } }), /^403/)
    const begun = await as.foreigner({ method: 'POST', path: '/drop/in/secret', query: { uploads: '' } })
    const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
    t.ok(uploadId)
    t.match(await put('in/secret', { query: { partNumber: '1', uploadId }, headers: source }), /^403/)
    t.equal(await put('in/secret', { query: { partNumber: '1', uploadId }, body: 'x' }), '200 ')
    t.equal((await as.owner({ method: 'GET', path: '/drop/in/secret' })).body, 'secret')
  })

  await t.test('rights of a key pair also limit what its account was granted', async (t) => {
    await as.owner({ method: 'PUT', path: '/photos' })
    await as.owner({ method: 'PUT', path: '/photos/a', body: 'a' })
    t.equal((await policy('photos', allow(them, 's3:*', ['arn:aws:s3:::photos', 'arn:aws:s3:::photos/*']))).status, 204)
    t.equal(await status(as.foreigner({ method: 'GET', path: '/photos/a' })), '200 ')
    for (const [method, path] of [
      ['GET', '/photos/a'],
      ['HEAD', '/photos/a'],
      ['GET', '/photos'],
      ['PUT', '/photos/b'],
      ['DELETE', '/photos/a'],
    ] as const)
      t.match(await status(signedRequest(endpoint, limited, { method, path })), /^403/, `${method} ${path}`)
    t.equal(await status(as.owner({ method: 'GET', path: '/photos/a' })), '200 ')
  })

  await t.test('the policy itself is for the account of the owner', async (t) => {
    await as.owner({ method: 'PUT', path: '/all' })
    const body = { Version: '2012-10-17', Statement: [allow('*', 's3:*', ['arn:aws:s3:::all', 'arn:aws:s3:::all/*'])] }
    t.equal((await policy('all', ...body.Statement)).status, 204)
    for (const who of ['foreigner', 'anonymous'] as const) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const text = method === 'PUT' ? { body: JSON.stringify(body) } : {}
        const answer = await as[who]({ method, path: '/all', query: { policy: '' }, ...text })
        t.ok([403, 405].includes(answer.status), `${who} ${method} ${answer.status}`)
      }
    }
    t.equal(await status(as.owner({ method: 'GET', path: '/all', query: { policy: '' } })), '200 ')
  })

  await t.test('tags in the body are decided as those in headers', async (t) => {
    await as.owner({ method: 'PUT', path: '/tagged' })
    await as.owner({ method: 'PUT', path: '/tagged/a', body: 'a' })
    const only = { 'ForAllValues:StringEquals': { 's3:RequestObjectTagKeys': ['a'] } }
    t.equal((await policy('tagged', allow(them, 's3:PutObjectTagging', 'arn:aws:s3:::tagged/*', only))).status, 204)
    const tag = (name: string) =>
      status(
        as.foreigner({
          method: 'PUT',
          path: '/tagged/a',
          query: { tagging: '' },
          body: `<Tagging><TagSet><Tag><Key>${name}</Key><Value>v</Value></Tag></TagSet></Tagging>`,
        }),
      )
    t.equal(await tag('a'), '200 ')
    t.match(await tag('z'), /^403/)
    t.match((await as.owner({ method: 'GET', path: '/tagged/a', query: { tagging: '' } })).body, /<Key>a<\/Key>/)
  })

  await t.test('a refusal says what is not there to callers who may know it', async (t) => {
    for (const method of ['GET', 'PUT', 'DELETE'])
      t.equal(await status(as.anonymous({ method, path: '/never-made/k' })), '404 NoSuchBucket', method)
    await as.owner({ method: 'PUT', path: '/closed' })
    t.match(await status(as.anonymous({ method: 'GET', path: '/closed/none' })), /^403/)

    await as.owner({ method: 'PUT', path: '/partly' })
    await as.owner({ method: 'PUT', path: '/partly/in/secret', body: 'x' })
    const listing = allow('*', 's3:ListBucket', 'arn:aws:s3:::partly', { StringLike: { 's3:prefix': 'in/*' } })
    const hidden = { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::partly/in/no/*' }
    t.equal((await policy('partly', listing, hidden)).status, 204)
    for (const who of ['anonymous', 'foreigner'] as const) {
      t.equal((await as[who]({ method: 'HEAD', path: '/partly/in/none' })).status, 404, 'which a listing tells, too')
      t.equal(await status(as[who]({ method: 'GET', path: '/partly/in/none' })), '404 NoSuchKey')
      t.match(await status(as[who]({ method: 'GET', path: '/partly/in/secret' })), /^403/, 'it is there')
      t.match(await status(as[who]({ method: 'GET', path: '/partly/in/no/none' })), /^403/, 'an explicit deny')
      const refused = { method: 'GET', path: '/partly/out/none' }
      for (const one of [refused, { ...refused, query: { prefix: 'in/' } }])
        t.match(await status(as[who](one)), /^403/, 'not below the prefix, whatever the query says')
    }
    const open = { 'x-amz-object-ownership': 'ObjectWriter', 'x-amz-acl': 'public-read' }
    await as.owner({ method: 'PUT', path: '/listed', headers: open })
    t.equal(await status(as.anonymous({ method: 'GET', path: '/listed/none' })), '404 NoSuchKey')
    const grant = { 'x-amz-grant-read': `id=${them.CanonicalUser}` }
    t.equal(await status(as.owner({ method: 'PUT', path: '/listed', query: { acl: '' }, headers: grant })), '200 ')
    const granted = await as.owner({ method: 'GET', path: '/listed', query: { acl: '' } })
    t.match(granted.body, `<DisplayName>${hop.account.accessKey}</DisplayName>`, 'of another account')
    const list = await as.foreigner({ method: 'GET', path: '/' })
    t.match(list.body, `<DisplayName>${hop.account.accessKey}</DisplayName>`, 'the name of the account')
  })

  await t.test('a key that something may resolve as a path leaves no prefix', async () => {
    const dotted = ['/dots/p/../secret', '/dots/p/./open', '/dots/p/..\\secret', '/dots/../photos/a']
    await as.owner({ method: 'PUT', path: '/dots' })
    for (const path of [...dotted, '/dots/p/open', '/dots/p/..open'])
      t.equal(await status(as.owner({ method: 'PUT', path, body: 'x' })), '200 ', `${path}, while no policy decides`)
    const onBucket = { StringLike: { 's3:prefix': 'p/*' } }
    const statements = [
      allow('*', ['s3:GetObject', 's3:PutObject', 's3:DeleteObject'], 'arn:aws:s3:::dots/p/*'),
      allow('*', 's3:ListBucket', 'arn:aws:s3:::dots', onBucket),
      { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::dots/secret' },
    ]
    t.equal((await policy('dots', ...statements)).status, 204)
    const each = { ...as, byPolicy: (wanted: Wanted) => signedRequest(endpoint, byPolicy, wanted) }
    for (const who of ['anonymous', 'foreigner', 'owner', 'byPolicy'] as const) {
      for (const path of dotted) {
        for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
          t.match(
            await status(each[who]({ method, path, ...(method === 'PUT' && { body: 'y' }) })),
            /^403/,
            `${who} ${method} ${path}`,
          )
      }
      t.match(await status(each[who]({ method: 'GET', path: '/dots', query: { prefix: 'p/../' } })), /^403/, who)
      t.equal(await status(each[who]({ method: 'GET', path: '/dots', query: { prefix: 'p/.' } })), '200 ', who)
      t.equal(await status(each[who]({ method: 'GET', path: '/dots/p/..open' })), '200 ', who)
    }
    const list = '<Delete><Object><Key>p/../secret</Key></Object></Delete>'
    const removing = { method: 'POST', path: '/dots', query: { delete: '' }, headers: contentMd5(list), body: list }
    const removal = await as.anonymous(removing)
    t.match(removal.body, /<Code>AccessDenied</)
    t.equal((await as.owner({ method: 'DELETE', path: '/dots', query: { policy: '' } })).status, 204)
    for (const path of dotted) t.equal((await as.owner({ method: 'GET', path })).body, 'x', `${path} is unchanged`)
  })
})
