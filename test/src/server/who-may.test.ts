import t from 'tap'
import { canonicalId } from '../../../src/auth/credentials.js'
import { SecondAccount } from '../../support/gateway/second-account.js'
import { startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import { signedCall } from '../../support/sign/signed-request.js'

const pair = (name: string) => ({ accessKeyId: name, secretAccessKey: `${name}-secret-key` })
type Keys = ReturnType<typeof pair>

const root = pair('owner')
const reader = pair('reader')
const limited = pair('limited')
const second = pair('second')
const BUCKET = 'photos'
const ARN = `arn:aws:s3:::${BUCKET}`

const rights = [{ bucket: BUCKET, prefix: 'in/', access: 'read' as const }]
const policies = [
  {
    Version: '2012-10-17',
    Statement: [
      { Sid: 'Read', Effect: 'Allow', Action: ['s3:Get*', 'access:*'], Resource: '*' },
      { Sid: 'NotThat', Effect: 'Deny', Action: 's3:GetObject', Resource: `${ARN}/in/b` },
    ],
  },
]

t.test('who may', async (t) => {
  const gateway = await startEmbedded(t, 'full')
  const hop = await SecondAccount.start(t, gateway, { looks: false })
  const identities = [
    root,
    { ...reader, rights, actions: ['access:GetDecision'] },
    { ...limited, policies },
    { ...second, account: hop.account },
  ]
  const { endpoint } = await startDealProxy(t, { ...gateway, url: hop.url }, { identities })
  const call = (keys: Keys, method: string, target: string, body?: string | object) =>
    signedCall(endpoint, keys, method, target, { body })
  const done = async (method: string, target: string, body?: string) => {
    const answer = await call(root, method, target, body)
    t.equal(Math.floor(answer.status / 100), 2, `${method} ${target} ${answer.body}`)
  }
  const decision = async (keys: Keys, query: Record<string, string>) => {
    const { bucket, ...asked } = query
    const path = `/-/access/v1/decisions/${bucket}?${new URLSearchParams(asked)}`
    const { status, body } = await call(keys, 'GET', path)
    const { Decision = '', Reason = '', ...others } = JSON.parse(body) as Readonly<Record<string, string>>
    return { ...others, status, Decision, Reason }
  }
  const setPolicy = (...Statement: object[]) =>
    done('PUT', `/${BUCKET}?policy=`, JSON.stringify({ Version: '2012-10-17', Statement }))
  await done('PUT', `/${BUCKET}`)
  for (const key of ['in/a', 'in/b', 'out']) await done('PUT', `/${BUCKET}/${key}`, 'content')

  const everyone: Record<string, Keys | undefined> = { root, reader, limited, second, nobody: undefined }
  const requests = [
    ['s3:GetObject', 'GET', 'in/a'],
    ['s3:GetObject', 'GET', 'in/b'],
    ['s3:GetObject', 'GET', 'out'],
    ['s3:PutObject', 'PUT', 'in/a'],
    ['s3:DeleteObject', 'DELETE', 'in/b'],
    ['s3:GetObjectTagging', 'GET', 'in/a', '?tagging='],
    ['s3:ListBucket', 'GET', ''],
    ['s3:GetBucketVersioning', 'GET', '', '?versioning='],
    ['s3:GetBucketPolicy', 'GET', '', '?policy='],
    ['s3:PutBucketPolicy', 'PUT', '', '?policy='],
    ['deal:CreateObjectDeal', 'POST', 'in/a', '?x-deal='],
    ['deal:ListObjectHistory', 'GET', 'in/a', '?x-deal-history='],
  ] as const

  /** What the server says of each request, and what it does: what it allows may fail for another reason. */
  async function compare(where: string) {
    for (const [name, keys] of Object.entries(everyone)) {
      for (const [action, method, key, query = ''] of requests) {
        const asked = {
          bucket: BUCKET,
          action,
          ...(key && { key }),
          ...(keys && { 'access-key-id': keys.accessKeyId }),
        }
        const said = await decision(root, asked)
        // Looks only, or a body that is refused later, so that each request finds the same bucket.
        const change = method === 'GET' || method === 'DELETE' ? undefined : method === 'POST' ? '{}' : 'x'
        const [verb, target] = method === 'DELETE' ? ['DELETE', `${key}-none`] : [method, key]
        const path = `/${BUCKET}/${target}${query}`
        const answer = keys
          ? await call(keys, verb, path, change)
          : await fetch(endpoint + path, { method: verb, body: change ?? null })
        const body = typeof answer.body === 'string' ? answer.body : await (answer as Response).text()
        const refused = answer.status === 403 && /AccessDenied/.test(body)
        t.equal(
          said.Decision,
          refused ? 'Refused' : 'Allowed',
          `${where}: ${name} ${action} ${key}: ${said.Reason} ${body}`,
        )
      }
    }
  }
  await compare('without a policy')
  await setPolicy({ Sid: 'Open', Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: `${ARN}/in/*` })
  await compare('open to everybody')
  t.match(await decision(root, { bucket: BUCKET, key: 'in/a', action: 's3:GetObject' }), {
    ...{ status: 200, Decision: 'Allowed', Principal: '*' },
    Reason: /statement 1 \(Open\) allows it/,
  })
  const AWS = `arn:aws:iam::${canonicalId({ account: hop.account })}:root`
  await setPolicy(
    { Effect: 'Allow', Principal: { AWS }, Action: ['s3:GetObject', 's3:ListBucket'], Resource: [ARN, `${ARN}/*`] },
    { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: `${ARN}/out` },
  )
  await compare('for another account')
  const out = { bucket: BUCKET, key: 'out', action: 's3:GetObject', 'access-key-id': 'owner' }
  t.match(await decision(root, out), { Decision: 'Refused', Reason: /bucket policy: statement 2 denies it/ })
  const arn = `arn:aws:iam::${canonicalId({})}:user/limited`
  t.match(await decision(root, { ...out, key: 'in/b', 'access-key-id': arn }), {
    ...{ Decision: 'Refused', Principal: arn, Reason: /policy of the identity: statement 2 \(NotThat\)/ },
  })

  // What may be asked, and by whom.
  t.match(await decision(second, out), { status: 403, Code: 'AccessDenied' }, 'about a bucket of another account')
  t.match(await decision(reader, out), { status: 403 }, 'by a key pair that may not read the policy')
  t.match(await decision(limited, { ...out, 'access-key-id': 'limited' }), { status: 200 }, 'about itself')
  for (const id of ['owner', 'second', 'none', `arn:aws:iam::${'0'.repeat(64)}:user/limited`]) {
    const asked = { ...out, 'access-key-id': id }
    t.match(await decision(limited, asked), { status: 400, Code: 'InvalidArgument', Message: /no key pair/ }, id)
  }
  t.equal((await call(second, 'PUT', '/seconds')).status, 200)
  const theirs = { bucket: 'seconds', action: 's3:ListBucket', 'access-key-id': 'second' }
  t.match(await decision(second, theirs), { Decision: 'Allowed' })
  t.match(await decision(second, { ...theirs, 'access-key-id': 'limited' }), { status: 400 }, 'of another account')
  t.match(await decision(root, { ...out, bucket: 'none' }), { status: 404, Code: 'NoSuchBucket' })
  for (const action of ['s3:Nothing', 's3:ListBucket', '"><script>'])
    t.match(await decision(root, { ...out, action }), { status: 400, Code: 'InvalidArgument' }, action)
  t.match(await decision(root, { bucket: BUCKET, action: 's3:GetObject' }), { status: 400 }, 'without its key')
  const allowed = { status: 200, Decision: 'Allowed' }
  t.match(await decision(root, { ...out, key: 'a\u202e"<x>\n%2F' }), allowed)
  t.match(await decision(root, { ...out, key: 'a/../b' }), { Decision: 'Refused', Reason: /path element/ })
  t.equal((await fetch(`${endpoint}/-/access/v1/decisions/${BUCKET}?action=s3:GetObject`)).status, 403)

  // Which buckets are public.
  const buckets = async (keys: Keys, query = '') =>
    JSON.parse((await call(keys, 'GET', `/-/access/v1/buckets?${query}`)).body)
  const open = { Effect: 'Allow', Principal: '*', Action: 's3:*', Resource: [ARN, `${ARN}/*`] }
  await setPolicy(open)
  await done('PUT', '/albums')
  const photos = { Bucket: BUCKET, Public: true }
  // The gateway of the test shows both accounts the same buckets.
  const seconds = { Bucket: 'seconds', Public: false }
  t.strictSame((await buckets(root)).Buckets, [{ Bucket: 'albums', Public: false }, photos, seconds])
  const first = await buckets(root, 'from=photos&max-items=1')
  t.strictSame(first.Buckets, [photos])
  const next = await buckets(root, `from=photos&max-items=1&continuation-token=${first.NextContinuationToken}`)
  t.strictSame([next.Buckets, next.IsTruncated], [[seconds], false])
  t.strictSame((await buckets(reader)).Buckets, [{ Bucket: BUCKET }], 'of a bucket that it may not read as a whole')
  t.match((await buckets(limited)).Buckets[1], photos, 'its policy allows both actions')

  // The linter.
  const findings = async (Policy: string, keys = root) => {
    const { status, body } = await call(keys, 'POST', '/-/access/v1/policy-findings', { Bucket: BUCKET, Policy })
    return status === 200 ? JSON.parse(body).Findings : status
  }
  const of = (...Statement: object[]) => findings(JSON.stringify({ Version: '2012-10-17', Statement }))
  t.match(await findings('{'), [{ Level: 'error', Message: /valid JSON/ }])
  t.match(await of({ ...open, Effect: 'Permit' }, open, { ...open, Action: 's3:Nothing' }), [
    { Level: 'error', Statement: 1, Message: /Invalid effect/ },
    { Level: 'warning', Statement: 2, Message: /everybody/ },
    { Level: 'warning', Statement: 2, Message: /store or delete/ },
    { Level: 'error', Statement: 3, Message: /invalid action/ },
  ])
  const named = { ...open, Principal: { AWS } }
  t.same(await of(named), [])
  t.match(await of({ ...named, Action: 'deal:*' }), [{ Level: 'warning', Message: /deal:CreateObjectDeal/ }])
  t.match(await of({ ...open, Effect: 'Deny' }), [{ Level: 'warning', Message: /also to the owner/ }])
  t.same(await findings('{}', second), 403)
  const block =
    '<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy></PublicAccessBlockConfiguration>'
  await done('PUT', `/${BUCKET}?publicAccessBlock=`, block)
  t.match((await of(open))[0], { Level: 'error', Message: /BlockPublicPolicy/ })
})
