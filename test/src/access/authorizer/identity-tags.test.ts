import t from 'tap'
import type { Identity } from '../../../../src/api/identity.js'
import { contentMd5 } from '../../../support/content/content.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { signedRequest, type Wanted } from '../../../support/sign/signed-request.js'
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
      const [open, untagged, none] = ['open', 'untagged', 'none'].map((key) => `/${bucket}/${key}`) as [
        string,
        string,
        string,
      ]
      const tagging = { query: { tagging: '' } }
      const attributes = { query: { attributes: '' }, headers: { 'x-amz-object-attributes': 'ETag' } }
      for (const [who, method, path, more, answer] of [
        [careful, 'GET', secret, {}, /^403/],
        [careful, 'HEAD', secret, {}, /^403/],
        [careful, 'GET', secret, tagging, /^403/],
        [careful, 'GET', secret, attributes, /^403/],
        [careful, 'PUT', secret, { body: 'y' }, /^403/],
        [careful, 'PUT', `/${bucket}/copy`, { headers: { 'x-amz-copy-source': secret } }, /^403/],
        [careful, 'DELETE', secret, tagging, /^403/],
        [careful, 'DELETE', secret, {}, /^403/],
        [careful, 'GET', open, {}, /^200/],
        [careful, 'GET', untagged, {}, /^200/],
        [careful, 'GET', none, {}, /^404/],
        [reader, 'GET', open, {}, /^200/],
        [reader, 'GET', open, tagging, /^200/],
        [reader, 'GET', secret, {}, /^403/],
        [reader, 'GET', untagged, {}, /^403/],
        [reader, 'GET', none, {}, /^403/],
        // By a tag as a variable.
        [named, 'GET', open, {}, /^200/],
        [named, 'GET', untagged, {}, /^403/],
      ] as const)
        t.match(
          await by(who, method, path, more),
          answer,
          `${who.accessKeyId} ${method} ${path} ${JSON.stringify(more)}`,
        )
      const list = '<Delete><Object><Key>secret</Key></Object></Delete>'
      const removal = {
        method: 'POST',
        path: `/${bucket}`,
        query: { delete: '' },
        headers: contentMd5(list),
        body: list,
      }
      t.match((await signedRequest(endpoint, careful, removal)).body, '<Code>AccessDenied</Code>', 'DeleteObjects')

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
