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
  readonly folder: string
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
  const target = { endpoint: server.endpoint, server, s3: sdkFor(t, server), folder: temporaryFolder(t) }
  for (const kind of ['none', 'readonly', 'writeonly', 'readwrite'])
    await t.test(`without a signature, ${kind}`, (t) => anonymous(t, target, kind))
  await t.test('without a signature, a prefix', (t) => anonymousPrefix(t, target))
  await t.test('limits', (t) => limits(t, target))
  // The gateway makes no difference to what the programs send and read.
  if (server.mode === 'legacy') return
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

async function fill(target: Target, bucket: string, ...keys: string[]): Promise<void> {
  await target.s3.createBucket({ Bucket: bucket })
  for (const Key of keys) {
    const Body = `content of ${Key}`
    await target.s3.putObject({ Bucket: bucket, Key, Body, ContentType: 'text/x-test', Metadata: { a: 'b' } })
  }
}

async function anonymous(t: Test, target: Target, kind: string): Promise<void> {
  const bucket = `open-${kind}`
  await fill(target, bucket, 'a.txt', 'dir/b.txt', 'dir/sub/c.txt')
  if (kind !== 'none') await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf(kind, bucket) })
  const url = `${target.endpoint}/${bucket}`
  const reads = kind === 'readonly' || kind === 'readwrite'
  const writes = kind === 'writeonly' || kind === 'readwrite'
  /** @param status the one of a request that is allowed; 0 for one that is in no case */
  const expect = async (allowed: boolean, status: number, path: string, asked: Asked = {}) => {
    const answer = await unsigned(url + path, asked)
    const wanted = allowed ? status : 403
    t.equal(answer.status, wanted, `${asked.method ?? 'GET'} ${path}: ${wanted}\n${answer.body}`)
    if (!allowed && asked.method !== 'HEAD') t.equal(answer.code, 'AccessDenied')
    return answer
  }
  const put = (body: Buffer | string = '', headers = {}) => ({ method: 'PUT', body: Buffer.from(body), headers })

  const whole = await expect(reads, 200, '/dir/b.txt')
  if (reads) t.equal(whole.body, 'content of dir/b.txt')
  const part = await expect(reads, 206, '/dir/b.txt', { headers: { range: 'bytes=0-6' } })
  if (reads) t.equal(part.body, 'content')
  await expect(reads, 416, '/dir/b.txt', { headers: { range: 'bytes=1000-' } })
  const head = await expect(reads, 200, '/a.txt', { method: 'HEAD' })
  if (reads) t.match(head.headers, { 'content-type': 'text/x-test', 'x-amz-meta-a': 'b' })
  await expect(reads, 404, '/missing.txt')
  await expect(reads, 404, '/missing.txt', { method: 'HEAD' })
  await expect(true, 400, '/a.txt?response-content-type=text/html')
  const flat = await expect(reads, 200, '?list-type=2')
  const keys = [...flat.body.matchAll(/<Key>([^<]*)<\/Key><Last/g)].map(([, key]) => key)
  if (reads) t.same(keys, ['a.txt', 'dir/b.txt', 'dir/sub/c.txt'])
  const level = await expect(reads, 200, '?prefix=dir/&delimiter=/')
  if (reads) t.match(level.body, /<Key>dir\/b.txt<.*<Prefix>dir\/sub\/</s)
  // The rules are about current objects, which are all that a gateway without versions has.
  await expect(reads && target.server.mode === 'legacy', 200, '?versions')
  for (const query of ['?list-type=2&max-keys=0', '?prefix=nothing-here', '?location']) await expect(reads, 200, query)
  await expect(reads, 200, '', { method: 'HEAD' })
  const others = ['acl', 'policy', 'uploads', 'versioning', 'publicAccessBlock', 'ownershipControls', 'policyStatus']
  for (const path of [...others.map((query) => `?${query}`), '/a.txt?acl']) await expect(false, 0, path)

  await expect(writes, 200, '/new.txt', put('uploaded', { 'content-type': 'text/x-up' }))
  await expect(writes, 200, '/big.bin', put(Buffer.alloc(3 * 1024 * 1024, 'big')))
  await expect(writes, 200, '/folder/', put())
  await expect(false, 0, '/copy.txt', put('', { 'x-amz-copy-source': `/${bucket}/a.txt` }))
  await expect(false, 0, '/multi.bin?uploads', { method: 'POST' })
  await expect(false, 0, '/a.txt', put('x', { 'x-amz-tagging': 'a=b' }))
  if (reads && writes) {
    t.equal((await unsigned(`${url}/new.txt`)).body, 'uploaded')
    await expect(true, 412, '/new.txt', put('x', { 'if-none-match': '*' }))
  }
  for (const path of ['/new.txt', '/folder/', '/dir/']) await expect(writes, 204, path, { method: 'DELETE' })
  if (reads) t.equal((await unsigned(`${url}/dir/b.txt`)).status, 200, 'what lies in a folder stays')
  const remove = '<Delete><Object><Key>a.txt</Key></Object></Delete>'
  const removal = { method: 'POST', headers: contentMd5(remove), body: Buffer.from(remove) }
  const removed = await unsigned(`${url}?delete`, removal)
  t.match(removed.body, writes ? '<Deleted><Key>a.txt</Key>' : '<Code>AccessDenied</Code>')

  await expect(false, 0, '', { method: 'DELETE' })
  t.equal((await unsigned(`${target.endpoint}/new-${kind}`, { method: 'PUT' })).status, 403)
  t.equal((await unsigned(target.endpoint)).status, 403)
  t.equal((await unsigned(`${target.endpoint}/no-such-bucket/x`)).status, 404)

  await target.s3.deleteBucketPolicy({ Bucket: bucket })
  await expect(false, 0, '/dir/b.txt')
  await expect(false, 0, '?list-type=2')
  await expect(false, 0, '/again.txt', put('x'))
}

async function anonymousPrefix(t: Test, target: Target): Promise<void> {
  const bucket = 'open-prefix'
  await fill(target, bucket, 'pub/a.txt', 'pub/sub/b.txt', 'public-not.txt', 'secret/c.txt')
  await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf('readonly', bucket, 'pub/') })
  const url = `${target.endpoint}/${bucket}`
  for (const [path, status] of [
    ['/pub/a.txt', 200],
    ['/pub/sub/b.txt', 200],
    ['/pub/none', 404],
    ['/public-not.txt', 403],
    ['/secret/c.txt', 403],
    ['/secret/none', 403],
    ['?prefix=pub/', 200],
    ['?prefix=pub/sub/', 403],
    ['?prefix=', 403],
    ['?prefix=none/', 403],
    ['?location', 403],
  ] as const)
    t.equal((await unsigned(url + path)).status, status, path)
  const flat = await unsigned(`${url}?list-type=2&prefix=pub/`)
  t.same(
    [...flat.body.matchAll(/<Key>([^<]*)/g)].map(([, key]) => key),
    ['pub/a.txt', 'pub/sub/b.txt'],
  )

  await target.s3.deleteBucketPolicy({ Bucket: bucket })
  await target.s3.putBucketPolicy({ Bucket: bucket, Policy: policyOf('readwrite', bucket, 'pub/') })
  t.equal((await unsigned(`${url}?prefix=pub/sub/`)).status, 403, 'an empty list is no leave to list for who may write')
  await target.s3.deleteBucketPolicy({ Bucket: bucket })
  const blocks = { BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true, RestrictPublicBuckets: true }
  await target.s3.putPublicAccessBlock({ Bucket: bucket, PublicAccessBlockConfiguration: blocks })
  t.equal((await unsigned(`${url}/pub/a.txt`)).status, 403)
}

async function awsCli(t: Test, target: Target): Promise<void> {
  const [version] = await awsVersions(t)
  if (version === undefined) return
  const bucket = 'aws-access'
  await fill(target, bucket, 'a.txt')
  const cli = new Aws(version, target.server, target.folder)
  const aws = (command: string, ...args: string[]) => cli.api(command, '--bucket', bucket, ...args)
  t.match(await cli.apiFailing('get-bucket-policy', '--bucket', bucket), 'NoSuchBucketPolicy')
  const document = policyOf('readonly', bucket)
  t.same(await aws('put-bucket-policy', '--policy', document), {})
  t.equal((await aws('get-bucket-policy')).Policy, document, 'as it was put, with its names')
  t.same(await aws('get-bucket-policy-status'), { PolicyStatus: { IsPublic: true } })

  const acl = await aws('get-bucket-acl')
  t.match(acl.Grants, [
    { Grantee: { Type: 'Group', URI: ALL_USERS }, Permission: 'READ' },
    { Grantee: { Type: 'CanonicalUser', ID: acl.Owner.ID }, Permission: 'FULL_CONTROL' },
  ])
  t.same(await aws('put-bucket-acl', '--acl', 'public-read'), {}, 'what is true is accepted')
  t.same((await aws('get-object-acl', '--key', 'a.txt')).Grants, acl.Grants)
  const same = JSON.stringify({ Grants: acl.Grants, Owner: acl.Owner })
  t.same(await aws('put-object-acl', '--key', 'a.txt', '--access-control-policy', same), {})
  t.same(await aws('delete-bucket-policy'), {})

  const owned = { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] }
  t.same(await aws('get-bucket-ownership-controls'), { OwnershipControls: owned })
  t.same(await aws('put-bucket-ownership-controls', '--ownership-controls', JSON.stringify(owned)), {})

  const blocks = {
    BlockPublicAcls: true,
    IgnorePublicAcls: false,
    BlockPublicPolicy: true,
    RestrictPublicBuckets: false,
  }
  const block = ['--public-access-block-configuration', JSON.stringify(blocks)]
  t.same(await aws('put-public-access-block', ...block), {})
  t.same(await aws('get-public-access-block'), { PublicAccessBlockConfiguration: blocks })
  t.same(await aws('delete-public-access-block'), {})
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
  t.match(await ask(s3.getBucketPolicyStatus({ Bucket })), { PolicyStatus: { IsPublic: false } })
  t.match(await ask(s3.getBucketPolicy({ Bucket: 'not-there' })), /^NoSuchBucket:/)
  t.match(
    await ask(s3.putBucketPolicy({ Bucket: 'not-there', Policy: policyOf('readonly', 'not-there') })),
    /^NoSuchBucket:/,
  )
  await put(document)
  const resource = arn(Bucket, '/*')
  const deny = [{ Sid: 'No', Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: resource }]
  t.match(await put(JSON.stringify({ Statement: deny })), { $metadata: { httpStatusCode: 204 } })
  t.equal((await unsigned(`${target.endpoint}/${Bucket}/a.txt`)).status, 403)
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
  t.match(await bucketAcl({ ACL: 'private' }), /^AccessControlListNotSupported.*DeleteBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'public-read-write' }), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'authenticated-read' }), /^AccessControlListNotSupported/)
  t.match(await bucketAcl({ ACL: 'odd' }), /^InvalidArgument/)
  t.match(await bucketAcl({ GrantRead: 'id=abc' }), /^AccessControlListNotSupported/)
  t.match(await bucketAcl({}), /^MissingSecurityHeader/)
  t.match(await ask(s3.getObjectAcl({ Bucket, Key: 'none' })), /^NoSuchKey/)
  const { Owner, Grants } = await ask(s3.getObjectAcl(object))
  const policy = (grants: unknown, owner: unknown = Owner) =>
    objectAcl({ AccessControlPolicy: { Owner: owner, Grants: grants } })
  t.match(await policy(Grants), accepted)
  t.match(await policy(Grants.slice(0, -1)), /^AccessControlListNotSupported.*FULL_CONTROL/)
  t.match(await policy(Grants, { ID: 'f'.repeat(64) }), /^AccessControlListNotSupported/)
  const group = { Type: 'Group', URI: 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers' }
  t.match(await policy([...Grants, { Grantee: group, Permission: 'READ' }]), /^AccessControlListNotSupported/)
  t.match(
    await policy([...Grants, { Grantee: { Type: 'Group', URI: ALL_USERS }, Permission: 'READ_ACP' }]),
    /^AccessControlListNotSupported.*READ_ACP/,
  )

  const written = { Bucket, Key: 'w.txt', ACL: 'public-read' } as const
  t.match(await ask(s3.putObject(written)), accepted)
  t.match(await ask(s3.putObject({ ...written, ACL: 'private' })), accepted)
  t.match(await ask(s3.deleteBucketPolicy({ Bucket })), { $metadata: { httpStatusCode: 204 } })
  t.equal((await ask(s3.getBucketAcl({ Bucket }))).Grants.length, 1)
  t.match(await bucketAcl({ ACL: 'private' }), accepted)
  t.match(await objectAcl({ ACL: 'private' }), accepted)
  const refused = { ...written, Key: 'refused.txt' }
  t.match(await ask(s3.putObject(refused)), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(await ask(s3.copyObject({ ...refused, CopySource: `${Bucket}/a.txt` })), /^AccessControlListNotSupported/)
  t.match(await ask(s3.createMultipartUpload(refused)), /^AccessControlListNotSupported/)
  t.match(await ask(s3.headObject({ Bucket, Key: refused.Key })), /^NotFound/, 'nothing was stored')
  t.match(
    await ask(s3.createBucket({ Bucket: 'new-open', ACL: 'public-read' })),
    /^InvalidBucketAclWithObjectOwnership/,
  )
  t.match(
    await ask(s3.createBucket({ Bucket: 'new-open', ObjectOwnership: 'ObjectWriter', ACL: 'public-read' })),
    accepted,
  )
  const rules = { OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerPreferred' as const }] } }
  t.match(await ask(s3.putBucketOwnershipControls({ Bucket, ...rules })), accepted)
  const enforced = { OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' as const }] } }
  t.match(await ask(s3.putBucketOwnershipControls({ Bucket, ...enforced })), accepted)

  const block = (blocks: object) => ask(s3.putPublicAccessBlock({ Bucket, PublicAccessBlockConfiguration: blocks }))
  t.match(await ask(s3.getPublicAccessBlock({ Bucket })), /^NoSuchPublicAccessBlockConfiguration/)
  t.match(await block({ BlockPublicPolicy: true, BlockPublicAcls: true }), accepted)
  t.match(await put(document), /^AccessDenied.*BlockPublicPolicy/)
  t.match(await objectAcl({ ACL: 'public-read' }), /^AccessDenied.*BlockPublicAcls/)
  t.match(await block({ BlockPublicPolicy: false }), accepted)
  await put(document)
  t.equal(await get(), document)
  t.match(await block({ RestrictPublicBuckets: true }), accepted)
  t.equal(await get(), document, 'the policy stays')
}
