import type { S3 } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { contentMd5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { sdkFor } from '../support/programs/sdk.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { answerTo, open } from '../support/sign/send.js'

interface Target {
  readonly endpoint: string
  readonly server: Dealgate
  readonly s3: S3
}

const arn = (bucket: string, rest = '') => `arn:aws:s3:::${bucket}${rest}`
const WRITES = ['s3:AbortMultipartUpload', 's3:DeleteObject', 's3:ListMultipartUploadParts', 's3:PutObject']
const ALL_USERS = 'http://acs.amazonaws.com/groups/global/AllUsers'
const everybody = { Effect: 'Allow', Principal: { AWS: ['*'] } }

/** The policy documents that clients make for the three rules of the gateway. */
function policyOf(kind: string, bucket: string, prefix = ''): string {
  const reads = kind !== 'writeonly'
  const writes = kind !== 'readonly'
  const condition = prefix === '' ? {} : { Condition: { StringEquals: { 's3:prefix': [prefix] } } }
  const statements = [
    { ...everybody, Sid: 'Where', Action: ['s3:GetBucketLocation'], Resource: [arn(bucket)] },
    reads && { ...everybody, Sid: 'List', Action: ['s3:ListBucket'], Resource: [arn(bucket)], ...condition },
    writes && { ...everybody, Action: ['s3:ListBucketMultipartUploads'], Resource: [arn(bucket)] },
    {
      ...everybody,
      Action: [...(reads ? ['s3:GetObject'] : []), ...(writes ? WRITES : [])],
      Resource: [arn(bucket, `/${prefix}*`)],
    },
  ]
  return JSON.stringify({ Version: '2012-10-17', Id: 'mine', Statement: statements.filter(Boolean) })
}

inEachMode(t, async (t, server) => {
  const target = { endpoint: server.endpoint, server, s3: sdkFor(t, server) }
  for (const kind of ['readonly', 'writeonly', 'readwrite'])
    await t.test(`without a signature, ${kind}`, (t) => anonymous(t, target, kind))
  await t.test('without a signature, a prefix', (t) => anonymousPrefix(t, target))
  // The gateway makes no difference to what follows.
  if (server.mode === 'legacy') return
  await t.test('limits', (t) => limits(t, target))
  await t.test('aws s3api', (t) => awsCli(t, target))
})

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: Buffer
}

/** Sends a request without a signature. */
async function unsigned(url: string, { method = 'GET', headers = {}, body = Buffer.of() }: Asked = {}) {
  const { origin, pathname, search } = new URL(url)
  const length: Record<string, string> = /PUT|POST/.test(method) ? { 'content-length': String(body.length) } : {}
  const request = open({ endpoint: origin }, method, `${pathname}${search}`, { ...length, ...headers })
  const answered = answerTo(request)
  request.end(body)
  const answer = await answered
  return { ...answer, body: answer.body.toString() }
}

async function fill({ s3 }: Target, Bucket: string, ...keys: string[]): Promise<void> {
  await s3.createBucket({ Bucket })
  for (const Key of keys) await s3.putObject({ Bucket, Key, Body: `content of ${Key}`, Metadata: { a: 'b' } })
}

async function anonymous(t: Test, target: Target, kind: string): Promise<void> {
  const bucket = `open-${kind}`
  await fill(target, bucket, 'a.txt', 'dir/b.txt', 'dir/sub/c.txt')
  await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf(kind, bucket) })
  const reads = kind !== 'writeonly'
  const writes = kind !== 'readonly'
  /** @param status the one of a request that is allowed; 0 for one that is in no case */
  const expect = async (allowed: boolean, status: number, path: string, asked: Asked = {}) => {
    const answer = await unsigned(`${target.endpoint}/${bucket}${path}`, asked)
    const wanted = allowed ? status : 403
    t.equal(answer.status, wanted, `${asked.method ?? 'GET'} ${path}: ${wanted}\n${answer.body}`)
    return answer
  }
  const put = (body = '', headers = {}) => ({ method: 'PUT', body: Buffer.from(body), headers })

  const whole = await expect(reads, 200, '/dir/b.txt')
  t.match(whole.body, reads ? 'content of dir/b.txt' : '<Code>AccessDenied</Code>')
  await expect(reads, 206, '/dir/b.txt', { headers: { range: 'bytes=0-6' } })
  const head = await expect(reads, 200, '/a.txt', { method: 'HEAD' })
  if (reads) t.match(head.headers, { 'x-amz-meta-a': 'b' })
  await expect(reads, 404, '/missing.txt')
  await expect(true, 400, '/a.txt?response-content-type=text/html')
  const level = await expect(reads, 200, '?prefix=dir/&delimiter=/')
  if (reads) t.match(level.body, /<Key>dir\/b.txt<.*<Prefix>dir\/sub\/</s)
  // The rules are about current objects, which are all that a gateway without versions has.
  await expect(reads && target.server.mode === 'legacy', 200, '?versions')
  for (const path of ['?list-type=2', '?location']) await expect(reads, 200, path)
  for (const path of ['?acl', '?policy', '?uploads', '?versioning', '/a.txt?acl']) await expect(false, 0, path)

  await expect(writes, 200, '/new.txt', put('uploaded'))
  await expect(writes, 200, '/folder/', put())
  await expect(false, 0, '/copy.txt', put('', { 'x-amz-copy-source': `/${bucket}/a.txt` }))
  await expect(false, 0, '/multi.bin?uploads', { method: 'POST' })
  await expect(false, 0, '/a.txt', put('x', { 'x-amz-tagging': 'a=b' }))
  if (reads && writes) await expect(true, 412, '/new.txt', put('x', { 'if-none-match': '*' }))
  for (const path of ['/new.txt', '/folder/', '/dir/']) await expect(writes, 204, path, { method: 'DELETE' })
  await expect(reads, 200, '/dir/b.txt')
  const remove = '<Delete><Object><Key>a.txt</Key></Object></Delete>'
  const removal = { method: 'POST', headers: contentMd5(remove), body: Buffer.from(remove) }
  const removed = await unsigned(`${target.endpoint}/${bucket}?delete`, removal)
  t.match(removed.body, writes ? '<Deleted><Key>a.txt</Key>' : '<Code>AccessDenied</Code>')
  await expect(false, 0, '', { method: 'DELETE' })

  await target.s3.deleteBucketPolicy({ Bucket: bucket })
  for (const path of ['/dir/b.txt', '?list-type=2']) await expect(false, 0, path)
  await expect(false, 0, '/again.txt', put('x'))
}

async function anonymousPrefix(t: Test, target: Target): Promise<void> {
  const bucket = 'open-prefix'
  await fill(target, bucket, 'pub/a.txt', 'public-not.txt')
  await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf('readonly', bucket, 'pub/') })
  const url = `${target.endpoint}/${bucket}`
  for (const [path, status] of [
    ['/pub/a.txt', 200],
    ['/pub/none', 404],
    ['/public-not.txt', 403],
    ['?prefix=pub/', 200],
    ['?prefix=pub/sub/', 403],
    ['?prefix=', 403],
    ['?location', 403],
  ] as const)
    t.equal((await unsigned(url + path)).status, status, path)

  await target.s3.deleteBucketPolicy({ Bucket: bucket })
  await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf('readwrite', bucket, 'pub/') })
  t.equal((await unsigned(`${url}?prefix=pub/sub/`)).status, 403, 'an empty list is no leave to list for who may write')
}

async function awsCli(t: Test, target: Target): Promise<void> {
  const [version] = await awsVersions(t)
  if (version === undefined) return
  const bucket = 'aws-access'
  await fill(target, bucket, 'a.txt')
  const cli = new Aws(version, target.server, temporaryFolder(t))
  const aws = (command: string, ...args: string[]) => cli.api(command, '--bucket', bucket, ...args)
  const document = policyOf('readonly', bucket)
  t.same(await aws('put-bucket-policy', '--policy', document), {})
  t.equal((await aws('get-bucket-policy')).Policy, document, 'as it was put, with its names')
  t.same(await aws('get-bucket-policy-status'), { PolicyStatus: { IsPublic: true } })
  const acl = await aws('get-bucket-acl')
  t.match(acl.Grants, [
    { Grantee: { Type: 'Group', URI: ALL_USERS }, Permission: 'READ' },
    { Grantee: { Type: 'CanonicalUser', ID: acl.Owner.ID }, Permission: 'FULL_CONTROL' },
  ])
  const same = JSON.stringify({ Grants: acl.Grants, Owner: acl.Owner })
  t.same(await aws('put-object-acl', '--key', 'a.txt', '--access-control-policy', same), {}, 'what is true is accepted')
  t.same(await aws('delete-bucket-policy'), {})
  const owned = { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] }
  t.same(await aws('get-bucket-ownership-controls'), { OwnershipControls: owned })
  const blocks = {
    ...{ BlockPublicAcls: true, IgnorePublicAcls: false },
    ...{ BlockPublicPolicy: true, RestrictPublicBuckets: false },
  }
  await aws('put-public-access-block', '--public-access-block-configuration', JSON.stringify(blocks))
  t.same(await aws('get-public-access-block'), { PublicAccessBlockConfiguration: blocks })
}

/** What is refused, and what is accepted because it is true. */
async function limits(t: Test, target: Target): Promise<void> {
  const Bucket = 'limits'
  const object = { Bucket, Key: 'a.txt' }
  await fill(target, Bucket, 'a.txt')
  const { s3 } = target
  // biome-ignore lint/suspicious/noExplicitAny: every answer has a type of its own
  const ask = (sent: Promise<unknown>): Promise<any> => sent.catch(({ name, message }: Error) => `${name}: ${message}`)
  const put = (Policy: string) => ask(s3.putBucketPolicy({ Bucket, Policy }))
  const get = async () => (await ask(s3.getBucketPolicy({ Bucket }))).Policy
  const document = policyOf('readonly', Bucket)
  t.match(await ask(s3.getBucketPolicy({ Bucket })), /^NoSuchBucketPolicy:/)
  t.match(await ask(s3.getBucketPolicyStatus({ Bucket })), { PolicyStatus: { IsPublic: false } })
  t.match(await ask(s3.getBucketPolicy({ Bucket: 'not-there' })), /^NoSuchBucket:/)
  const deny = { Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: arn(Bucket, '/*') }
  await put(JSON.stringify({ Statement: deny }))
  t.match(await ask(s3.headObject(object)), /^(403|Unknown|AccessDenied)/, 'a Deny binds the owner, too')
  await put(document)
  t.match(await put('{"Statement": 7}'), /^MalformedPolicy/)
  t.match(await put(`${document}${' '.repeat(20 * 1024)}`), /^MaxMessageLengthExceeded/)
  t.equal(await get(), document, 'a refused policy changes nothing')

  const bucketAcl = (acl: object) => ask(s3.putBucketAcl({ Bucket, ...acl }))
  const objectAcl = (acl: object) => ask(s3.putObjectAcl({ ...object, ...acl }))
  const accepted = { $metadata: { httpStatusCode: 200 } }
  t.match(await objectAcl({ ACL: 'public-read' }), accepted)
  t.match(await objectAcl({ ACL: 'private' }), /^AccessControlListNotSupported.*DeleteBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'public-read-write' }), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'odd' }), /^InvalidArgument/)
  t.match(await bucketAcl({ GrantRead: 'id=abc' }), /^InvalidArgument/)
  t.match(await bucketAcl({}), /^MissingSecurityHeader/)
  t.match(await ask(s3.getObjectAcl({ Bucket, Key: 'none' })), /^NoSuchKey/)
  const { Owner, Grants } = await ask(s3.getObjectAcl(object))
  const policy = (grants: unknown, owner: unknown = Owner) =>
    objectAcl({ AccessControlPolicy: { Owner: owner, Grants: grants } })
  t.match(await policy(Grants.slice(0, -1)), /^AccessControlListNotSupported.*FULL_CONTROL/)
  t.match(await policy(Grants, { ID: 'f'.repeat(64) }), /^AccessControlListNotSupported/)
  const group = { Type: 'Group', URI: ALL_USERS }
  t.match(
    await policy([...Grants, { Grantee: group, Permission: 'READ_ACP' }]),
    /^AccessControlListNotSupported.*READ_ACP/,
  )

  await ask(s3.deleteBucketPolicy({ Bucket }))
  t.match(await bucketAcl({ ACL: 'private' }), accepted)
  const refused = { Bucket, Key: 'refused.txt', ACL: 'public-read' } as const
  t.match(await ask(s3.putObject(refused)), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(await ask(s3.copyObject({ ...refused, CopySource: `${Bucket}/a.txt` })), /^AccessControlListNotSupported/)
  t.match(await ask(s3.createMultipartUpload(refused)), /^AccessControlListNotSupported/)
  t.match(await ask(s3.headObject({ Bucket, Key: refused.Key })), /^NotFound/, 'nothing was stored')
  const created = { Bucket: 'new-open', ACL: 'public-read' } as const
  t.match(await ask(s3.createBucket(created)), /^InvalidBucketAclWithObjectOwnership/)
  t.match(await ask(s3.createBucket({ ...created, ObjectOwnership: 'ObjectWriter' })), accepted)

  const block = (blocks: object) => ask(s3.putPublicAccessBlock({ Bucket, PublicAccessBlockConfiguration: blocks }))
  t.match(await ask(s3.getPublicAccessBlock({ Bucket })), /^NoSuchPublicAccessBlockConfiguration/)
  t.match(await block({ BlockPublicPolicy: true, BlockPublicAcls: true }), accepted)
  t.match(await put(document), /^AccessDenied.*BlockPublicPolicy/)
  t.match(await objectAcl({ ACL: 'public-read' }), /^AccessDenied.*BlockPublicAcls/)
  t.match(await block({ BlockPublicPolicy: false }), accepted)
  await put(document)
  t.match(await block({ RestrictPublicBuckets: true }), accepted)
  t.equal((await unsigned(`${target.endpoint}/${Bucket}/a.txt`)).status, 403)
  t.equal(await get(), document, 'the policy stays')
}
