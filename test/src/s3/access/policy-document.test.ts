import fc from 'fast-check'
import t from 'tap'
import { parsePolicy } from '../../../../src/access/policy.js'
import type { PolicyEntry } from '../../../../src/api/gateway.js'
import { allows, type PublicAction } from '../../../../src/gateway/account/policies.js'
import { toEntries as convert } from '../../../../src/s3/access/policy-entries.js'

const BUCKET = 'photos'
const ARN = `arn:aws:s3:::${BUCKET}`
const WRITES = ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts']

const allow = (Action: unknown, Resource: unknown, more: object = {}) => ({
  Effect: 'Allow',
  Principal: '*',
  Action,
  Resource,
  ...more,
})
const policy = (...Statement: unknown[]) => JSON.stringify({ Version: '2012-10-17', Statement })
const when = (prefix: unknown) => ({ Condition: { StringEquals: { 's3:prefix': prefix } } })
/** The rules for a document, as PutBucketPolicy makes them. */
function toEntries(text: string, bucket: string) {
  parsePolicy(text, { kind: 'bucket', bucket })
  return convert(text, bucket)
}
const entriesOf = (...statements: unknown[]) => toEntries(policy(...statements), BUCKET)

t.test('policies that fit', async (t) => {
  const readonly = [{ prefix: '', policy: 'readonly' }]
  const both = [ARN, `${ARN}/*`]
  t.same(entriesOf(allow('s3:ListBucket', ARN), allow('s3:GetObject', `${ARN}/*`)), readonly)
  t.same(entriesOf(allow(['s3:getobject', 'S3:LISTBUCKET'], both)), readonly, 'in any case')
  t.same(entriesOf({ ...allow(['s3:GetObject', 's3:ListBucket'], both), Principal: { AWS: ['*'] } }), readonly)
  t.same(toEntries(JSON.stringify({ Statement: allow(['s3:GetObject', 's3:ListBucket'], both) }), BUCKET), readonly)
  t.same(
    entriesOf(allow(['s3:ListBucket', 's3:ListBucketVersions', 's3:GetObject', 's3:GetObjectVersion'], both)),
    readonly,
    'versions that there are none of add nothing',
  )
  t.same(entriesOf(allow(['s3:ListBucketMultipartUploads', ...WRITES], both)), [{ prefix: '', policy: 'writeonly' }])
  t.same(entriesOf(allow(['s3:ListBucket', 's3:ListBucketMultipartUploads', 's3:GetObject', ...WRITES], both)), [
    { prefix: '', policy: 'readwrite' },
  ])
  t.same(
    entriesOf(
      allow('s3:ListBucket', ARN, when(['b/', 'a/'])),
      allow('s3:GetObject', [`${ARN}/a/*`, `${ARN}/b/*`]),
      allow('s3:ListBucketMultipartUploads', ARN),
      allow(WRITES, `${ARN}/b/*`),
    ),
    [
      { prefix: 'a/', policy: 'readonly' },
      { prefix: 'b/', policy: 'readwrite' },
    ],
  )
  t.same(
    entriesOf(
      allow(['s3:AbortMultipart*', 's3:ListMultipartUploadP*', 's3:PutObject', 's3:DeleteObjec?'], `${ARN}/*`),
      allow('s3:ListBucketM*', ARN),
    ),
    [{ prefix: '', policy: 'writeonly' }],
    'wildcards that stand for nothing else',
  )
})

t.test('policies that no rules of the gateway say', async (t) => {
  const list = allow('s3:ListBucket', ARN)
  const get = allow('s3:GetObject', `${ARN}/*`)
  const changed = (...changes: object[]) => changes.map((more) => policy(list, { ...get, ...more }))
  const texts = [
    ...changed({ Effect: 'Deny' }, { Principal: { AWS: 'arn:aws:iam::1:root' } }, { Principal: undefined }),
    ...changed({ Principal: { AWS: '*', Service: 'x' } }, { NotAction: 's3:PutObject' }, { NotPrincipal: '*' }),
    ...changed({ Condition: { IpAddress: { 'aws:SourceIp': '10.0.0.0/8' } } }, { Resource: `${ARN}/one-object` }),
    ...changed({ Resource: `${ARN}/*/x*` }, { Resource: `${ARN}/\${aws:username}/*` }, { Resource: `${ARN}/a/*` }),
    ...changed({ Resource: 'arn:aws:s3:::other/*' }, { Resource: `${ARN}*` }, { Action: 's3:FlyObject' }),
    ...[when(''), { Condition: { StringLike: { 's3:prefix': 'a/*' } } }].map((more) =>
      policy({ ...list, ...more }, get),
    ),
    ...[
      policy(get),
      policy(list),
      policy(allow('s3:*', [ARN, `${ARN}/*`])),
      policy(allow('s3:GetBucketLocation', ARN)),
    ],
    ...['{', '[]', '{"Statement":[]}'],
    `{"Statement":[{"Effect":"Deny"}],"St\\u0061tement":${JSON.stringify([list, get])}}`,
  ]
  for (const text of texts) {
    let rules: PolicyEntry[] | undefined
    try {
      rules = toEntries(text, BUCKET)
    } catch (error) {
      t.match(error, { code: 'MalformedPolicy' }, text)
    }
    t.equal(rules, undefined, text)
  }
})

t.test('a pattern made to be slow is matched in no time', async (t) => {
  const started = process.cpuUsage()
  t.throws(() => entriesOf(allow(`s3:${'*a'.repeat(4000)}`, ARN)), { code: 'MalformedPolicy' })
  t.ok(process.cpuUsage(started).user < 1_000_000)
})

const prefix = fc.stringMatching(/^[ab/]{0,4}$/)
const ACTIONS: readonly PublicAction[] = ['list', 'get', 'put', 'delete']

/** Every name that could tell two sets of rules over these prefixes apart. */
const names = (() => {
  const all = ['']
  for (const length of [1, 2, 3, 4, 5])
    for (const one of all.filter((name) => name.length === length - 1)) all.push(...['a', 'b', '/'].map((c) => one + c))
  return all
})()

t.test('no document is given more than it asks for', async (t) => {
  const resource = prefix.map((one) => `${ARN}/${one}*`)
  const action = fc.constantFrom('s3:GetObject', 's3:ListBucket', 's3:ListBucketMultipartUploads', 's3:Get*', ...WRITES)
  const statement = fc
    .record({
      actions: fc.uniqueArray(action, { minLength: 1, maxLength: 7 }),
      resources: fc.uniqueArray(resource, { minLength: 1, maxLength: 2 }),
      on: fc.option(prefix, { nil: undefined }),
    })
    .chain(({ actions, resources, on }) =>
      fc.constantFrom(
        allow(actions, [ARN, ...resources]),
        allow(['s3:ListBucket'], ARN, on === undefined ? {} : when(on)),
        allow(['s3:ListBucketMultipartUploads', ...WRITES], [ARN, ...resources]),
      ),
    )
  let accepted = 0
  fc.assert(
    fc.property(fc.array(statement, { minLength: 1, maxLength: 3 }), (statements) => {
      const rules = toEntries(policy(...statements), BUCKET)
      if (rules === undefined) return true
      accepted++
      return names.every((name) => ACTIONS.every((one) => allows(rules, one, name) === asksFor(statements, one, name)))
    }),
    { numRuns: 600 },
  )
  t.ok(accepted > 20, `${accepted} documents were accepted`)
})

/** What a document means by S3's rules, written down in another way. */
function asksFor(statements: readonly ReturnType<typeof allow>[], action: PublicAction, name: string): boolean {
  const word = { list: 's3:ListBucket', get: 's3:GetObject', put: 's3:PutObject', delete: 's3:DeleteObject' }[action]
  return statements.some((one) => {
    const actions = [one.Action].flat() as string[]
    const resources = [one.Resource].flat() as string[]
    const condition = (one as { Condition?: { StringEquals: { 's3:prefix': string } } }).Condition
    if (!actions.includes(word)) return false
    if (action === 'list')
      return resources.includes(ARN) && (!condition || condition.StringEquals['s3:prefix'] === name)
    return resources.some((arn) => arn !== ARN && `${ARN}/${name}`.startsWith(arn.slice(0, -1)))
  })
}
