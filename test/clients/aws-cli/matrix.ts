import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type ChecksumAlgorithm, createChecksum } from '../../../src/common/checksums/checksums.js'
import { prepareXxHash } from '../../../src/common/checksums/xxhash.js'
import {
  bytes,
  hashesOf,
  hashTree,
  KiB,
  MiB,
  md5,
  sha256,
  sha256OfFile,
  writeTree,
} from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { bareKeys, controlKeys, fileKeys, MARKER } from '../../support/content/keys.js'
import { Aws, type AwsVersion } from '../../support/programs/aws-cli.js'
import { run } from '../../support/programs/run.js'
import type { Dealgate } from '../../support/server/dealgate.js'

await prepareXxHash()

/**
 * All versions against one server: folders and odd keys of `aws s3` with each, and either `aws s3api` or the rest of
 * `aws s3`, so that several share the modes between them. Each version calls everything, and each mode sees everything.
 */
export async function allVersions(t: Test, versions: readonly AwsVersion[], server: Dealgate): Promise<void> {
  for (const [i, version] of versions.entries()) {
    const withApi = (i % 2 === 0) === (server.mode === 'legacy')
    const all = versions.length === 1
    await t.test(version.name, (t) => matrix(t, version, server, { files: all || !withApi, api: all || withApi }))
  }
}

/** Which parts of the matrix to run, besides folders and odd keys. */
interface Parts {
  readonly files: boolean
  readonly api: boolean
}

async function matrix(t: Test, version: AwsVersion, server: Dealgate, parts: Parts): Promise<void> {
  const aws = new Aws(version, server, temporaryFolder(t))
  const bucket = `cli-${version.name.replace(/\W/g, '-')}`
  if (parts.files) await t.test('s3 files', (t) => files(t, aws, `${bucket}-files`))
  await t.test('s3 folders', (t) => folders(t, aws, `${bucket}-folders`))
  await t.test('odd keys', (t) => oddKeys(t, aws, `${bucket}-keys`))
  if (!parts.api) return
  await t.test('s3api buckets and listings', (t) => listings(t, aws, `${bucket}-lists`))
  await t.test('s3api objects', (t) => objects(t, aws, `${bucket}-objects`))
  await t.test('s3api checksums', (t) => checksums(t, aws, `${bucket}-sums`))
  await t.test('s3api multipart', (t) => multipart(t, aws, `${bucket}-multi`))
  await t.test('s3api tagging', (t) => tagging(t, aws, `${bucket}-tags`))
  t.same(
    OPERATIONS.map(commandOf).filter((command) => !aws.used.has(command)),
    [],
    'every one was called',
  )
}

/** The operations that every store has; those on its settings have tests of their own. */
const OPERATIONS = [
  ...['ListBuckets', 'CreateBucket', 'DeleteBucket', 'HeadBucket', 'GetBucketLocation', 'GetBucketVersioning'],
  ...[
    'ListObjects',
    'ListObjectsV2',
    'ListObjectVersions',
    'PutObject',
    'GetObject',
    'HeadObject',
    'GetObjectAttributes',
  ],
  ...['DeleteObject', 'DeleteObjects', 'CopyObject', 'CreateMultipartUpload', 'UploadPart', 'UploadPartCopy'],
  ...['CompleteMultipartUpload', 'AbortMultipartUpload', 'ListParts', 'ListMultipartUploads'],
  ...['PutObjectTagging', 'GetObjectTagging', 'DeleteObjectTagging'],
  ...['PutBucketTagging', 'GetBucketTagging', 'DeleteBucketTagging'],
]

/** `ListObjectsV2` -> `list-objects-v2` */
function commandOf(operation: string): string {
  return operation.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toLowerCase()
}

async function files(t: Test, aws: Aws, bucket: string): Promise<void> {
  t.match(await aws.s3('mb', `s3://${bucket}`), `make_bucket: ${bucket}`)
  t.match(await aws.s3('ls'), ` ${bucket}\n`)
  // The largest is sent, copied and read in three parts of at most 8 MiB.
  const sizes = { empty: 0, one: 1, '5m': 5 * MiB, '17m': 17 * MiB }
  for (const [name, size] of Object.entries(sizes)) {
    const up = join(aws.home, `${name}.up`)
    const down = join(aws.home, `${name}.down`)
    const data = bytes(name, size)
    await writeFile(up, data)
    await aws.s3('cp', '--quiet', up, `s3://${bucket}/${name}`)
    await aws.s3('cp', '--quiet', `s3://${bucket}/${name}`, down)
    t.equal(await sha256OfFile(down), sha256(data), `${size} bytes come back`)
  }
  const listing = await aws.s3('ls', '--recursive', '--summarize', `s3://${bucket}`)
  for (const [name, size] of Object.entries(sizes)) t.match(listing, new RegExp(` ${size} ${name}\n`))
  t.match(listing, /Total Objects: 4/)
  t.equal(await aws.s3Code('ls', `s3://${bucket}/no-such-prefix/`), 1, 'ls of nothing ends with 1')

  await aws.s3('cp', '--quiet', `s3://${bucket}/5m`, `s3://${bucket}/copy`)
  await aws.s3('cp', '--quiet', `s3://${bucket}/17m`, `s3://${bucket}/copy17`)
  t.equal((await aws.api('head-object', '--bucket', bucket, '--key', 'copy17')).ContentLength, 17 * MiB)

  const moving = join(aws.home, 'moving')
  await writeFile(moving, 'moved')
  await aws.s3('mv', '--quiet', moving, `s3://${bucket}/moved-1`)
  await t.rejects(stat(moving), { code: 'ENOENT' }, 'mv takes the file away')
  await aws.s3('mv', '--quiet', `s3://${bucket}/moved-1`, `s3://${bucket}/moved-2`)
  await aws.s3('mv', '--quiet', `s3://${bucket}/moved-2`, moving)
  t.equal(await readFile(moving, 'utf8'), 'moved')
  t.notMatch(await aws.s3('ls', `s3://${bucket}`), 'moved')

  const url = (await aws.s3('presign', `s3://${bucket}/5m`, '--expires-in', '60')).trim()
  const fetched = await run('curl', ['-sS', '--fail', url])
  t.equal(md5(fetched), md5(bytes('5m', 5 * MiB)), 'presign gives a URL that curl can fetch')

  t.match(await aws.s3Failing('rb', `s3://${bucket}`), 'BucketNotEmpty')
  await aws.s3('rm', '--quiet', `s3://${bucket}/one`)
  await aws.s3('rm', '--quiet', '--recursive', `s3://${bucket}`)
  t.equal(await aws.s3('ls', '--recursive', `s3://${bucket}`), '', 'rm --recursive leaves nothing')
  t.match(await aws.s3('rb', `s3://${bucket}`), `remove_bucket: ${bucket}`)
  t.match(await aws.s3Failing('ls', `s3://${bucket}`), 'NoSuchBucket')
}

async function folders(t: Test, aws: Aws, bucket: string): Promise<void> {
  await aws.s3('mb', `s3://${bucket}`)
  const up = join(aws.home, 'sync-up')
  const down = join(aws.home, 'sync-down')
  const tree: Record<string, Buffer> = {
    'a.txt': bytes('a', 10),
    'a/b.txt': bytes('b', 20 * KiB),
    'a/c/d.bin': bytes('d', 300 * KiB),
    'a-b/e': bytes('e', 0),
    'z/deep/er/and/deeper': bytes('z', 1),
  }
  await writeTree(up, tree)
  await aws.s3('sync', '--quiet', up, `s3://${bucket}/tree`)
  t.equal(await aws.s3('sync', up, `s3://${bucket}/tree`), '', 'a second sync has nothing to do')
  await aws.s3('sync', '--quiet', `s3://${bucket}/tree`, down)
  t.same(await hashTree(down), hashesOf(tree), 'the folder comes back')
  t.equal(await aws.s3('sync', `s3://${bucket}/tree`, down), '', 'nor has one back')

  await rm(join(up, 'a/b.txt'))
  await writeFile(join(up, 'a.txt'), bytes('changed', 11))
  const gone = await aws.s3('sync', '--delete', up, `s3://${bucket}/tree`)
  t.match(gone, `delete: s3://${bucket}/tree/a/b.txt`)
  t.match(gone, 'tree/a.txt')
  await writeFile(join(down, 'extra'), 'x')
  await aws.s3('sync', '--quiet', '--delete', `s3://${bucket}/tree`, down)
  t.same(await hashTree(down), await hashTree(up), 'sync --delete back makes the folders equal')

  t.match(await aws.s3('ls', `s3://${bucket}/tree/`), /PRE a-b\/\n.*PRE a\/\n.*PRE z\/\n.* a\.txt\n/s)
  await aws.s3('cp', '--quiet', '--recursive', `s3://${bucket}/tree`, `s3://${bucket}/again`)
  await aws.s3('mv', '--quiet', '--recursive', `s3://${bucket}/again/`, `s3://${bucket}/moved/`)
  t.equal((await aws.s3('ls', '--recursive', `s3://${bucket}/moved/`)).trim().split('\n').length, 4)
  t.equal(await aws.s3Code('ls', `s3://${bucket}/again/`), 1)
  t.match(await aws.s3('rb', '--force', `s3://${bucket}`), `remove_bucket: ${bucket}`)
}

async function listings(t: Test, aws: Aws, bucket: string): Promise<void> {
  const on = ['--bucket', bucket]
  await aws.api('create-bucket', ...on)
  t.match(await aws.api('create-bucket', ...on), { Location: /./ }, 'again, as in us-east-1')
  t.match(await aws.apiFailing('create-bucket', '--bucket', 'Not_A_Name'), 'InvalidBucketName')
  await aws.api('head-bucket', ...on)
  t.match(await aws.apiFailing('head-bucket', '--bucket', 'no-such-bucket'), '404')
  t.equal((await aws.api('get-bucket-location', ...on)).LocationConstraint, null)
  t.same(await aws.api('get-bucket-versioning', ...on), {}, 'never versioned')
  const { Buckets, Owner } = await aws.api('list-buckets')
  t.ok(Buckets.some((found: { Name: string }) => found.Name === bucket))
  t.match(Owner.ID, /^[0-9a-f]{64}$/)
  if (aws.modern) t.same((await aws.api('list-buckets', '--prefix', bucket)).Buckets.length, 1)

  const keys = ['a-b', 'a/1', 'a/2', 'a0', 'b', 'é', '😀']
  for (const key of keys) await aws.api('put-object', ...on, '--key', key)
  type Named = { Key: string }
  const names = (list: Named[] = []) => list.map(({ Key }) => Key)
  const flat = await aws.api('list-objects-v2', ...on, '--page-size', '2', '--fetch-owner')
  t.same(names(flat.Contents), keys, 'all, over pages of two')
  t.equal(flat.Contents[0].Owner.ID, Owner.ID)
  const level = await aws.api('list-objects-v2', ...on, '--delimiter', '/', '--start-after', 'a-b')
  t.same(names(level.Contents), ['a0', 'b', 'é', '😀'])
  t.same(level.CommonPrefixes, [{ Prefix: 'a/' }])
  const paged = await aws.api('list-objects-v2', ...on, '--max-items', '3')
  const rest = await aws.api('list-objects-v2', ...on, '--starting-token', paged.NextToken)
  t.same([...names(paged.Contents), ...names(rest.Contents)], keys)
  const first = await aws.api('list-objects', ...on, '--delimiter', '/', '--page-size', '1')
  t.same(names(first.Contents), ['a-b', 'a0', 'b', 'é', '😀'], 'the first version pages with NextMarker')
  t.same(names((await aws.api('list-objects', ...on, '--prefix', 'a/')).Contents), ['a/1', 'a/2'])
  const versions = await aws.api('list-object-versions', ...on, '--page-size', '3')
  t.same(names(versions.Versions), keys)
  t.ok(versions.Versions.every((version: { VersionId: string }) => version.VersionId === 'null'))
  t.match(await aws.apiFailing('list-objects-v2', '--bucket', 'no-such-bucket'), 'NoSuchBucket')
  t.match(await aws.apiFailing('delete-bucket', ...on), 'BucketNotEmpty')

  const doomed = { Objects: [...keys, 'was/never/there'].map((Key) => ({ Key })) }
  const deleted = await aws.api('delete-objects', ...on, '--delete', JSON.stringify(doomed))
  t.equal(deleted.Deleted.length, keys.length + 1)
  t.equal(deleted.Errors, undefined)
  await aws.api('delete-bucket', ...on)
  t.match(await aws.apiFailing('delete-bucket', ...on), 'NoSuchBucket')
}

async function objects(t: Test, aws: Aws, bucket: string): Promise<void> {
  const on = ['--bucket', bucket]
  const object = [...on, '--key', 'the object']
  await aws.api('create-bucket', ...on)
  const file = join(aws.home, 'object.bin')
  const got = join(aws.home, 'object.got')
  const data = bytes('object', 100 * KiB)
  await writeFile(file, data)
  const headers = [
    ...['--content-type', 'text/x-odd; charset=utf-8', '--content-encoding', 'identity', '--content-language', 'de'],
    ...['--content-disposition', 'attachment; filename="x.txt"', '--cache-control', 'max-age=60'],
    ...['--expires', '2030-01-02T03:04:05Z', '--metadata', 'one=1,two=zwei und drei'],
  ]
  const put = await aws.api('put-object', ...object, '--body', file, ...headers)
  const ETag = `"${md5(data)}"`
  t.equal(put.ETag, ETag, 'the ETag is the MD5')

  const expected = {
    ETag,
    ContentLength: data.length,
    ContentType: 'text/x-odd; charset=utf-8',
    ContentEncoding: 'identity',
    ContentLanguage: 'de',
    ContentDisposition: 'attachment; filename="x.txt"',
    CacheControl: 'max-age=60',
    Metadata: { one: '1', two: 'zwei und drei' },
  }
  const head = await aws.api('head-object', ...object)
  t.match(head, expected)
  t.match(JSON.stringify(head), /2030-01-02T03:04:05|02 Jan 2030 03:04:05/)
  t.match(await aws.api('get-object', ...object, got), expected)
  t.same(await readFile(got), data)

  const range = async (value: string) => {
    const answer = await aws.api('get-object', ...object, '--range', value, got)
    return { range: answer.ContentRange, data: await readFile(got) }
  }
  const { length } = data
  t.same(await range('bytes=10-19'), { range: `bytes 10-19/${length}`, data: data.subarray(10, 20) })
  t.same(await range('bytes=-5'), { range: `bytes ${length - 5}-${length - 1}/${length}`, data: data.subarray(-5) })
  t.same(await range('bytes=102000-'), { range: `bytes 102000-${length - 1}/${length}`, data: data.subarray(102000) })
  t.match(await aws.apiFailing('get-object', ...object, '--range', `bytes=${length}-`, got), 'InvalidRange')
  t.match(await aws.api('get-object', ...object, '--part-number', '1', got), { ContentLength: length })
  t.match(await aws.apiFailing('get-object', ...object, '--part-number', '2', got), /InvalidPartNumber|416/)

  const other = '"0123456789abcdef0123456789abcdef"'
  await aws.api('get-object', ...object, '--if-match', ETag, got)
  t.match(await aws.apiFailing('get-object', ...object, '--if-match', other, got), 'PreconditionFailed')
  t.match(await aws.apiFailing('get-object', ...object, '--if-none-match', ETag, got), '304')
  t.match(
    await aws.apiFailing('head-object', ...object, '--if-modified-since', '2100-01-01T00:00:00Z'),
    /304|Not Modified/,
  )
  t.match(await aws.apiFailing('head-object', ...object, '--if-unmodified-since', '2001-01-01T00:00:00Z'), '412')
  const overridden = await aws.api(
    ...(['get-object', ...object, '--response-content-type', 'a/b', '--response-cache-control', 'no-cache', got] as [
      string,
      ...string[],
    ]),
  )
  t.match(overridden, { ContentType: 'a/b', CacheControl: 'no-cache' })
  t.match(await aws.apiFailing('get-object', ...on, '--key', 'none', got), 'NoSuchKey')
  t.match(await aws.apiFailing('head-object', ...on, '--key', 'none'), '404')
  t.match(await aws.apiFailing('get-object', '--bucket', 'no-such-bucket', '--key', 'none', got), 'NoSuchBucket')

  const from = ['--copy-source', `${bucket}/the object`]
  const copied = await aws.api('copy-object', ...on, '--key', 'copy', ...from)
  t.equal(copied.CopyObjectResult.ETag, ETag)
  t.match(await aws.api('head-object', ...on, '--key', 'copy'), { ...expected }, 'a copy takes everything along')
  const replace = ['--metadata-directive', 'REPLACE', '--metadata', 'three=3', '--content-type', 'new/type']
  await aws.api('copy-object', ...object, ...from, ...replace)
  const replaced = await aws.api('head-object', ...object)
  t.match(replaced, { ETag, ContentType: 'new/type' }, 'a copy onto itself keeps the bytes')
  t.same(replaced.Metadata, { three: '3' })
  t.match(await aws.apiFailing('copy-object', ...object, ...from), 'InvalidRequest')
  t.match(await aws.apiFailing('copy-object', ...object, '--copy-source', `${bucket}/none`), 'NoSuchKey')
  const ifMatch = ['--copy-source-if-match', other]
  t.match(await aws.apiFailing('copy-object', ...on, '--key', 'copy', ...from, ...ifMatch), 'PreconditionFailed')

  if (aws.modern) {
    const none = ['--if-none-match', '*']
    t.match(await aws.apiFailing('put-object', ...object, '--body', file, ...none), 'PreconditionFailed')
    await aws.api('put-object', ...on, '--key', 'fresh', '--body', file, ...none)
    await aws.api('put-object', ...object, '--body', file, '--if-match', ETag)
    t.match(await aws.apiFailing('put-object', ...object, '--body', file, '--if-match', other), 'PreconditionFailed')
    t.match(await aws.apiFailing('put-object', ...on, '--key', 'none', '--if-match', other), 'NoSuchKey')
  }
  await aws.api('put-object', ...on, '--key', 'legacy-md5', '--body', file, '--content-md5', md5Base64(data))
  t.match(
    await aws.apiFailing('put-object', ...object, '--body', file, '--content-md5', md5Base64(Buffer.of())),
    'BadDigest',
  )
  t.match(await aws.apiFailing('put-object', ...object, '--body', file, '--content-md5', 'nonsense'), 'InvalidDigest')
  t.match(await aws.apiFailing('put-object', ...object, '--storage-class', 'OUTPOSTS'), 'InvalidStorageClass')
  t.match(await aws.apiFailing('put-object', ...object, '--server-side-encryption', 'AES256'), 'NotImplemented')
  t.match(await aws.apiFailing('put-object', ...object, '--metadata', `big=${'x'.repeat(2100)}`), 'MetadataTooLarge')
  t.match(await aws.apiFailing('put-object', ...on, '--key', 'k'.repeat(1025)), 'KeyTooLongError')
  await aws.api('delete-object', ...object)
  await aws.api('delete-object', ...object)
  t.match(await aws.apiFailing('head-object', ...object), '404')
}

function md5Base64(data: Buffer): string {
  return Buffer.from(md5(data), 'hex').toString('base64')
}

function sumOf(algorithm: ChecksumAlgorithm, data: Buffer): string {
  const checksum = createChecksum(algorithm)
  checksum.update(data)
  return checksum.digest()
}

async function checksums(t: Test, aws: Aws, bucket: string): Promise<void> {
  const on = ['--bucket', bucket]
  await aws.api('create-bucket', ...on)
  const file = join(aws.home, 'sums.bin')
  const data = bytes('sums', 70 * KiB)
  await writeFile(file, data)
  /** Flag and member of the answer. CRC64NVME is younger than the older versions. */
  const flags: [ChecksumAlgorithm, string][] = [
    ['CRC32', '--checksum-crc32'],
    ['CRC32C', '--checksum-crc32-c'],
    ['SHA1', '--checksum-sha1'],
    ['SHA256', '--checksum-sha256'],
    ...(aws.modern ? [['CRC64NVME', '--checksum-crc64-nvme'] satisfies [ChecksumAlgorithm, string]] : []),
  ]
  for (const [algorithm, flag] of flags) {
    const object = [...on, '--key', algorithm]
    const value = sumOf(algorithm, data)
    const put = await aws.api('put-object', ...object, '--body', file, flag, value)
    t.equal(put[`Checksum${algorithm}`], value, `${algorithm} is verified and told`)
    const got = join(aws.home, 'sums.got')
    const answer = await aws.api('get-object', ...object, '--checksum-mode', 'ENABLED', got)
    t.equal(answer[`Checksum${algorithm}`], value, `${algorithm} comes with the object`)
    t.same(await readFile(got), data)
    const wrong = sumOf(algorithm, Buffer.from('something else'))
    t.match(await aws.apiFailing('put-object', ...object, '--body', file, flag, wrong), 'BadDigest')
  }
  // Those that every build of the program can compute by itself.
  for (const algorithm of ['CRC32', 'SHA1', 'SHA256'] as const) {
    const object = [...on, '--key', `computed-${algorithm}`]
    const put = await aws.api('put-object', ...object, '--body', file, '--checksum-algorithm', algorithm)
    t.equal(put[`Checksum${algorithm}`], sumOf(algorithm, data))
    const head = await aws.api('head-object', ...object, '--checksum-mode', 'ENABLED')
    t.equal(head[`Checksum${algorithm}`], sumOf(algorithm, data))
  }
  const wanted = ['--object-attributes', 'ETag', 'Checksum', 'ObjectSize']
  const attributes = await aws.api('get-object-attributes', ...on, '--key', 'SHA1', ...wanted)
  t.match(attributes, { ETag: md5(data), ObjectSize: data.length, Checksum: { ChecksumSHA1: sumOf('SHA1', data) } })
  const copy = ['--key', 'copy', '--copy-source', `${bucket}/SHA256`, '--checksum-algorithm', 'SHA1']
  const copied = await aws.api('copy-object', ...on, ...copy)
  t.equal(copied.CopyObjectResult.ChecksumSHA1, sumOf('SHA1', data), 'a copy can have another checksum')
}

async function multipart(t: Test, aws: Aws, bucket: string): Promise<void> {
  const on = ['--bucket', bucket]
  const object = [...on, '--key', 'in parts']
  await aws.api('create-bucket', ...on)
  const parts = [bytes('part 1', 5 * MiB), bytes('part 2', 5 * MiB + 1), bytes('part 3', 7)]
  const files = await Promise.all(
    parts.map(async (part, i) => {
      const file = join(aws.home, `part-${i + 1}`)
      await writeFile(file, part)
      return file
    }),
  )
  const fileOf = (i: number) => files[i] ?? ''
  const create = ['--content-type', 'x/y', '--metadata', 'kept=yes']
  const { UploadId } = await aws.api('create-multipart-upload', ...object, ...create)
  const upload = [...object, '--upload-id', UploadId]
  const part = (n: number, file: string) =>
    aws.api('upload-part', ...upload, '--part-number', String(n), '--body', file)
  // Out of order, with a gap, and one sent twice.
  const third = await part(7, fileOf(2))
  await part(1, fileOf(2))
  const first = await part(1, fileOf(0))
  t.equal(first.ETag, `"${md5(parts[0] as Buffer)}"`)
  await aws.api('put-object', ...on, '--key', 'source', '--body', fileOf(1))
  const copy = ['--part-number', '3', '--copy-source', `${bucket}/source`]
  const copied = await aws.api('upload-part-copy', ...upload, ...copy)
  const ranged = await aws.api(
    'upload-part-copy',
    ...[...upload, '--part-number', '9', '--copy-source', `${bucket}/source`, '--copy-source-range', 'bytes=1-9'],
  )
  t.equal(ranged.CopyPartResult.ETag, `"${md5((parts[1] as Buffer).subarray(1, 10))}"`)

  const listed = await aws.api('list-parts', ...upload, '--page-size', '2')
  t.same(
    listed.Parts.map(({ PartNumber, Size }: { PartNumber: number; Size: number }) => [PartNumber, Size]),
    [
      [1, 5 * MiB],
      [3, 5 * MiB + 1],
      [7, 7],
      [9, 9],
    ],
  )
  const uploads = await aws.api('list-multipart-uploads', ...on)
  t.match(uploads.Uploads, [{ Key: 'in parts', UploadId }])
  t.match(await aws.apiFailing('head-object', ...object), '404')

  const etags = [
    [1, first.ETag],
    [3, copied.CopyPartResult.ETag],
    [7, third.ETag],
  ] as const
  const document = (list: readonly (readonly [number, string])[]) =>
    JSON.stringify({ Parts: list.map(([PartNumber, ETag]) => ({ PartNumber, ETag })) })
  const complete = (list: readonly (readonly [number, string])[]) => [...upload, '--multipart-upload', document(list)]
  t.match(await aws.apiFailing('complete-multipart-upload', ...complete([...etags].reverse())), 'InvalidPartOrder')
  t.match(await aws.apiFailing('complete-multipart-upload', ...complete([[1, third.ETag]])), 'InvalidPart')
  const small = [etags[2], [9, ranged.CopyPartResult.ETag]] as const
  t.match(await aws.apiFailing('complete-multipart-upload', ...complete(small)), 'EntityTooSmall')
  const done = await aws.api('complete-multipart-upload', ...complete(etags))
  const whole = Buffer.concat(parts)
  const etag = `"${md5(Buffer.concat(parts.map((data) => Buffer.from(md5(data), 'hex'))))}-3"`
  t.equal(done.ETag, etag)
  const again = await aws.api('complete-multipart-upload', ...complete(etags))
  t.equal(again.ETag, etag, 'the same call again has the same answer')

  const got = join(aws.home, 'whole')
  const head = await aws.api('get-object', ...object, got)
  t.match(head, { ETag: etag, ContentLength: whole.length, ContentType: 'x/y', Metadata: { kept: 'yes' } })
  t.equal(await sha256OfFile(got), sha256(whole))
  const second = await aws.api('get-object', ...object, '--part-number', '2', got)
  t.match(second, { PartsCount: 3, ContentRange: `bytes ${5 * MiB}-${10 * MiB}/${whole.length}` })
  t.same(await readFile(got), parts[1])
  t.match(await aws.api('head-object', ...object, '--part-number', '3'), { ContentLength: 7, PartsCount: 3 })

  const doomed = await aws.api('create-multipart-upload', ...on, '--key', 'doomed')
  const abort = [...on, '--key', 'doomed', '--upload-id', doomed.UploadId]
  await aws.api('upload-part', ...abort, '--part-number', '1', '--body', fileOf(2))
  await aws.api('abort-multipart-upload', ...abort)
  t.match(await aws.apiFailing('list-parts', ...abort), 'NoSuchUpload')
  t.match(await aws.apiFailing('abort-multipart-upload', ...abort), 'NoSuchUpload')
  t.equal((await aws.api('list-multipart-uploads', ...on)).Uploads, undefined)
}

async function tagging(t: Test, aws: Aws, bucket: string): Promise<void> {
  const on = ['--bucket', bucket]
  const object = [...on, '--key', 'tagged']
  const TagSet = [{ Key: 'a key', Value: 'größe +/=' }]
  const tags = ['--tagging', JSON.stringify({ TagSet })]
  await aws.api('create-bucket', ...on)
  t.match(await aws.apiFailing('get-bucket-tagging', ...on), 'NoSuchTagSet')
  await aws.api('put-bucket-tagging', ...on, ...tags)
  t.same(await aws.api('get-bucket-tagging', ...on), { TagSet })
  await aws.api('delete-bucket-tagging', ...on)
  t.match(await aws.apiFailing('get-bucket-tagging', ...on), 'NoSuchTagSet')

  await aws.api('put-object', ...object, '--tagging', 'one=1&two=2')
  t.equal((await aws.api('get-object-tagging', ...object)).TagSet.length, 2, 'tags given with the object')
  await aws.api('put-object-tagging', ...object, ...tags)
  t.same((await aws.api('get-object-tagging', ...object)).TagSet, TagSet)
  await aws.api('delete-object-tagging', ...object)
  t.same((await aws.api('get-object-tagging', ...object)).TagSet, [])
  t.match(await aws.apiFailing('get-object-tagging', ...on, '--key', 'none'), 'NoSuchKey')
}

async function oddKeys(t: Test, aws: Aws, bucket: string): Promise<void> {
  await aws.s3('mb', `s3://${bucket}`)
  const up = join(aws.home, 'odd-up')
  const down = join(aws.home, 'odd-down')
  const names = [...fileKeys, ...controlKeys]
  const tree = Object.fromEntries(names.map((key) => [key, bytes(key, 100)]))
  await writeTree(up, tree)
  await aws.s3('sync', '--quiet', up, `s3://${bucket}`)
  await mkdir(down)
  await aws.s3('sync', '--quiet', `s3://${bucket}`, down)
  t.same(await hashTree(down), hashesOf(tree), 'a folder of odd names comes back')

  const on = ['--bucket', bucket]
  const body = join(aws.home, 'odd')
  const got = join(aws.home, 'odd.got')
  const held: string[] = [...names]
  for (const { key, legacyRefusal } of bareKeys) {
    await writeFile(body, key)
    const put = [...on, '--key', key, '--body', body]
    if (aws.mode === 'legacy' && legacyRefusal) {
      const refusal = await aws.apiFailing('put-object', ...put)
      t.match(refusal, 'InvalidArgument', key)
      t.match(refusal, legacyRefusal, 'says why')
      t.match(await aws.apiFailing('get-object', ...on, '--key', key, got), 'NoSuchKey')
      continue
    }
    await aws.api('put-object', ...put)
    await aws.api('get-object', ...on, '--key', key, got)
    t.equal(await readFile(got, 'utf8'), key, key)
    held.push(key)
  }
  await aws.api('put-object', ...on, '--key', MARKER)
  await aws.api('put-object', ...on, '--key', `${MARKER}inside`, '--body', body)
  t.equal((await aws.api('head-object', ...on, '--key', MARKER)).ContentLength, 0)
  held.push(MARKER, `${MARKER}inside`)

  const listed = await aws.api('list-objects-v2', ...on)
  const inOrder = (keys: string[]) => keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  t.same(
    listed.Contents.map(({ Key }: { Key: string }) => Key),
    inOrder(held),
    'a listing has them all',
  )

  await aws.api('put-object', ...on, '--key', 'both', '--body', body)
  if (aws.mode === 'full') {
    await aws.api('put-object', ...on, '--key', 'both/of-them', '--body', body)
    await aws.api('get-object', ...on, '--key', 'both', got)
  } else {
    const refusal = await aws.apiFailing('put-object', ...on, '--key', 'both/of-them', '--body', body)
    t.match(refusal, /object and a folder of the same name/)
  }
  const doomed = { Objects: held.map((Key) => ({ Key })), Quiet: true }
  const file = join(aws.home, 'doomed.json')
  await writeFile(file, JSON.stringify(doomed))
  t.same(await aws.api('delete-objects', ...on, '--delete', `file://${file}`), {}, 'and all go at once')
  await aws.s3('rb', '--force', `s3://${bucket}`)
}
