import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { PutObjectCommand, UploadPartCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { Decrypter } from 'age-encryption'
import t from 'tap'
import { newIdentity } from '../../../src/objects/encryption/age-header.js'
import { linesOf } from '../../../src/objects/encryption/key-file.js'
import { bytes, MiB, md5 } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { isInstalled, runAny } from '../../support/programs/run.js'
import { bodyOf } from '../../support/programs/sdk.js'
import { runCli } from '../../support/server/cli.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { until } from '../../support/waiting.js'

const CHUNK = 64 * 1024
const SIZES = [0, 1, 15, 16, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 777]
const SSE = { ServerSideEncryption: 'AES256' } as const
const MAGIC = 'age-encryption.org/v1\n'

const hasAge = isInstalled('age')

/** What the program age makes of a file with these keys; where it is absent, its library. */
async function ageDecrypt(t: { teardown(run: () => unknown): void }, file: Buffer, keys: string): Promise<Buffer> {
  if (!hasAge) {
    const decrypter = new Decrypter()
    for (const [identity] of readFileSync(keys, 'utf8').matchAll(/^AGE-SECRET-KEY-\S+/gm))
      decrypter.addIdentity(identity)
    return Buffer.from(await decrypter.decrypt(file))
  }
  const path = join(temporaryFolder(t), 'object.age')
  await writeFile(path, file)
  const { code, stdout, stderr } = await runAny('age', ['-d', '-i', keys, path])
  if (code !== 0) throw new Error(`age: ${stderr}`)
  return stdout
}

for (const mode of modes) {
  t.test(`${mode}: encrypted objects`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3 } = server
    const keys = join(server.data, 'encryption.keys')
    const user = new GatewayUser(server.gateway)
    await user.login()
    await s3.createBucket({ Bucket: 'secret' })

    for (const size of SIZES) {
      const content = bytes(`size ${size}`, size)
      const at = { Bucket: 'secret', Key: `of ${size}` }
      const put = await s3.putObject({ ...at, Body: content, Metadata: { a: 'b' }, ...SSE })
      t.equal(put.ETag, `"${md5(content)}"`, `${size} bytes: the ETag is the MD5 of the content`)
      t.equal(put.ServerSideEncryption, 'AES256')
      const head = await s3.headObject(at)
      t.match(head, { ContentLength: size, ETag: put.ETag, ServerSideEncryption: 'AES256', Metadata: { a: 'b' } })
      t.same(Object.keys(head.Metadata ?? {}), ['a'], 'the marks are not shown')
      t.ok((await bodyOf(s3, at)).equals(content))
      const { body } = await user.get('secret', encodeURIComponent(at.Key))
      t.equal(body.toString('latin1', 0, MAGIC.length), MAGIC)
      t.ok((await ageDecrypt(t, body, keys)).equals(content), 'and the program age opens what the gateway has')
    }

    t.test('ranges', async (t) => {
      const size = SIZES.at(-1) ?? 0
      const content = bytes(`size ${size}`, size)
      const at = { Bucket: 'secret', Key: `of ${size}` }
      const edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 1, 3 * CHUNK, 5 * CHUNK, size - 1]
      for (const first of edges) {
        for (const last of edges.filter((edge) => edge >= first)) {
          const got = await s3.getObject({ ...at, Range: `bytes=${first}-${last}` })
          t.equal(got.ContentRange, `bytes ${first}-${last}/${size}`)
          const body = Buffer.from((await got.Body?.transformToByteArray()) ?? [])
          if (!body.equals(content.subarray(first, last + 1))) t.fail(`${first}-${last}`)
        }
      }
      t.ok((await bodyOf(s3, { ...at, Range: 'bytes=-10' })).equals(content.subarray(-10)))
      t.ok((await bodyOf(s3, { ...at, Range: `bytes=${CHUNK + 5}-` })).equals(content.subarray(CHUNK + 5)))
      // The gateway has these bytes, and the content has not.
      for (const range of [`bytes=${size}-`, `bytes=${size + 50}-${size + 60}`, `bytes=${size + 10_000}-`])
        await t.rejects(s3.getObject({ ...at, Range: range }), { name: 'InvalidRange', ActualObjectSize: `${size}` })
      await t.rejects(s3.getObject({ Bucket: 'secret', Key: 'of 0', Range: 'bytes=0-0' }), { name: 'InvalidRange' })
    })

    t.test('sizes in listings, attributes and conditions', async (t) => {
      const { Contents = [] } = await s3.listObjectsV2({ Bucket: 'secret' })
      t.same(
        Contents.map(({ Key, Size, ETag }) => [Key, Size, ETag]).sort(),
        SIZES.map((size) => [`of ${size}`, size, `"${md5(bytes(`size ${size}`, size))}"`]).sort(),
      )
      const at = { Bucket: 'secret', Key: `of ${CHUNK}` }
      const attributes = await s3.getObjectAttributes({ ...at, ObjectAttributes: ['ObjectSize', 'ETag'] })
      t.match(attributes, { ObjectSize: CHUNK, ETag: md5(bytes(`size ${CHUNK}`, CHUNK)) })
      const etag = `"${md5(bytes(`size ${CHUNK}`, CHUNK))}"`
      t.equal((await bodyOf(s3, { ...at, IfMatch: etag })).length, CHUNK)
      await t.rejects(s3.getObject({ ...at, IfMatch: '"00"' }), { name: 'PreconditionFailed' })
      await t.rejects(s3.putObject({ ...at, Body: 'new', IfNoneMatch: '*', ...SSE }), { name: 'PreconditionFailed' })
    })

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
      const source = bytes(`size ${CHUNK + 1}`, CHUNK + 1)
      const CopySource = `secret/${encodeURIComponent(`of ${CHUNK + 1}`)}`
      const { ServerSideEncryption } = await s3.copyObject({ Bucket: 'secret', Key: 'copy', CopySource })
      t.equal(ServerSideEncryption, 'AES256', 'a copy stays encrypted')
      t.ok((await bodyOf(s3, { Bucket: 'secret', Key: 'copy' })).equals(source))
      await s3.putObject({ Bucket: 'secret', Key: 'plain', Body: source })
      t.ok((await user.get('secret', 'plain')).body.equals(source))
      const onto = { Bucket: 'secret', Key: 'plain', CopySource: 'secret/plain' }
      await s3.copyObject({ ...onto, ...SSE })
      t.ok(
        (await ageDecrypt(t, (await user.get('secret', 'plain')).body, keys)).equals(source),
        'a copy onto itself encrypts',
      )
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

    t.test('multipart uploads', async (t) => {
      const at = { Bucket: 'secret', Key: 'parts' }
      const parts = [bytes('part 1', 5 * MiB + 1), bytes('part 2', 5 * MiB + CHUNK), bytes('part 3', 1)]
      const created = await s3.createMultipartUpload({ ...at, ...SSE })
      t.equal(created.ServerSideEncryption, 'AES256')
      const { UploadId = '' } = created
      const sent = []
      for (const [i, Body] of parts.entries()) {
        const { ETag } = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body })
        sent.push({ PartNumber: i + 1, ETag })
      }
      const { Parts = [] } = await s3.listParts({ ...at, UploadId })
      t.same(
        Parts.map(({ Size }) => Size),
        parts.map(({ length }) => length),
      )
      const staged = readdirSync(server.data, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.includes(UploadId) && /\d-[^/]*$/.test(name))
        .map((name) => readFileSync(join(server.data, name)))
      t.equal(staged.length, 3)
      for (const file of staged)
        t.notOk(file.includes((parts[0] as Buffer).subarray(1000, 1032)), 'the parts wait encrypted')
      // A restart, and a repetition of the last call.
      await server.restart()
      for (let i = 0; i < 2; i++) {
        const done = await s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts: sent } })
        t.match(done, { ServerSideEncryption: 'AES256', ETag: /-3"$/ })
      }
      const whole = Buffer.concat(parts)
      t.ok((await bodyOf(s3, at)).equals(whole))
      t.equal((await s3.headObject(at)).ContentLength, whole.length)
      t.ok((await bodyOf(s3, { ...at, PartNumber: 2 })).equals(parts[1] as Buffer))
      t.ok((await ageDecrypt(t, (await user.get('secret', 'parts')).body, keys)).equals(whole))
    })

    t.test('parts that are copied', async (t) => {
      const at = { Bucket: 'secret', Key: 'copied parts' }
      const { UploadId } = await s3.createMultipartUpload({ ...at, ...SSE })
      const CopySource = `secret/${encodeURIComponent(`of ${CHUNK}`)}`
      const part = await s3.uploadPartCopy({ ...at, UploadId, PartNumber: 1, CopySource })
      t.equal(part.ServerSideEncryption, 'AES256')
      await s3.abortMultipartUpload({ ...at, UploadId })

      const { UploadId: plain } = await s3.createMultipartUpload(at)
      const { CopyPartResult } = await s3.uploadPartCopy({ ...at, UploadId: plain, PartNumber: 1, CopySource })
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: CopyPartResult?.ETag }] }
      const done = await s3.completeMultipartUpload({ ...at, UploadId: plain, MultipartUpload })
      t.equal(done.ServerSideEncryption, 'AES256', 'a copy in parts does not lose the encryption')
      t.equal((await user.get('secret', 'copied%20parts')).body.toString('latin1', 0, MAGIC.length), MAGIC)
      t.ok((await bodyOf(s3, at)).equals(bytes(`size ${CHUNK}`, CHUNK)))
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

    t.test('what is not there is refused by name', async (t) => {
      const at = { Bucket: 'secret', Key: 'refused', Body: 'x' }
      await t.rejects(s3.putObject({ ...at, ServerSideEncryption: 'aws:kms:dsse' }), { name: 'NotImplemented' })
      await t.rejects(s3.putObject({ ...at, ServerSideEncryption: 'rot13' as 'AES256' }), {
        name: 'InvalidArgument',
      })
      const SSEKMSEncryptionContext = Buffer.from('{"a":"b"}').toString('base64')
      await t.rejects(s3.putObject({ ...at, ServerSideEncryption: 'aws:kms', SSEKMSEncryptionContext }), {
        name: 'NotImplemented',
      })
      await t.rejects(s3.headObject({ Bucket: 'secret', Key: 'refused' }), { name: 'NotFound' })
    })

    t.test('damage at the gateway is an error, and never a wrong byte', async (t) => {
      const content = bytes('damaged', 3 * CHUNK)
      const at = { Bucket: 'secret', Key: 'damaged' }
      await s3.putObject({ ...at, Body: content, ...SSE })
      const { body, headers } = await user.get('secret', 'damaged')
      const mark = [...headers].filter(([name]) => name.includes('-meta-dealgate-encrypted'))
      t.equal(mark.length, 1)
      const put = (bad: Buffer, key = 'damaged') => user.put('secret', key, bad, Object.fromEntries(mark))
      const header = Number(/\d+$/.exec(mark[0]?.[1] ?? '')?.[0])
      const chunk = (i: number) => body.subarray(header + 16 + i * (CHUNK + 16), header + 16 + (i + 1) * (CHUNK + 16))
      const head = body.subarray(0, header + 16)
      for (const at of [25, header - 3, header + 3, header + 16, body.length - 1]) {
        const bad = Buffer.from(body)
        bad[at] = (bad[at] ?? 0) ^ 1
        await put(bad)
        await t.rejects(bodyOf(s3, { Bucket: 'secret', Key: 'damaged' }), `byte ${at}`)
      }
      await put(Buffer.concat([head, chunk(1), chunk(0), chunk(2)]))
      await t.rejects(bodyOf(s3, at), 'two chunks exchanged')
      await put(Buffer.concat([head, chunk(0), chunk(1)]))
      await t.rejects(bodyOf(s3, at), 'cut after a chunk')
      await put(body.subarray(0, body.length - 5))
      await t.rejects(bodyOf(s3, at), 'cut within a chunk')
      await put(
        Buffer.concat([
          head,
          chunk(0),
          chunk(1),
          Buffer.from([...chunk(2)].map((byte, i) => (i === 9 ? byte ^ 1 : byte))),
        ]),
      )
      t.ok(
        (await bodyOf(s3, { ...at, Range: 'bytes=0-9' })).equals(content.subarray(0, 10)),
        'what is whole can be read',
      )
      await t.rejects(bodyOf(s3, { ...at, Range: `bytes=${2 * CHUNK}-` }))
      await put(body)
      t.ok((await bodyOf(s3, at)).equals(content))
      // It may have been taken from a public network.
      await put(body, 'elsewhere')
      await t.rejects(bodyOf(s3, { ...at, Key: 'elsewhere' }), { name: 'AccessDenied' }, 'it opens at its place alone')
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
      const { body } = await user.get('secret', encodeURIComponent(`of ${CHUNK}`))
      const at = { Bucket: 'secret', Key: 'own.age' }
      await s3.putObject({ ...at, Body: body, Metadata: { 'dealgate-encrypted': 'AES256 200' } })
      t.ok((await bodyOf(s3, at)).equals(body))
      t.notOk((await s3.headObject(at)).ServerSideEncryption)
      await s3.putObject({ ...at, Body: body, ...SSE })
      t.ok((await bodyOf(s3, at)).equals(body))
    })

    t.test('the state is lost, and everything is read with the keys', async (t) => {
      const data = temporaryFolder(t)
      await copyFile(keys, join(data, 'encryption.keys'))
      await server.restart({ data })
      for (const size of SIZES) {
        const at = { Bucket: 'secret', Key: `of ${size}` }
        const content = bytes(`size ${size}`, size)
        t.ok((await bodyOf(s3, at)).equals(content))
        const head = await s3.headObject(at)
        t.match(head, { ContentLength: size, ServerSideEncryption: 'AES256' })
        t.ok(head.ETag === `"${md5(content)}"` || head.ETag?.includes('-'), 'an ETag is never that of other bytes')
      }
      const { Contents = [] } = await s3.listObjectsV2({ Bucket: 'secret', Prefix: 'of ' })
      if (mode === 'full') t.same(Contents.map(({ Size }) => Size).sort(), [...SIZES].sort())
      t.equal((await s3.headObject({ Bucket: 'secret', Key: 'parts' })).ContentLength, 10 * MiB + CHUNK + 2)
    })

    t.test('a server without the keys', async (t) => {
      await server.restart({ data: temporaryFolder(t) })
      const at = { Bucket: 'secret', Key: `of ${CHUNK}` }
      await t.rejects(s3.getObject(at), { name: 'AccessDenied', message: /no key that opens it/ })
      t.equal((await s3.headObject(at)).ContentLength, CHUNK)
    })

    t.test('the file of keys is lost, and no other takes its place', async (t) => {
      const data = temporaryFolder(t)
      await server.restart({ data })
      const at = { Bucket: 'secret', Key: 'kept' }
      await s3.putObject({ ...at, Body: 'kept', ...SSE })
      const made = join(data, 'encryption.keys')
      const kept = readFileSync(made, 'utf8')
      rmSync(made)
      await server.restart({ data })
      const [, recipient = ''] = /public key: (age1\S+)/.exec(kept) ?? []
      await t.rejects(s3.putObject({ ...at, Body: 'new', ...SSE }), {
        name: 'ServiceUnavailable',
        message: new RegExp(`${recipient} is missing`),
      })
      t.notOk(existsSync(made))
      await writeFile(made, kept)
      await server.restart({ data })
      t.equal((await bodyOf(s3, at)).toString(), 'kept')
    })

    t.test('a server with recipients alone writes and does not read', async (t) => {
      const [, recipient = ''] = /public key: (age1\S+)/.exec(readFileSync(keys, 'utf8')) ?? []
      const data = temporaryFolder(t)
      const encryptionKeys = join(data, 'recipients')
      const options = { data, encryption: 'all', encryptionKeys } as const
      await t.rejects(server.restart(options), { message: /there is no such file/ }, 'the file must be there')
      await writeFile(encryptionKeys, `# of the owner\n${recipient}x\n`)
      await t.rejects(server.restart(options), { message: /line 2 is no key of age/ })
      await writeFile(encryptionKeys, `# of the owner\n${recipient}\n`)
      await server.restart(options)
      const at = { Bucket: 'secret', Key: 'dropped' }
      t.equal((await s3.putObject({ ...at, Body: 'a letter' })).ServerSideEncryption, 'AES256')
      await t.rejects(s3.getObject(at), { name: 'AccessDenied' })
      t.equal((await ageDecrypt(t, (await user.get('secret', 'dropped')).body, keys)).toString(), 'a letter')
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
  await s3.putObject({ Bucket: 'secret', Key: 'before', Body: 'before', ...SSE })
  t.equal((await ageDecrypt(t, (await user.get('secret', 'before')).body, recovery)).toString(), 'before')

  const first = readFileSync(keys, 'utf8')
  const rotated = await runCli(['encryption', 'rotate', '--data', server.data])
  t.equal(rotated.code, 0, rotated.stderr)
  t.ok(readFileSync(keys, 'utf8').startsWith(first), 'earlier keys stay')
  await until('the new key is in use', async () => {
    await s3.putObject({ Bucket: 'secret', Key: 'after', Body: 'after', ...SSE })
    const { body } = await user.get('secret', 'after')
    await writeFile(join(folder, 'first.txt'), first)
    return ageDecrypt(t, body, join(folder, 'first.txt')).then(
      () => false,
      () => true,
    )
  })
  for (const Key of ['before', 'after']) t.equal((await bodyOf(s3, { Bucket: 'secret', Key })).toString(), Key)
  t.equal((await ageDecrypt(t, (await user.get('secret', 'after')).body, recovery)).toString(), 'after')

  await writeFile(join(folder, 'after.age'), (await user.get('secret', 'after')).body)
  const opened = await runCli(['decrypt', join(folder, 'after.age'), '--data', server.data])
  t.equal(opened.stdout, 'after')
  const listed = await runCli(['encryption', 'list', '--data', server.data])
  t.equal(listed.stdout.split('\n').length, 3)
  t.notMatch(listed.stdout, /SECRET/)
  const exported = await runCli(['encryption', 'export', '--data', server.data])
  t.equal(exported.stdout, readFileSync(keys, 'utf8'))
  const wrong = await runCli(['decrypt', join(folder, 'after.age'), '--encryption-keys', `${recovery}x`])
  t.not(wrong.code, 0)
})
