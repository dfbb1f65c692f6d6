import { Agent, request as httpRequest } from 'node:http'
import { HttpRequest } from '@smithy/protocol-http'
import { SignatureV4 } from '@smithy/signature-v4'
import t from 'tap'
import { actionsOf } from '../../../src/access/language/patterns.js'
import type { Identity } from '../../../src/api/identity.js'
import { canonicalId, OWN_ID } from '../../../src/auth/identities/credentials.js'
import { actionNames } from '../../../src/plugins/actions.js'
import { rowsOf } from '../../../src/plugins/table.js'
import { refusedOperations } from '../../../src/s3/refused.js'
import { corePlugins } from '../../../src/server/core-plugins.js'
import { Sha256 } from '../../support/sign/signed-request.js'
import { type SlowWorld, slowDecide } from '../decision/slow-evaluator.js'
import { foreigner, owner, startWorld } from './world.js'

const limited = { accessKeyId: 'limited-key', secretAccessKey: 'secret-of-the-limited' }
const foreignLimited = { accessKeyId: 'foreign-limited', secretAccessKey: 'secret-of-foreign-limited' }
const allow = (Action: string | string[], Resource: string) => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action, Resource }],
})
const LIMITED = [allow(['s3:GetObject', 's3:PutObject'], 'arn:aws:s3:::*/docs/*'), allow('s3:ListBucket', '*')]
const FOREIGN_LIMITED = [allow(['s3:GetObject', 's3:ListBucket', 's3:DeleteObject'], '*')]

/** A request, and what it asks. */
interface Try {
  readonly method: string
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: string
  readonly actions: readonly string[]
}

const TAGS = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
const tries: readonly Try[] = [
  { method: 'GET', key: 'docs/a', actions: ['s3:GetObject'] },
  { method: 'GET', key: 'other/b', actions: ['s3:GetObject'] },
  { method: 'HEAD', key: 'docs/a', actions: ['s3:GetObject'] },
  { method: 'GET', query: { 'list-type': '2', prefix: 'docs/' }, actions: ['s3:ListBucket'] },
  { method: 'GET', query: { 'list-type': '2' }, actions: ['s3:ListBucket'] },
  { method: 'GET', query: { prefix: 'other/' }, actions: ['s3:ListBucket'] },
  { method: 'GET', query: { versions: '' }, actions: ['s3:ListBucketVersions'] },
  { method: 'HEAD', actions: ['s3:ListBucket'] },
  { method: 'GET', query: { location: '' }, actions: ['s3:GetBucketLocation'] },
  { method: 'PUT', key: 'docs/w', body: 'w', actions: ['s3:PutObject'] },
  { method: 'PUT', key: 'other/w', body: 'w', actions: ['s3:PutObject'] },
  { method: 'DELETE', key: 'docs/gone', actions: ['s3:DeleteObject'] },
  { method: 'DELETE', key: 'other/gone', actions: ['s3:DeleteObject'] },
  { method: 'GET', key: 'docs/a', query: { tagging: '' }, actions: ['s3:GetObjectTagging'] },
  { method: 'PUT', key: 'docs/a', query: { tagging: '' }, body: TAGS, actions: ['s3:PutObjectTagging'] },
  { method: 'GET', key: 'docs/a', query: { attributes: '' }, actions: ['s3:GetObject', 's3:GetObjectAttributes'] },
  { method: 'GET', key: 'docs/a', query: { acl: '' }, actions: ['s3:GetObjectAcl'] },
  { method: 'GET', query: { acl: '' }, actions: ['s3:GetBucketAcl'] },
  { method: 'GET', query: { policy: '' }, actions: ['s3:GetBucketPolicy'] },
  { method: 'GET', query: { tagging: '' }, actions: ['s3:GetBucketTagging'] },
  { method: 'GET', query: { cors: '' }, actions: ['s3:GetBucketCORS'] },
  { method: 'GET', query: { lifecycle: '' }, actions: ['s3:GetLifecycleConfiguration'] },
  { method: 'GET', query: { uploads: '' }, actions: ['s3:ListBucketMultipartUploads'] },
  { method: 'GET', query: { publicAccessBlock: '' }, actions: ['s3:GetBucketPublicAccessBlock'] },
]

type Acl = NonNullable<SlowWorld['objectAcl']>
const aclFor = (group?: string, permission = 'READ'): Acl => ({
  owner: OWN_ID,
  grants: [{ to: OWN_ID, permission: 'FULL_CONTROL' }, ...(group ? [{ to: group, permission }] : [])],
})

interface Place {
  readonly bucket: string
  readonly ownership: string
  readonly canned: { readonly bucket: string; readonly docs: string; readonly other: string }
  readonly acls: { readonly bucket: Acl; readonly docs: Acl; readonly other: Acl }
}

const places: readonly Place[] = [
  {
    bucket: 'place-enforced',
    ownership: 'BucketOwnerEnforced',
    canned: { bucket: 'private', docs: 'private', other: 'private' },
    acls: { bucket: aclFor(), docs: aclFor(), other: aclFor() },
  },
  {
    bucket: 'place-preferred',
    ownership: 'BucketOwnerPreferred',
    canned: { bucket: 'private', docs: 'public-read', other: 'private' },
    acls: { bucket: aclFor(), docs: aclFor('AllUsers'), other: aclFor() },
  },
  {
    bucket: 'place-writer',
    ownership: 'ObjectWriter',
    canned: { bucket: 'public-read', docs: 'private', other: 'authenticated-read' },
    acls: { bucket: aclFor('AllUsers'), docs: aclFor(), other: aclFor('AuthenticatedUsers') },
  },
]

/** No rule of the gateway says the same as any of these, so the authorizer alone decides. */
function policiesOf(bucket: string, foreign: string): readonly (object | undefined)[] {
  const arn = `arn:aws:s3:::${bucket}`
  const them = { CanonicalUser: foreign }
  const one = (
    Effect: string,
    Principal: unknown,
    Action: string | string[],
    Resource: string | string[],
    more = {},
  ) => ({
    Effect,
    Principal,
    Action,
    Resource,
    ...more,
  })
  const document = (...Statement: object[]) => ({ Version: '2012-10-17', Statement })
  const all = [arn, `${arn}/*`]
  return [
    undefined,
    document(one('Allow', '*', 's3:GetObject', `${arn}/docs/*`)),
    document(one('Allow', '*', 's3:GetObject', `${arn}/*`), one('Deny', '*', 's3:GetObject', `${arn}/other/*`)),
    document(one('Allow', them, 's3:*', all)),
    document(
      one('Allow', them, ['s3:GetObject', 's3:PutObject', 's3:ListBucket'], all),
      one('Deny', '*', 's3:Put*', `${arn}/other/*`),
    ),
    document(one('Allow', '*', 's3:ListBucket', arn, { Condition: { StringLike: { 's3:prefix': 'docs/*' } } })),
    document(one('Deny', '*', ['s3:GetObject', 's3:GetBucketPolicy', 's3:ListBucket'], all)),
    document(one('Deny', them, 's3:*', all), one('Allow', '*', 's3:GetObject*', `${arn}/*`)),
    document(one('Allow', '*', ['s3:PutObject', 's3:DeleteObject'], `${arn}/docs/*`)),
    document(
      one('Allow', '*', 's3:Get*', all),
      one('Deny', '*', 's3:GetObject', `${arn}/docs/*`, { Condition: { Bool: { 'aws:SecureTransport': 'false' } } }),
    ),
  ]
}

t.test('a table of decisions over HTTP, compared with a second reading of the rules', async (t) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.teardown(() => agent.destroy())
  const extra: Identity[] = [{ ...limited, policies: LIMITED }]
  const world = await startWorld(t, (hop) => [...extra, { ...foreignLimited, account: hop, policies: FOREIGN_LIMITED }])
  const { as, endpoint, hop } = world
  const foreign = canonicalId({ account: hop.account })
  const texts = (documents: readonly object[]) => documents.map((one) => JSON.stringify(one))
  const principals = [
    { name: 'owner', keys: owner, account: OWN_ID },
    { name: 'another account', keys: foreigner, account: foreign },
    { name: 'anonymous', keys: undefined },
    {
      name: 'limited',
      keys: limited,
      account: OWN_ID,
      user: `arn:aws:iam::${OWN_ID}:user/limited-key`,
      own: texts(LIMITED),
    },
    {
      name: 'limited of another account',
      keys: foreignLimited,
      account: foreign,
      user: `arn:aws:iam::${foreign}:user/foreign-limited`,
      own: texts(FOREIGN_LIMITED),
    },
  ]
  const signers = new Map(
    principals.flatMap(({ keys }) =>
      keys
        ? [
            [
              keys,
              new SignatureV4({
                credentials: keys,
                region: 'us-east-1',
                service: 's3',
                sha256: Sha256,
                uriEscapePath: false,
              }),
            ],
          ]
        : [],
    ),
  )
  const url = new URL(endpoint)

  const known = new Map<string, { readonly headers: Record<string, string> }>()

  async function send(keys: typeof owner | undefined, one: Try, bucket: string) {
    const { method, key, query = {}, body = '' } = one
    const path = key === undefined ? `/${bucket}` : `/${bucket}/${key}`
    const headers: Record<string, string> = { host: url.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
    if ('attributes' in query) headers['x-amz-object-attributes'] = 'ETag'
    const plain = new HttpRequest({
      method,
      protocol: 'http:',
      hostname: url.hostname,
      port: Number(url.port),
      path,
      query: { ...query },
      headers,
    })
    // The same for each policy of the bucket.
    const name = `${keys?.accessKeyId} ${bucket} ${tries.indexOf(one)}`
    const signed = known.get(name) ?? (keys ? await signers.get(keys)?.sign(plain) : plain)
    if (signed) known.set(name, signed)
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    const target = pairs.length > 0 ? `${path}?${pairs.join('&')}` : path
    return new Promise<number>((resolve, reject) => {
      const outgoing = httpRequest(
        {
          agent,
          hostname: url.hostname,
          port: url.port,
          method,
          path: target,
          headers: { ...signed?.headers, 'content-length': String(Buffer.byteLength(body)) },
        },
        (response) =>
          response
            .resume()
            .on('error', reject)
            .on('end', () => resolve(response.statusCode ?? 0)),
      )
      outgoing.on('error', reject).end(body)
    })
  }

  let decisions = 0
  const counts = { allowed: 0, denied: 0 }
  for (const { bucket, ownership, canned, acls } of places) {
    const made = { 'x-amz-object-ownership': ownership, 'x-amz-acl': canned.bucket }
    t.equal((await as.owner({ method: 'PUT', path: `/${bucket}`, headers: made })).status, 200)
    for (const [key, acl] of [
      ['docs/a', canned.docs],
      ['other/b', canned.other],
    ] as const)
      t.equal(
        (await as.owner({ method: 'PUT', path: `/${bucket}/${key}`, body: key, headers: { 'x-amz-acl': acl } })).status,
        200,
      )
    for (const [number, policy] of policiesOf(bucket, foreign).entries()) {
      const text = policy && JSON.stringify(policy)
      if (text !== undefined)
        t.equal((await as.owner({ method: 'PUT', path: `/${bucket}`, query: { policy: '' }, body: text })).body, '')
      const wrong: string[] = []
      for (const { name, keys, account, user, own } of principals) {
        for (const one of tries) {
          const objectAcl = one.key === 'docs/a' ? acls.docs : one.key === 'other/b' ? acls.other : undefined
          const slow: SlowWorld = {
            owner: OWN_ID,
            ownership,
            bucketAcl: acls.bucket,
            ignorePublicAcls: false,
            restrictPublicBuckets: false,
            ...(text !== undefined && { policy: text }),
            ...(objectAcl && { objectAcl }),
            ...(own && { identityPolicies: own }),
          }
          const context = {
            'aws:securetransport': ['false'],
            ...(one.query?.prefix !== undefined && { 's3:prefix': [one.query.prefix] }),
          }
          const resource = `arn:aws:s3:::${bucket}${one.key === undefined ? '' : `/${one.key}`}`
          const allowed = one.actions.every(
            (action) =>
              slowDecide({ ...(account && { account }), ...(user && { user }), action, resource, context }, slow) ===
              'allow',
          )
          const status = await send(keys, one, bucket)
          decisions++
          counts[allowed ? 'allowed' : 'denied']++
          const right = allowed ? status < 500 && status !== 403 && status !== 400 : status === 403
          if (!right)
            wrong.push(
              `${name}: ${one.method} ${one.key ?? ''}?${Object.keys(one.query ?? {})} is ${status}, expected ${allowed ? 'success' : 'a refusal'}`,
            )
        }
      }
      t.same(wrong, [], `${bucket}, policy ${number}`)
    }
  }
  t.ok(decisions >= 3000, `${decisions} decisions: ${JSON.stringify(counts)}`)
})

/** Operations that read and change nothing of anyone, or that check a proof of their own. */
const WITHOUT = [
  'SecurityTokenService',
  'PreflightBucket',
  'PreflightObject',
  'Live',
  'Ready',
  ...['ListObjects', 'ListObjectsV2', 'HeadBucket', 'GetBucketLocation', 'CreateBucket'].flatMap((name) => [
    `${name}OfService`,
    `${name}OfServiceRoot`,
  ]),
  ...refusedOperations.map(({ name }) => name),
]

t.test('every operation declares the actions that policies decide about', async (t) => {
  for (const { plugin, operation } of rowsOf(corePlugins)) {
    const names = actionNames(operation.action, plugin)
    if (operation.action === 'none') t.ok(WITHOUT.includes(operation.name), `${operation.name} has nothing to decide`)
    else t.ok(names.length > 0, `${operation.name} declares ${names}`)
    for (const name of names) {
      if (!name.startsWith('s3:') || operation.on.resource === 'service') continue
      const [known, ...others] = actionsOf(name)
      t.same([known?.name, others], [name, []], `${name} is an action of S3`)
      const on =
        operation.on.resource === 'object' || (typeof operation.action === 'object' && 'each' in operation.action)
          ? 'object'
          : operation.on.resource
      t.equal(known?.on, on, `${name} of ${operation.name} is about its resource`)
    }
  }
})
