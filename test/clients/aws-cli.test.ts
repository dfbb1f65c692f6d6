import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  type ChecksumAlgorithm,
  checksumAlgorithms,
  createChecksum,
  prepareChecksum,
} from '../../common/checksums/checksums.js'
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
} from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { controlKeys, fileKeys } from '../support/content/keys.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { run } from '../support/programs/run.js'
import { startDealgate } from '../support/server/dealgate.js'

/*
 * Each command costs a second of CPU time. The last version calls everything; the older ones, which send no checksum by
 * default, copy files and a folder of odd names, and state their checksums. real-gateway copies such a folder to a
 * legacy gateway; sdk-v3 sends parts one by one. Codes of errors that the program only prints are in s3/malformed and
 * sdk-v3.
 */

for (const algorithm of checksumAlgorithms) await prepareChecksum(algorithm)
const versions = await awsVersions(t, 'each')
const last = versions.at(-1)
if (last !== undefined) {
  const server = await startDealgate(t)
  const aws = new Aws(last, server, temporaryFolder(t))
  for (const version of versions) {
    const isLast = version === last
    const program = isLast ? aws : new Aws(version, server, temporaryFolder(t))
    await t.test(`s3 files, ${version.name}`, (t) => files(t, program, isLast))
    await t.test(`s3api checksums, ${version.name}`, (t) => checksums(t, program))
  }
  await t.test('s3 folders', (t) => folders(t, aws))
  await t.test('s3api', (t) => s3api(t, aws))
}

/** `all` with what depends on no version. */
async function files(t: Test, aws: Aws, all: boolean): Promise<void> {
  const bucket = all ? 'cli-files' : 'cli-files-older'
  t.match(await aws.s3('mb', `s3://${bucket}`), `make_bucket: ${bucket}`)
  // The larger one is sent, copied and read in three parts of at most 8 MiB.
  const sizes = { '5m': 5 * MiB, '17m': 17 * MiB }
  for (const [name, size] of Object.entries(sizes)) {
    const up = join(aws.home, `${name}.up`)
    const down = join(aws.home, `${name}.down`)
    const data = bytes(name, size)
    await writeFile(up, data)
    await aws.s3('cp', '--quiet', up, `s3://${bucket}/${name}`)
    await aws.s3('cp', '--quiet', `s3://${bucket}/${name}`, down)
    t.equal(await sha256OfFile(down), sha256(data), `${size} bytes come back`)
  }
  const copied = `s3://${bucket}/copy17`
  await aws.s3('cp', '--quiet', `s3://${bucket}/17m`, copied)
  const listing = await aws.s3('ls', '--recursive', '--summarize', `s3://${bucket}`)
  for (const [name, size] of Object.entries({ ...sizes, copy17: 17 * MiB }))
    t.match(listing, new RegExp(` ${size} ${name}\n`))
  t.match(listing, /Total Objects: 3/)
  if (!all) return
  t.match(await aws.s3('ls'), ` ${bucket}\n`)
  t.equal(await aws.s3Code('ls', `s3://${bucket}/no-such-prefix/`), 1, 'ls of nothing ends with 1')

  const moving = join(aws.home, 'moving')
  await writeFile(moving, 'moved')
  await aws.s3('mv', '--quiet', moving, `s3://${bucket}/moved-1`)
  await t.rejects(stat(moving), { code: 'ENOENT' }, 'mv takes the file away')
  await aws.s3('mv', '--quiet', `s3://${bucket}/moved-1`, moving)
  t.equal(await readFile(moving, 'utf8'), 'moved')

  const url = (await aws.s3('presign', `s3://${bucket}/5m`, '--expires-in', '60')).trim()
  const fetched = await run('curl', ['-sS', '--fail', url])
  t.equal(md5(fetched), md5(bytes('5m', 5 * MiB)), 'presign gives a URL that curl can fetch')

  t.match(await aws.s3Failing('rb', `s3://${bucket}`), 'BucketNotEmpty')
  await aws.s3('rm', '--quiet', '--recursive', `s3://${bucket}`)
  t.equal(await aws.s3('ls', '--recursive', `s3://${bucket}`), '', 'rm --recursive leaves nothing')
  t.match(await aws.s3('rb', `s3://${bucket}`), `remove_bucket: ${bucket}`)
  t.match(await aws.s3Failing('ls', `s3://${bucket}`), 'NoSuchBucket')
}

async function folders(t: Test, aws: Aws): Promise<void> {
  const bucket = 's3://cli-folders'
  await aws.s3('mb', bucket)
  const up = join(aws.home, 'sync-up')
  const down = join(aws.home, 'sync-down')
  const tree: Record<string, Buffer> = {
    ...{ 'a.txt': bytes('a', 10), 'a/b.txt': bytes('b', 20 * KiB), 'a/c/d.bin': bytes('d', 300 * KiB) },
    ...{ 'a-b/e': bytes('e', 0), 'z/deep/er/and/deeper': bytes('z', 1) },
    ...Object.fromEntries([...fileKeys, ...controlKeys].map((key) => [`odd/${key}`, bytes(key, 100)])),
  }
  await writeTree(up, tree)
  await aws.s3('sync', '--quiet', up, `${bucket}/tree`)
  t.equal(await aws.s3('sync', up, `${bucket}/tree`), '', 'a second sync has nothing to do')
  await aws.s3('sync', '--quiet', `${bucket}/tree`, down)
  t.same(await hashTree(down), hashesOf(tree), 'the folder comes back')

  await rm(join(up, 'a/b.txt'))
  await writeFile(join(up, 'a.txt'), bytes('changed', 11))
  const gone = await aws.s3('sync', '--delete', up, `${bucket}/tree`)
  t.match(gone, `delete: ${bucket}/tree/a/b.txt`)
  t.match(gone, 'tree/a.txt')
  await writeFile(join(down, 'extra'), 'x')
  await aws.s3('sync', '--quiet', '--delete', `${bucket}/tree`, down)
  t.same(await hashTree(down), await hashTree(up), 'sync --delete back makes the folders equal')

  t.match(await aws.s3('ls', `${bucket}/tree/`), /PRE a-b\/\n.*PRE a\/\n.*PRE z\/\n.* a\.txt\n/s)
  await aws.s3('mv', '--quiet', '--recursive', `${bucket}/tree/a`, `${bucket}/moved`)
  t.match(await aws.s3('ls', '--recursive', `${bucket}/moved`), / moved\/c\/d\.bin\n$/)
  t.match(await aws.s3('rb', '--force', bucket), 'remove_bucket: cli-folders')
}
async function s3api(t: Test, aws: Aws): Promise<void> {
  const on = ['--bucket', 'cli-api']
  await aws.api('create-bucket', ...on)
  t.match(await aws.apiFailing('head-bucket', '--bucket', 'no-such-bucket'), '404')
  t.equal((await aws.api('get-bucket-location', ...on)).LocationConstraint, null)
  const { Buckets, Owner } = await aws.api('list-buckets', ...(aws.modern ? ['--prefix', 'cli-api'] : []))
  t.ok(Buckets.some((found: { Name: string }) => found.Name === 'cli-api'))

  const keys = ['a-b', 'a/1', 'a/2', 'b', '😀']
  const folder = join(aws.home, 'lists')
  await writeTree(folder, Object.fromEntries(keys.map((key) => [key, Buffer.from(`of ${key}`)])))
  await aws.s3('cp', '--quiet', '--recursive', folder, 's3://cli-api')
  type Named = { Key: string }
  const names = (list: Named[] = []) => list.map(({ Key }) => Key)
  const flat = await aws.api('list-objects-v2', ...on, '--page-size', '2', '--fetch-owner')
  t.same(names(flat.Contents), keys, 'all, over pages of two')
  t.equal(flat.Contents[0].Owner.ID, Owner.ID)
  const first = await aws.api('list-objects', ...on, '--delimiter', '/', '--page-size', '1')
  t.same(names(first.Contents), ['a-b', 'b', '😀'], 'the first version pages with NextMarker')

  const object = [...on, '--key', 'b']
  const got = join(aws.home, 'got')
  const shown = ['--range', 'bytes=3-3', '--response-content-type', 'a/b', '--response-cache-control', 'no-cache', got]
  const part = await aws.api('get-object', ...object, ...shown)
  t.match(part, { ContentRange: 'bytes 3-3/4', ContentType: 'a/b', CacheControl: 'no-cache' })
  t.equal(await readFile(got, 'utf8'), 'b')
  t.match(await aws.apiFailing('get-object', ...object, '--if-none-match', part.ETag, got), '304')
  const until = ['--if-unmodified-since', '2001-01-01T00:00:00Z']
  t.match(await aws.apiFailing('head-object', ...object, ...until), '412')
  t.match(await aws.apiFailing('get-object', ...on, '--key', 'none', got), 'NoSuchKey')
  const wrong = ['--content-md5', Buffer.from(md5(Buffer.of()), 'hex').toString('base64')]
  t.match(await aws.apiFailing('put-object', ...object, '--body', got, ...wrong), 'BadDigest')
  const odd = ['--content-type', 'text/x-odd; charset=utf-8', '--metadata', 'one=1,two=zwei und drei']
  await aws.api('put-object', ...object, '--body', got, ...odd, '--expires', '2030-01-02T03:04:05Z')
  const head = await aws.api('head-object', ...object)
  t.match(head, { ContentType: 'text/x-odd; charset=utf-8', Metadata: { one: '1', two: 'zwei und drei' } })
  t.match(JSON.stringify(head), /2030-01-02T03:04:05|02 Jan 2030 03:04:05/)
  await aws.api('copy-object', ...object, '--copy-source', 'cli-api/b', '--metadata-directive', 'REPLACE')
  t.same((await aws.api('head-object', ...object)).Metadata, {}, 'a copy onto itself')

  const doomed = { Objects: [...keys, 'was/never/there'].map((Key) => ({ Key })) }
  const deleted = await aws.api('delete-objects', ...on, '--delete', JSON.stringify(doomed))
  t.equal(deleted.Deleted.length, keys.length + 1)
  await aws.api('delete-bucket', ...on)
  t.match(await aws.apiFailing('delete-bucket', ...on), 'NoSuchBucket')
}

function sumOf(algorithm: ChecksumAlgorithm, data: Buffer): string {
  const checksum = createChecksum(algorithm)
  checksum.update(data)
  return checksum.digest()
}

/** One that the caller states and one that the program computes: s3/object/checksum-algorithms has the others. */
async function checksums(t: Test, aws: Aws): Promise<void> {
  const bucket = aws.modern ? 'cli-sums' : 'cli-sums-older'
  const on = ['--bucket', bucket]
  await aws.s3('mb', `s3://${bucket}`)
  const file = join(aws.home, 'sums.bin')
  const got = join(aws.home, 'sums.got')
  const data = bytes('sums', 70 * KiB)
  await writeFile(file, data)
  // CRC64NVME is younger than the older versions.
  const [stated, flag] = aws.modern
    ? (['CRC64NVME', '--checksum-crc64-nvme'] as const)
    : (['CRC32C', '--checksum-crc32-c'] as const)
  const object = [...on, '--key', stated]
  const value = sumOf(stated, data)
  const put = await aws.api('put-object', ...object, '--body', file, flag, value)
  t.equal(put[`Checksum${stated}`], value, `${stated} is verified and told`)
  const wrong = sumOf(stated, Buffer.from('something else'))
  t.match(await aws.apiFailing('put-object', ...object, '--body', file, flag, wrong), 'BadDigest')
  const answer = await aws.api('get-object', ...object, '--checksum-mode', 'ENABLED', got)
  t.equal(answer[`Checksum${stated}`], value, `${stated} comes with the object`)
  t.same(await readFile(got), data, 'the refused body replaced nothing')

  const computed = [...on, '--key', 'computed']
  const sent = await aws.api('put-object', ...computed, '--body', file, '--checksum-algorithm', 'SHA1')
  const attributes = await aws.api(
    'get-object-attributes',
    ...[...computed, '--object-attributes', 'ETag', 'Checksum', 'ObjectSize'],
  )
  const ChecksumSHA1 = sumOf('SHA1', data)
  t.match(sent, { ChecksumSHA1 })
  t.match(attributes, { ETag: md5(data), ObjectSize: data.length, Checksum: { ChecksumSHA1 } })
}
