import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { PutObjectCommand, UploadPartCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { newIdentity } from '../../../../src/objects/encryption/age-header.js'
import { linesOf } from '../../../../src/objects/encryption/key-file.js'
import { bytes, md5 } from '../../../support/content/content.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { bodyOf } from '../../../support/programs/sdk.js'
import { runCli } from '../../../support/server/cli.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { modes } from '../../../support/server/modes.js'
import { until } from '../../../support/waiting.js'
import { ageDecrypt } from './age.js'

const CHUNK = 64 * 1024
const SSE = { ServerSideEncryption: 'AES256' } as const
const MAGIC = 'age-encryption.org/v1\n'

for (const mode of modes) {
  t.test(`${mode}: encrypted objects`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3 } = server
    const keys = join(server.data, 'encryption.keys')
    const user = new GatewayUser(server.gateway)
    await user.login()
    await s3.createBucket({ Bucket: 'secret' })
    const opened = async (key: string) =>
      ageDecrypt(t, (await user.get('secret', key)).body, readFileSync(keys, 'utf8'))
    const first = { Bucket: 'secret', Key: 'first' }
    const content = bytes('first', CHUNK + 1)
    const CopySource = 'secret/first'
    await s3.putObject({ ...first, Body: content, ...SSE })

    t.test('a body that is not the one that was promised changes nothing', async (t) => {
      const at = { Bucket: 'secret', Key: 'verified' }
      const old = bytes('old', 3 * CHUNK)
      await s3.putObject({ ...at, Body: old, ...SSE })
      for (const size of [10, 3 * CHUNK, 20 * CHUNK]) {
        const wrong = { ...at, Body: bytes('new', size), ChecksumSHA256: `${'A'.repeat(43)}=`, ...SSE }
        await t.rejects(s3.putObject(wrong), { name: 'BadDigest' })
        t.ok((await bodyOf(s3, at)).equals(old))
      }
      const { ChecksumCRC32: checksum } = await s3.putObject({ ...at, Body: old, ChecksumAlgorithm: 'CRC32', ...SSE })
      const got = await s3.getObject({ ...at, ChecksumMode: 'ENABLED' })
      t.equal(got.ChecksumCRC32, checksum, 'checksums are those of the content')
      await got.Body?.transformToByteArray()
    })

    t.test('copies', async (t) => {
      const { ServerSideEncryption } = await s3.copyObject({ Bucket: 'secret', Key: 'copy', CopySource })
      t.equal(ServerSideEncryption, 'AES256', 'a copy stays encrypted')
      t.ok((await bodyOf(s3, { Bucket: 'secret', Key: 'copy' })).equals(content))
      await s3.putObject({ Bucket: 'secret', Key: 'plain', Body: content })
      t.ok((await user.get('secret', 'plain')).body.equals(content))
      const onto = { Bucket: 'secret', Key: 'plain', CopySource: 'secret/plain' }
      await s3.copyObject({ ...onto, ...SSE })
      t.ok((await opened('plain'))?.equals(content), 'a copy onto itself encrypts')
      const replaced = { MetadataDirective: 'REPLACE', Metadata: { c: 'd' } } as const
      await s3.copyObject({ ...onto, ...replaced })
      const { Metadata, ContentLength } = await s3.headObject({ Bucket: 'secret', Key: 'plain' })
      t.same({ Metadata, ContentLength }, { Metadata: { c: 'd' }, ContentLength: CHUNK + 1 })
    })

    t.test('tags and ACLs change, and the size stays', async (t) => {
      const at = { Bucket: 'secret', Key: 'tagged' }
      const content = bytes('tagged', 1000)
      await s3.putObject({ ...at, Body: content, Tagging: 'a=1', ...SSE })
      await s3.putObjectTagging({ ...at, Tagging: { TagSet: [{ Key: 'b', Value: '2' }] } })
      t.match(await s3.headObject(at), { ContentLength: 1000, ETag: `"${md5(content)}"`, TagCount: 1 })
      t.ok((await bodyOf(s3, at)).equals(content))
    })

    t.test('parts that are copied', async (t) => {
      const at = { Bucket: 'secret', Key: 'copied parts' }
      const { UploadId } = await s3.createMultipartUpload({ ...at, ...SSE })
      const part = await s3.uploadPartCopy({ ...at, UploadId, PartNumber: 1, CopySource })
      t.equal(part.ServerSideEncryption, 'AES256')
      await s3.abortMultipartUpload({ ...at, UploadId })

      const { UploadId: plain } = await s3.createMultipartUpload(at)
      const { CopyPartResult } = await s3.uploadPartCopy({ ...at, UploadId: plain, PartNumber: 1, CopySource })
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: CopyPartResult?.ETag }] }
      const done = await s3.completeMultipartUpload({ ...at, UploadId: plain, MultipartUpload })
      t.equal(done.ServerSideEncryption, 'AES256', 'a copy in parts does not lose the encryption')
      t.equal((await user.get('secret', 'copied%20parts')).body.toString('latin1', 0, MAGIC.length), MAGIC)
      t.ok((await bodyOf(s3, at)).equals(content))
    })

    t.test('the default of a bucket', async (t) => {
      const Bucket = 'by-default'
      await s3.createBucket({ Bucket })
      await t.rejects(s3.getBucketEncryption({ Bucket }), { name: 'ServerSideEncryptionConfigurationNotFoundError' })
      const rule = (SSEAlgorithm: string) => ({
        Bucket,
        ServerSideEncryptionConfiguration: {
          Rules: [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm: SSEAlgorithm as 'AES256' } }],
        },
      })
      await t.rejects(s3.putBucketEncryption(rule('aws:kms:dsse')), { name: 'NotImplemented' })
      await t.rejects(s3.putBucketEncryption(rule('rot13')), { name: 'MalformedXML' })
      await s3.putBucketEncryption(rule('AES256'))
      const { ServerSideEncryptionConfiguration: found } = await s3.getBucketEncryption({ Bucket })
      t.equal(found?.Rules?.[0]?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm, 'AES256')
      t.equal((await s3.putObject({ Bucket, Key: 'k', Body: 'content' })).ServerSideEncryption, 'AES256')
      t.equal((await user.get(Bucket, 'k')).body.toString('latin1', 0, MAGIC.length), MAGIC)
      const { UploadId = '' } = await s3.createMultipartUpload({ Bucket, Key: 'm' })
      await s3.deleteBucketEncryption({ Bucket })
      t.notOk((await s3.putObject({ Bucket, Key: 'k', Body: 'content' })).ServerSideEncryption)
      const { ETag } = await s3.uploadPart({ Bucket, Key: 'm', UploadId, PartNumber: 1, Body: 'part' })
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
      await s3.completeMultipartUpload({ Bucket, Key: 'm', UploadId, MultipartUpload })
      t.equal((await user.get(Bucket, 'm')).body.toString('latin1', 0, MAGIC.length), MAGIC, 'decided at its begin')
    })

    t.test('ranges of an object that is replaced behind the back', async (t) => {
      const at = { Bucket: 'secret', Key: 'replaced' }
      const first = bytes('first', 4 * CHUNK)
      const Range = `bytes=${2 * CHUNK - 5}-${2 * CHUNK + 5}`
      const range = [2 * CHUNK - 5, 2 * CHUNK + 6] as const
      await s3.putObject({ ...at, Body: first, ...SSE })
      for (let i = 0; i < 3; i++) t.ok((await bodyOf(s3, { ...at, Range })).equals(first.subarray(...range)))
      const second = bytes('second', 3 * CHUNK)
      await user.put('secret', 'replaced', second)
      t.ok((await bodyOf(s3, { ...at, Range })).equals(second.subarray(...range)), 'by plain bytes')
      await s3.putObject({ ...at, Body: first, ...SSE })
      t.ok((await bodyOf(s3, { ...at, Range })).equals(first.subarray(...range)))
      await user.put('secret', 'replaced', second.subarray(0, 2 * CHUNK))
      t.ok((await bodyOf(s3, { ...at, Range })).equals(second.subarray(2 * CHUNK - 5, 2 * CHUNK)), 'by fewer')
      await s3.putObject({ ...at, Body: second, ...SSE })
      t.ok((await bodyOf(s3, { ...at, Range })).equals(second.subarray(...range)), 'by encrypted ones')
      await user.remove('secret', 'replaced')
      await t.rejects(bodyOf(s3, { ...at, Range }), { name: 'NoSuchKey' })
    })

    t.test('an age file of a client stays what it is', async (t) => {
      const { body } = await user.get('secret', 'first')
      const at = { Bucket: 'secret', Key: 'own.age' }
      await s3.putObject({ ...at, Body: body, Metadata: { 'dealgate-encrypted': 'AES256 200' } })
      t.ok((await bodyOf(s3, at)).equals(body))
      t.notOk((await s3.headObject(at)).ServerSideEncryption)
      await s3.putObject({ ...at, Body: body, ...SSE })
      t.ok((await bodyOf(s3, at)).equals(body))
    })

    t.test('a server without the keys', async (t) => {
      await server.restart({ data: temporaryFolder(t) })
      await t.rejects(s3.getObject(first), { name: 'AccessDenied', message: /no key that opens it/ })
      t.equal((await s3.headObject(first)).ContentLength, CHUNK + 1)
    })

    t.test('a server with recipients alone writes and does not read', async (t) => {
      const [, recipient = ''] = /public key: (age1\S+)/.exec(readFileSync(keys, 'utf8')) ?? []
      const data = temporaryFolder(t)
      const encryptionKeys = join(data, 'recipients')
      const options = { data, encryption: 'all', encryptionKeys } as const
      await writeFile(encryptionKeys, `# of the owner\n${recipient}\n`)
      await server.restart(options)
      const at = { Bucket: 'secret', Key: 'dropped' }
      t.equal((await s3.putObject({ ...at, Body: 'a letter' })).ServerSideEncryption, 'AES256')
      await t.rejects(s3.getObject(at), { name: 'AccessDenied' })
      t.equal((await opened('dropped'))?.toString(), 'a letter')
    })

    t.test('no line of the log has the key', async (t) => {
      const [secret = ''] = /AGE-SECRET-KEY-\S+/.exec(readFileSync(keys, 'utf8')) ?? []
      t.ok(secret.length > 0 && server.lines.length > 0)
      t.notOk(JSON.stringify(server.lines).includes(secret))
    })
  })
}

t.test('an encrypted part without a length may be as long as any other', async (t) => {
  const { s3 } = await startInProcess(t, 'full', { limits: { maxPutBytes: 3 * CHUNK } })
  const at = { Bucket: 'unsized', Key: 'parts' }
  await s3.createBucket({ Bucket: at.Bucket })
  const { UploadId } = await s3.createMultipartUpload({ ...at, ...SSE })
  const url = await getSignedUrl(s3, new UploadPartCommand({ ...at, UploadId, PartNumber: 1 }))
  const put = (size: number) =>
    fetch(url, { method: 'PUT', body: new Blob([bytes('part', size)]).stream(), duplex: 'half' } as RequestInit)
  t.equal((await put(3 * CHUNK)).status, 200)
  t.match(await (await put(3 * CHUNK + 1)).text(), /EntityTooLarge/)
})

t.test('nothing plain is stored once its bucket demands encryption', async (t) => {
  let demanded = false
  const asked = { when: () => {} }
  const demandsEncryption = async () => {
    asked.when()
    return demanded
  }
  const plugins = [{ name: 'demand', operations: [], demandsEncryption }]
  const { s3 } = await startInProcess(t, 'full', { plugins })
  await s3.createBucket({ Bucket: 'late' })
  for (const size of [1000, 700_000]) {
    const at = { Bucket: 'late', Key: `of ${size}` }
    const content = bytes('late', size)
    demanded = false
    const put = request(await getSignedUrl(s3, new PutObjectCommand({ ...at, ContentLength: size })), {
      method: 'PUT',
      headers: { 'content-length': size },
    })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      put.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
    })
    // The write has begun when it has asked.
    const begun = new Promise<void>((resolve) => {
      asked.when = resolve
    })
    put.write(content.subarray(0, size / 2))
    await begun
    demanded = true
    put.end(content.subarray(size / 2))
    t.equal(await answered, 503, `${size} bytes`)
    await t.rejects(s3.headObject(at), { name: 'NotFound' })
    t.match(await s3.putObject({ ...at, Body: content }), { ServerSideEncryption: 'AES256' }, 'sent again')
  }
})

t.test('a recovery key opens everything, and so do the keys after a rotation', async (t) => {
  const folder = temporaryFolder(t)
  const recovery = join(folder, 'recovery.txt')
  await writeFile(recovery, await linesOf(await newIdentity()))
  const [, recipient = ''] = /public key: (age1\S+)/.exec(readFileSync(recovery, 'utf8')) ?? []
  const server = await startInProcess(t, 'full', { encryptionRecipient: [recipient] })
  const { s3 } = server
  const keys = join(server.data, 'encryption.keys')
  const user = new GatewayUser(server.gateway)
  await user.login()
  await s3.createBucket({ Bucket: 'secret' })
  const opened = async (key: string, by = readFileSync(recovery, 'utf8')) =>
    ageDecrypt(t, (await user.get('secret', key)).body, by)
  await s3.putObject({ Bucket: 'secret', Key: 'before', Body: 'before', ...SSE })
  t.equal((await opened('before'))?.toString(), 'before')

  const first = readFileSync(keys, 'utf8')
  const rotated = await runCli(['encryption', 'rotate', '--data', server.data])
  t.equal(rotated.code, 0, rotated.stderr)
  t.ok(readFileSync(keys, 'utf8').startsWith(first), 'earlier keys stay')
  await until('the new key is in use', async () => {
    await s3.putObject({ Bucket: 'secret', Key: 'after', Body: 'after', ...SSE })
    return (await opened('after', first)) === undefined
  })
  for (const Key of ['before', 'after']) t.equal((await bodyOf(s3, { Bucket: 'secret', Key })).toString(), Key)
  t.equal((await opened('after'))?.toString(), 'after')

  await writeFile(join(folder, 'after.age'), (await user.get('secret', 'after')).body)
  const decrypted = await runCli(['decrypt', join(folder, 'after.age'), '--data', server.data])
  t.equal(decrypted.stdout, 'after')
  const wrong = await runCli(['decrypt', join(folder, 'after.age'), '--encryption-keys', `${recovery}x`])
  t.not(wrong.code, 0)
})
