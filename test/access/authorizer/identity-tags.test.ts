import t from 'tap'
import type { Identity } from '../../../src/api/identity.js'
import { contentMd5 } from '../../support/content/content.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { signedRequest, type Wanted } from '../../support/sign/signed-request.js'
import { startWorld } from './world.js'

const keysOf = (accessKeyId: string) => ({ accessKeyId, secretAccessKey: `secret-of-${accessKeyId}` })
const ANY = { Effect: 'Allow', Action: 's3:*', Resource: '*' }
const tagged = (operator: string, value: string) => ({ [operator]: { 's3:ExistingObjectTag/class': value } })

/** Does everything, but for objects with the tag class=secret. */
const careful: Identity = {
  ...keysOf('careful'),
  policies: [
    {
      Version: '2012-10-17',
      Statement: [ANY, { ...ANY, Effect: 'Deny', Condition: tagged('StringEquals', 'secret') }],
    },
  ],
}
/** Reads objects with the tag class=open, and writes. */
const reader: Identity = {
  ...keysOf('reader'),
  policies: [
    {
      Version: '2012-10-17',
      Statement: [
        { ...ANY, Action: ['s3:GetObject', 's3:GetObjectTagging'], Condition: tagged('StringEquals', 'open') },
        { ...ANY, Action: ['s3:PutObject', 's3:ListBucket'] },
      ],
    },
  ],
}
/** Reads the objects that are tagged with its own name. */
const named: Identity = {
  ...keysOf('named'),
  policies: [
    {
      Version: '2012-10-17',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a policy variable
      Statement: [{ ...ANY, Condition: { StringEquals: { 'aws:username': '${s3:ExistingObjectTag/reader}' } } }],
    },
  ],
}
const ACLS = { 'x-amz-object-ownership': 'ObjectWriter' }
const opens = (Resource: string) =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource },
  })

t.test('policies of identities decide by the tags of objects in every bucket', async (t) => {
  const foreign: Identity = { ...careful, ...keysOf('foreign-careful') }
  const world = await startWorld(t, (account) => [careful, reader, named, { ...foreign, account }])
  const { status, endpoint, hop } = world
  const by = async (who: Identity, method: string, path: string, more: Partial<Wanted> = {}) => {
    const { status, code } = await signedRequest(endpoint, who, { method, path, ...more })
    return `${status} ${code}`.trim()
  }
  t.equal(await status('owner', 'PUT', '/plain'), '200 ')
  t.equal(await status('owner', 'PUT', '/acls', { headers: ACLS }), '200 ')
  for (const [bucket, prefix] of [
    ['policy', 'press/'],
    ['opened', ''],
  ]) {
    t.equal(await status('owner', 'PUT', `/${bucket}`), '200 ')
    const policy = { query: { policy: '' }, body: opens(`arn:aws:s3:::${bucket}/${prefix}*`) }
    t.equal(await status('owner', 'PUT', `/${bucket}`, policy), '204 ')
  }

  for (const bucket of ['plain', 'acls', 'policy']) {
    t.test(bucket, async (t) => {
      const put = async (key: string, tags?: string) => {
        const headers: Record<string, string> = tags === undefined ? {} : { 'x-amz-tagging': tags }
        t.equal(await status('owner', 'PUT', `/${bucket}/${key}`, { body: 'x', headers }), '200 ')
      }
      await put('secret', 'class=secret')
      await put('open', 'class=open&reader=named')
      await put('untagged')

      const secret = `/${bucket}/secret`
      const copy = { headers: { 'x-amz-copy-source': secret } }
      const list = '<Delete><Object><Key>secret</Key></Object></Delete>'
      for (const [method, path, more] of [
        ['GET', secret, {}],
        ['HEAD', secret, {}],
        ['GET', secret, { query: { tagging: '' } }],
        ['GET', secret, { query: { attributes: '' }, headers: { 'x-amz-object-attributes': 'ETag' } }],
        ['PUT', secret, { body: 'y' }],
        ['PUT', `/${bucket}/copy`, copy],
        ['DELETE', secret, { query: { tagging: '' } }],
        ['DELETE', secret, {}],
      ] as const)
        t.match(await by(careful, method, path, more), /^403/, `${method} ${path} ${JSON.stringify(more)}`)
      const { body } = await signedRequest(endpoint, careful, {
        method: 'POST',
        path: `/${bucket}`,
        query: { delete: '' },
        headers: contentMd5(Buffer.from(list)),
        body: list,
      })
      t.match(body, '<Code>AccessDenied</Code>', 'DeleteObjects')
      t.equal(await by(careful, 'GET', `/${bucket}/open`), '200')
      t.equal(await by(careful, 'GET', `/${bucket}/untagged`), '200')
      t.equal(await by(careful, 'GET', `/${bucket}/none`), '404 NoSuchKey')

      t.equal(await by(reader, 'GET', `/${bucket}/open`), '200', 'a tag that opens')
      t.equal(await by(reader, 'GET', `/${bucket}/open`, { query: { tagging: '' } }), '200')
      for (const key of ['secret', 'untagged', 'none'])
        t.equal(await by(reader, 'GET', `/${bucket}/${key}`), '403 AccessDenied', key)
      t.equal(await by(named, 'GET', `/${bucket}/open`), '200', 'a tag as a variable')
      t.equal(await by(named, 'GET', `/${bucket}/untagged`), '403 AccessDenied')

      await put('open', 'class=secret')
      t.equal(await by(careful, 'GET', `/${bucket}/open`), '403 AccessDenied', 'it has another tag now')
      t.equal(await by(reader, 'GET', `/${bucket}/open`), '403 AccessDenied')
      await put('secret')
      t.equal(await by(careful, 'GET', secret), '200', 'the tags of a replaced object decide nothing')
      await put('open', 'class=open')
    })
  }

  t.test('tags of an object that another program has replaced decide nothing', async (t) => {
    t.equal(await by(careful, 'PUT', '/plain/other', { body: 'x', headers: { 'x-amz-tagging': 'class=open' } }), '200')
    t.equal(await by(reader, 'GET', '/plain/other'), '200')
    const user = new GatewayUser(hop)
    await user.login()
    await user.put('plain', 'other', Buffer.from('of another program'))
    t.equal(await by(reader, 'GET', '/plain/other'), '403 AccessDenied')
    t.equal(await by(careful, 'GET', '/plain/other'), '200')
  })

  t.test('the bucket of another account', async (t) => {
    t.equal(
      await status('owner', 'PUT', '/opened/a', { body: 'x', headers: { 'x-amz-tagging': 'class=secret' } }),
      '200 ',
    )
    t.equal(await status('owner', 'PUT', '/opened/b', { body: 'x' }), '200 ')
    t.equal(await status('foreigner', 'GET', '/opened/a'), '200 ')
    t.equal(await by(foreign, 'GET', '/opened/a'), '403 AccessDenied')
    t.equal(await by(foreign, 'GET', '/opened/b'), '200')
  })

  t.test('a bucket policy may write the name of the key with escapes', async (t) => {
    const body = JSON.stringify({
      Version: '2012-10-17',
      Statement: {
        ...{ Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::plain/*' },
        Condition: { StringEquals: { 's3:ExistingObjectTag/sealed': 'yes' } },
      },
    }).replace('Existing', '\\u0045xisting')
    t.equal(await status('owner', 'PUT', '/plain', { query: { policy: '' }, body }), '204 ')
    t.equal(await status('owner', 'PUT', '/plain/s', { body: 'x', headers: { 'x-amz-tagging': 'sealed=yes' } }), '200 ')
    t.equal(await status('owner', 'GET', '/plain/s'), '403 AccessDenied')
  })
})
