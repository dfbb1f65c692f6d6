import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketPolicyCommand,
  GetBucketAclCommand,
  GetBucketPolicyCommand,
  GetBucketPolicyStatusCommand,
  GetObjectAclCommand,
  GetPublicAccessBlockCommand,
  HeadObjectCommand,
  PutBucketAclCommand,
  PutBucketOwnershipControlsCommand,
  PutBucketPolicyCommand,
  PutObjectAclCommand,
  PutObjectCommand,
  PutPublicAccessBlockCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Client as MinioClient } from 'minio'
import t, { type Test } from 'tap'
import { contentMd5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findAwsClis, findClient, isolatedEnv, runAny } from '../support/programs/run.js'
import { startDealgate } from '../support/server/dealgate.js'
import { modes } from '../support/server/modes.js'
import { answerTo, open } from '../support/sign/send.js'

const exec = promisify(execFile)

interface Target {
  readonly mode: (typeof modes)[number]
  readonly endpoint: string
  readonly accessKey: string
  readonly secretKey: string
  readonly s3: S3Client
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

for (const mode of modes) {
  t.test(mode, async (t) => {
    const folder = temporaryFolder(t)
    const { endpoint, region, accessKey, secretKey } = await startDealgate(t, { mode, data: join(folder, 'data') })
    const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey }
    const s3 = new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      credentials,
      maxAttempts: 1,
    })
    t.teardown(() => s3.destroy())
    const target = { mode, endpoint, region, accessKey, secretKey, s3, folder }
    await writeFile(join(folder, 'up'), 'uploaded')
    await writeFile(join(folder, 'big'), Buffer.alloc(3 * 1024 * 1024, 'big'))
    for (const kind of ['none', 'readonly', 'writeonly', 'readwrite'])
      await t.test(`without a signature, ${kind}`, (t) => anonymous(t, target, kind))
    await t.test('without a signature, a prefix', (t) => anonymousPrefix(t, target))
    await t.test('limits', (t) => limits(t, target))
    // The gateway makes no difference to what the programs send and read.
    if (mode === 'legacy') return
    await t.test('aws s3api', (t) => awsCli(t, target))
    await t.test('s3cmd', (t) => s3cmd(t, target))
    await t.test('minio-js', (t) => minioJs(t, target))
  })
}

interface Answer {
  readonly status: number
  readonly body: string
}

async function byCurl(url: string, ...args: string[]): Promise<Answer> {
  const { stdout } = await exec('curl', ['-s', '-w', '\n%{http_code}', ...args, url], { env: isolatedEnv({}) })
  const at = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(at + 1)), body: stdout.slice(0, at) }
}

/** As curl sends it with these options, without a process. */
async function asCurl(url: string, ...args: string[]): Promise<Answer> {
  const { origin, pathname, search } = new URL(url)
  const headers: Record<string, string> = {}
  let method = 'GET'
  let sent = Buffer.of()
  for (let [option, value = ''] = args.splice(0, 2); option !== undefined; [option, value = ''] = args.splice(0, 2)) {
    if (option === '--head') {
      method = 'HEAD'
      args.unshift(...(value === '' ? [] : [value]))
    } else if (option === '-X') method = value
    else if (option === '-r') headers.range = `bytes=${value}`
    else if (option === '-H') headers[value.split(': ')[0] ?? ''] = value.split(': ')[1] ?? ''
    else if (option === '-T' || option === '-d') {
      method = option === '-T' ? 'PUT' : 'POST'
      sent = option === '-T' ? await readFile(value) : Buffer.from(value)
      headers['content-length'] = String(sent.length)
      if (option === '-d') headers['content-type'] = 'application/x-www-form-urlencoded'
    } else throw new Error(`unknown option ${option}`)
  }
  const request = open({ endpoint: origin }, method, `${pathname}${search}`, headers)
  const answered = answerTo(request)
  request.end(sent)
  const { status, headers: told, body } = await answered
  const lines = Object.entries(told).map(([name, value]) => `${name}: ${value}\n`)
  return { status, body: method === 'HEAD' ? lines.join('') : body.toString() }
}

async function fill(target: Target, bucket: string, ...keys: string[]): Promise<void> {
  await target.s3.send(new CreateBucketCommand({ Bucket: bucket }))
  for (const Key of keys) {
    const Body = `content of ${Key}`
    await target.s3.send(
      new PutObjectCommand({ Bucket: bucket, Key, Body, ContentType: 'text/x-test', Metadata: { a: 'b' } }),
    )
  }
}

async function anonymous(t: Test, target: Target, kind: string): Promise<void> {
  // The requests are the same: curl sends them once in each mode.
  const curl = kind === (target.mode === 'full' ? 'readwrite' : 'readonly') ? byCurl : asCurl
  const bucket = `open-${kind}`
  await fill(target, bucket, 'a.txt', 'dir/b.txt', 'dir/sub/c.txt')
  if (kind !== 'none')
    await target.s3.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: policyOf(kind, bucket) }))
  const url = `${target.endpoint}/${bucket}`
  const reads = kind === 'readonly' || kind === 'readwrite'
  const writes = kind === 'writeonly' || kind === 'readwrite'
  const expect = async (allowed: boolean, status: number, path: string, ...args: string[]) => {
    const answer = await curl(url + path, ...args)
    const wanted = allowed ? status : 403
    t.equal(answer.status, wanted, `${args.join(' ')} ${path}: ${wanted}\n${answer.body}`)
    if (!allowed && !args.includes('--head')) t.match(answer.body, '<Code>AccessDenied</Code>')
    return answer.body
  }

  const whole = await expect(reads, 200, '/dir/b.txt')
  if (reads) t.equal(whole, 'content of dir/b.txt')
  const part = await expect(reads, 206, '/dir/b.txt', '-r', '0-6')
  if (reads) t.equal(part, 'content')
  await expect(reads, 416, '/dir/b.txt', '-r', '1000-')
  const head = await expect(reads, 200, '/a.txt', '--head')
  if (reads) t.match(head, /content-type: text\/x-test.*x-amz-meta-a: b/is)
  await expect(reads, 404, '/missing.txt')
  await expect(reads, 404, '/missing.txt', '--head')
  await expect(true, 400, '/a.txt?response-content-type=text/html')
  const flat = await expect(reads, 200, '?list-type=2')
  if (reads)
    t.same(
      [...flat.matchAll(/<Key>([^<]*)/g)].map(([, key]) => key),
      ['a.txt', 'dir/b.txt', 'dir/sub/c.txt'],
    )
  const level = await expect(reads, 200, '?prefix=dir/&delimiter=/')
  if (reads) t.match(level, /<Key>dir\/b.txt<.*<Prefix>dir\/sub\/</s)
  await expect(reads, 200, '?versions')
  await expect(reads, 200, '?list-type=2&max-keys=0')
  await expect(reads, 200, '?prefix=nothing-here')
  await expect(reads, 200, '?location')
  await expect(reads, 200, '', '--head')
  for (const other of [
    '?acl',
    '?policy',
    '?uploads',
    '?versioning',
    '?publicAccessBlock',
    '?ownershipControls',
    '?policyStatus',
  ])
    await expect(false, 0, other)
  await expect(false, 0, '/a.txt?acl')

  await expect(writes, 200, '/new.txt', '-T', join(target.folder, 'up'), '-H', 'content-type: text/x-up')
  await expect(writes, 200, '/big.bin', '-T', join(target.folder, 'big'))
  await expect(writes, 200, '/folder/', '-X', 'PUT', '-H', 'content-length: 0')
  await expect(false, 0, '/copy.txt', '-X', 'PUT', '-H', `x-amz-copy-source: /${bucket}/a.txt`)
  await expect(false, 0, '/multi.bin?uploads', '-X', 'POST')
  await expect(false, 0, '/a.txt', '-T', join(target.folder, 'up'), '-H', 'x-amz-tagging: a=b')
  if (writes) {
    const { status, body } = await curl(url, '-X', 'POST', '-d', '')
    t.match(body, '<Code>', `${status}`)
  }
  if (reads && writes) {
    t.equal((await curl(`${url}/new.txt`)).body, 'uploaded')
    await expect(true, 412, '/new.txt', '-T', join(target.folder, 'up'), '-H', 'if-none-match: *')
  }
  await expect(writes, 204, '/new.txt', '-X', 'DELETE')
  await expect(writes, 204, '/folder/', '-X', 'DELETE')
  await expect(writes, 204, '/dir/', '-X', 'DELETE')
  if (reads) t.equal((await curl(`${url}/dir/b.txt`)).status, 200, 'what lies in a folder stays')
  const remove = '<Delete><Object><Key>a.txt</Key></Object></Delete>'
  const removed = await curl(
    `${url}?delete`,
    '-X',
    'POST',
    '-H',
    `content-md5: ${contentMd5(remove)['content-md5']}`,
    '-d',
    remove,
  )
  t.match(removed.body, writes ? '<Deleted><Key>a.txt</Key>' : '<Code>AccessDenied</Code>')

  await expect(false, 0, '', '-X', 'DELETE')
  t.equal((await curl(`${target.endpoint}/new-${kind}`, '-X', 'PUT')).status, 403)
  t.equal((await curl(target.endpoint)).status, 403)
  t.equal((await curl(`${target.endpoint}/no-such-bucket/x`)).status, 404)
  t.equal((await curl(`${target.endpoint}/-/ready`)).status, 200)

  await target.s3.send(new DeleteBucketPolicyCommand({ Bucket: bucket }))
  await expect(false, 0, '/dir/b.txt')
  await expect(false, 0, '?list-type=2')
  await expect(false, 0, '/again.txt', '-T', join(target.folder, 'up'))
}

async function anonymousPrefix(t: Test, target: Target): Promise<void> {
  const curl = target.mode === 'full' ? byCurl : asCurl
  const bucket = 'open-prefix'
  await fill(target, bucket, 'pub/a.txt', 'pub/sub/b.txt', 'public-not.txt', 'secret/c.txt')
  await target.s3.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: policyOf('readonly', bucket, 'pub/') }))
  const url = `${target.endpoint}/${bucket}`
  const statuses = async (...paths: string[]) => {
    const found: Record<string, number> = {}
    for (const path of paths) found[path] = (await curl(url + path)).status
    return found
  }
  t.same(
    await statuses(
      '/pub/a.txt',
      '/pub/sub/b.txt',
      '/pub/none',
      '/public-not.txt',
      '/secret/c.txt',
      '/secret/none',
      '?prefix=pub/',
      '?prefix=pub/sub/',
      '?prefix=',
      '?prefix=none/',
      '?location',
    ),
    {
      ...{ '/pub/a.txt': 200, '/pub/sub/b.txt': 200, '/pub/none': 404, '/public-not.txt': 403, '/secret/c.txt': 403 },
      ...{ '/secret/none': 403, '?prefix=pub/': 200, '?prefix=pub/sub/': 403, '?prefix=': 403, '?prefix=none/': 403 },
      ...{ '?location': 403 },
    },
  )
  const flat = await curl(`${url}?list-type=2&prefix=pub/`)
  t.same(
    [...flat.body.matchAll(/<Key>([^<]*)/g)].map(([, key]) => key),
    ['pub/a.txt', 'pub/sub/b.txt'],
  )

  await target.s3.send(new DeleteBucketPolicyCommand({ Bucket: bucket }))
  await target.s3.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: policyOf('readwrite', bucket, 'pub/') }))
  t.equal(
    (await curl(`${url}?prefix=pub/sub/`)).status,
    403,
    'an empty list for who may write there is no leave to list',
  )
  await target.s3.send(new DeleteBucketPolicyCommand({ Bucket: bucket }))
  const blocks = { BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true, RestrictPublicBuckets: true }
  await target.s3.send(new PutPublicAccessBlockCommand({ Bucket: bucket, PublicAccessBlockConfiguration: blocks }))
  t.equal((await curl(`${url}/pub/a.txt`)).status, 403)
}

async function awsCli(t: Test, target: Target): Promise<void> {
  const program = (await findAwsClis(t)).at(-1)
  if (program === undefined) return
  const bucket = 'aws-access'
  await fill(target, bucket, 'a.txt')
  const env = {
    HOME: target.folder,
    AWS_ACCESS_KEY_ID: target.accessKey,
    AWS_SECRET_ACCESS_KEY: target.secretKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  const aws = async (command: string, ...args: string[]) => {
    const all = ['--endpoint-url', target.endpoint, '--output', 'json', 's3api', command, '--bucket', bucket, ...args]
    const { code, stdout, stderr } = await runAny(program, all, { env })
    if (code !== 0) return stderr
    return stdout.length === 0 ? {} : JSON.parse(stdout.toString())
  }
  t.match(await aws('get-bucket-policy'), 'NoSuchBucketPolicy')
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
  // biome-ignore lint/suspicious/noExplicitAny: every command has types of its own
  const ask = async (command: any): Promise<any> => {
    try {
      return await target.s3.send(command)
    } catch (error) {
      const { name, message } = error as Error
      return `${name}: ${message}`
    }
  }
  const put = (Policy: string) => ask(new PutBucketPolicyCommand({ Bucket, Policy }))
  const get = async () => (await ask(new GetBucketPolicyCommand({ Bucket }))).Policy
  const document = policyOf('readonly', Bucket)
  t.match(await ask(new GetBucketPolicyStatusCommand({ Bucket })), /^NoSuchBucketPolicy/)
  t.match(await ask(new GetBucketPolicyCommand({ Bucket: 'not-there' })), /^NoSuchBucket:/)
  t.match(
    await ask(new PutBucketPolicyCommand({ Bucket: 'not-there', Policy: policyOf('readonly', 'not-there') })),
    /^NoSuchBucket:/,
  )
  await put(document)
  const resource = arn(Bucket, '/*')
  const deny = [{ Sid: 'No', Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: resource }]
  t.match(await put(JSON.stringify({ Statement: deny })), { $metadata: { httpStatusCode: 204 } })
  t.equal((await byCurl(`${target.endpoint}/${Bucket}/a.txt`)).status, 403)
  t.match(await ask(new HeadObjectCommand(object)), /^(403|Unknown|AccessDenied)/, 'a Deny binds the owner, too')
  await put(document)
  t.match(await put('{"Statement": 7}'), /^MalformedPolicy/)
  t.match(await put(`${document}${' '.repeat(20 * 1024)}`), /^MaxMessageLengthExceeded/)
  t.equal(await get(), document, 'a refused policy changes nothing')

  const bucketAcl = (acl: object) => ask(new PutBucketAclCommand({ Bucket, ...acl }))
  const objectAcl = (acl: object) => ask(new PutObjectAclCommand({ ...object, ...acl }))
  const accepted = { $metadata: { httpStatusCode: 200 } }
  t.match(await objectAcl({ ACL: 'public-read' }), accepted)
  t.match(await objectAcl({ ACL: 'private' }), /^AccessControlListNotSupported.*DeleteBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'private' }), /^AccessControlListNotSupported.*DeleteBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'public-read-write' }), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(await bucketAcl({ ACL: 'authenticated-read' }), /^AccessControlListNotSupported/)
  t.match(await bucketAcl({ ACL: 'odd' }), /^InvalidArgument/)
  t.match(await bucketAcl({ GrantRead: 'id=abc' }), /^AccessControlListNotSupported/)
  t.match(await bucketAcl({}), /^MissingSecurityHeader/)
  t.match(await ask(new GetObjectAclCommand({ Bucket, Key: 'none' })), /^NoSuchKey/)
  const { Owner, Grants } = await ask(new GetObjectAclCommand(object))
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
  t.match(await ask(new PutObjectCommand(written)), accepted)
  t.match(await ask(new PutObjectCommand({ ...written, ACL: 'private' })), accepted)
  t.match(await ask(new DeleteBucketPolicyCommand({ Bucket })), { $metadata: { httpStatusCode: 204 } })
  t.equal((await ask(new GetBucketAclCommand({ Bucket }))).Grants.length, 1)
  t.match(await bucketAcl({ ACL: 'private' }), accepted)
  t.match(await objectAcl({ ACL: 'private' }), accepted)
  const refused = { ...written, Key: 'refused.txt' }
  t.match(await ask(new PutObjectCommand(refused)), /^AccessControlListNotSupported.*PutBucketPolicy/)
  t.match(
    await ask(new CopyObjectCommand({ ...refused, CopySource: `${Bucket}/a.txt` })),
    /^AccessControlListNotSupported/,
  )
  t.match(await ask(new CreateMultipartUploadCommand(refused)), /^AccessControlListNotSupported/)
  t.match(await ask(new HeadObjectCommand({ Bucket, Key: refused.Key })), /^NotFound/, 'nothing was stored')
  t.match(
    await ask(new CreateBucketCommand({ Bucket: 'new-open', ACL: 'public-read' })),
    /^InvalidBucketAclWithObjectOwnership/,
  )
  t.match(
    await ask(new CreateBucketCommand({ Bucket: 'new-open', ObjectOwnership: 'ObjectWriter', ACL: 'public-read' })),
    accepted,
  )
  const rules = { OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerPreferred' as const }] } }
  t.match(await ask(new PutBucketOwnershipControlsCommand({ Bucket, ...rules })), accepted)
  const enforced = { OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' as const }] } }
  t.match(await ask(new PutBucketOwnershipControlsCommand({ Bucket, ...enforced })), accepted)

  const block = (blocks: object) =>
    ask(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: blocks }))
  t.match(await ask(new GetPublicAccessBlockCommand({ Bucket })), /^NoSuchPublicAccessBlockConfiguration/)
  t.match(await block({ BlockPublicPolicy: true, BlockPublicAcls: true }), accepted)
  t.match(await put(document), /^AccessDenied.*BlockPublicPolicy/)
  t.match(await objectAcl({ ACL: 'public-read' }), /^AccessDenied.*BlockPublicAcls/)
  t.match(await block({ BlockPublicPolicy: false }), accepted)
  await put(document)
  t.equal(await get(), document)
  t.match(await block({ RestrictPublicBuckets: true }), /^NotImplemented.*DeleteBucketPolicy/)
}

async function s3cmd(t: Test, target: Target): Promise<void> {
  const program = await findClient(t, 's3cmd')
  if (!program) return
  const bucket = 's3cmd-access'
  await fill(target, bucket, 'a.txt')
  const { host } = new URL(target.endpoint)
  const config = join(target.folder, 's3cfg')
  const settings = {
    access_key: target.accessKey,
    secret_key: target.secretKey,
    host_base: host,
    host_bucket: host,
    use_https: 'False',
    max_retries: '1',
  }
  await writeFile(
    config,
    `[default]\n${Object.entries(settings)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join('')}`,
  )
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await runAny(program, ['-c', config, ...args], { env: { HOME: target.folder } })
    return stdout.toString() + stderr
  }
  const file = join(target.folder, 'policy.json')
  await writeFile(file, policyOf('readonly', bucket))
  t.match(await run('setpolicy', file, `s3://${bucket}`), 'Policy updated')
  const info = await run('info', `s3://${bucket}`)
  t.match(info, /Policy: *\{"Version"/)
  t.match(info, /ACL: *\*anon\*: READ/)
  t.match(await run('-v', 'setacl', '--acl-public', `s3://${bucket}`), /already Public/)
  t.match(await run('setacl', '--acl-private', `s3://${bucket}/a.txt`), 'AccessControlListNotSupported')
  t.match(await run('delpolicy', `s3://${bucket}`), 'Policy deleted')
  t.match(await run('info', `s3://${bucket}/a.txt`), /ACL: *\w+: FULL_CONTROL/)
  t.match(await run('setacl', '--acl-public', `s3://${bucket}/a.txt`), 'AccessControlListNotSupported')
  t.match(await run('-v', 'setacl', '--acl-private', `s3://${bucket}/a.txt`), /already Private/)
}

async function minioJs(t: Test, target: Target): Promise<void> {
  const bucket = 'minio-access'
  const { hostname, port } = new URL(target.endpoint)
  const client = new MinioClient({
    endPoint: hostname,
    port: Number(port),
    useSSL: false,
    accessKey: target.accessKey,
    secretKey: target.secretKey,
    region: 'us-east-1',
  })
  await client.makeBucket(bucket)
  await t.rejects(client.getBucketPolicy(bucket), { code: 'NoSuchBucketPolicy' })
  const document = policyOf('readwrite', bucket, 'in/')
  await client.setBucketPolicy(bucket, document)
  t.equal(await client.getBucketPolicy(bucket), document)
  await client.setBucketPolicy(bucket, '')
  await t.rejects(client.getBucketPolicy(bucket), { code: 'NoSuchBucketPolicy' })
}
