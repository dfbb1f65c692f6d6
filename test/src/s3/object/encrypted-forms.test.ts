import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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
import { ageDecrypt } from './age.js'

// What all forms of encryption have in common: bytes, sizes, ranges and parts, what damage does, and who opens them.

const CHUNK = 64 * 1024
const SIZES = [0, 1, 15, 16, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 777]
const LARGEST = 5 * CHUNK + 777
const PARTS = 60

const secret = bytes('a key of a client', 32)
const customer = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: secret.toString('base64') } as const
const forms = {
  AES256: { write: { ServerSideEncryption: 'AES256' }, read: {}, told: { ServerSideEncryption: 'AES256' } },
  kms: {
    write: { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive', BucketKeyEnabled: true },
    read: {},
    told: { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive', BucketKeyEnabled: true },
  },
  customer: {
    write: customer,
    read: customer,
    told: {
      SSECustomerAlgorithm: 'AES256',
      SSECustomerKeyMD5: Buffer.from(md5(secret), 'hex').toString('base64'),
      ServerSideEncryption: undefined,
    },
  },
} as const

/** Parts of odd sizes, around the borders of chunks and between them. */
const partSizes = Array.from({ length: PARTS }, (_, i) =>
  i % 3 === 0 ? ([1, 2, 15, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1][i % 7] as number) : (i * 7919) % 120_001,
).map((size) => Math.max(1, size))
const starts = partSizes.map((_, i) => partSizes.slice(0, i).reduce((sum, size) => sum + size, 0))
const whole = bytes(
  'odd parts',
  partSizes.reduce((sum, size) => sum + size, 0),
)
const part = (i: number) => whole.subarray(starts[i], (starts[i] ?? 0) + (partSizes[i] ?? 0))

for (const mode of modes)
  for (const [form, { write, read, told }] of Object.entries(forms))
    t.test(`${mode}: ${form}`, async (t) => {
      const folder = temporaryFolder(t)
      const encryptionKeys = join(folder, 'keys')
      const own = { AES256: await linesOf(await newIdentity()), kms: await linesOf(await newIdentity(), 'archive') }
      await writeFile(encryptionKeys, own.AES256 + own.kms)
      const ofClient = (await runCli(['encryption', 'identity', customer.SSECustomerKey])).stdout.toString()
      const keys = { ...own, customer: ofClient }
      const server = await startInProcess(t, mode, { encryptionKeys, limits: { minPartBytes: 1 } })
      const { s3 } = server
      const user = new GatewayUser(server.gateway)
      await user.login()
      const Bucket = 'secret'
      await s3.createBucket({ Bucket })
      const ofSize = (size: number) => ({ at: { Bucket, Key: `of ${size}` }, content: bytes(`size ${size}`, size) })

      t.test('bytes of every size', async (t) => {
        for (const size of SIZES) {
          const { at, content } = ofSize(size)
          const put = await s3.putObject({ ...at, Body: content, Metadata: { a: 'b' }, ...write })
          const { ETag = '' } = put
          t.match(put, told)
          if (form === 'AES256') t.equal(ETag, `"${md5(content)}"`, `${size} bytes: the ETag is the MD5 of the content`)
          else t.match(ETag, /^"[0-9a-f]{32}-0"$/)
          t.equal(ETag.slice(1, 33) === md5(content), form === 'AES256', 'an ETag tells nothing of secret content')
          const head = await s3.headObject({ ...at, ...read })
          t.match(head, { ...told, ContentLength: size, ETag })
          t.same(head.Metadata, { a: 'b' }, 'the marks are not shown')
          t.ok((await bodyOf(s3, { ...at, ...read })).equals(content), `${size} bytes come back`)
          const { Contents } = await s3.listObjectsV2({ Bucket, Prefix: at.Key })
          t.match(
            Contents?.find(({ Key }) => Key === at.Key),
            { Size: size, ETag },
          )
          const attributes = { ...at, ...read, ObjectAttributes: ['ObjectSize' as const, 'ETag' as const] }
          t.match(await s3.getObjectAttributes(attributes), { ObjectSize: size, ETag: ETag.slice(1, -1) })
        }
        const { at, content } = ofSize(LARGEST)
        const { body } = await user.get(Bucket, encodeURIComponent(at.Key))
        for (const [name, lines] of Object.entries(keys)) {
          const opened = await ageDecrypt(t, body, lines)
          t.equal(opened?.equals(content), name === form || undefined, `with the key of ${name}`)
        }
      })

      t.test('ranges', async (t) => {
        const { at, content } = ofSize(LARGEST)
        const edges = [0, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK, LARGEST - 1]
        for (const first of edges)
          for (const last of edges.filter((edge) => edge >= first)) {
            const got = await s3.getObject({ ...at, ...read, Range: `bytes=${first}-${last}` })
            t.equal(got.ContentRange, `bytes ${first}-${last}/${LARGEST}`)
            const body = Buffer.from((await got.Body?.transformToByteArray()) ?? [])
            if (!body.equals(content.subarray(first, last + 1))) t.fail(`${first}-${last}`)
          }
        const cut = (Range: string) => bodyOf(s3, { ...at, ...read, Range })
        t.ok((await cut('bytes=-10')).equals(content.subarray(-10)))
        t.ok((await cut(`bytes=${CHUNK + 5}-`)).equals(content.subarray(CHUNK + 5)))
        // The gateway has these bytes, and the content has not.
        for (const Range of [`bytes=${LARGEST}-`, `bytes=${LARGEST + 50}-${LARGEST + 60}`])
          await t.rejects(cut(Range), { name: 'InvalidRange', ActualObjectSize: `${LARGEST}` })
        await t.rejects(bodyOf(s3, { ...ofSize(0).at, ...read, Range: 'bytes=0-0' }), { name: 'InvalidRange' })
      })

      t.test(`${PARTS} parts of odd sizes`, async (t) => {
        const at = { Bucket, Key: 'parts' }
        const created = await s3.createMultipartUpload({ ...at, ...write })
        t.match(created, told)
        const { UploadId = '' } = created
        const again = form === 'customer' ? read : {}
        const sent = []
        for (const i of partSizes.keys()) {
          const { ETag } = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body: part(i), ...again })
          sent.push({ PartNumber: i + 1, ETag })
        }
        const { Parts = [] } = await s3.listParts({ ...at, UploadId, ...read })
        t.same(
          Parts.map(({ Size }) => Size),
          partSizes,
        )
        const staged = readdirSync(server.data, { recursive: true, encoding: 'utf8' })
          .filter((name) => name.includes(UploadId) && /\d-[^/]*$/.test(name))
          .map((name) => readFileSync(join(server.data, name)))
        t.equal(staged.length, PARTS)
        for (const file of staged) if (file.includes(part(4).subarray(0, 32))) t.fail('a part waits in plain text')
        await server.restart()
        for (const _ of ['at first', 'again']) {
          const done = await s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts: sent }, ...read })
          t.match(done, { ETag: new RegExp(`-${PARTS}"$`) })
        }
        t.ok((await bodyOf(s3, { ...at, ...read })).equals(whole))
        t.match(await s3.headObject({ ...at, ...read }), { ...told, ContentLength: whole.length })
        for (const i of [0, 1, 3, 40, PARTS - 1]) {
          const one = await s3.getObject({ ...at, ...read, PartNumber: i + 1 })
          t.equal(one.PartsCount, PARTS)
          t.ok(part(i).equals((await one.Body?.transformToByteArray()) ?? Buffer.alloc(0)), `part ${i + 1}`)
          const first = Math.max(0, (starts[i] ?? 0) - 1)
          const last = Math.min(whole.length, (starts[i] ?? 0) + (partSizes[i] ?? 0) + 1) - 1
          const across = await bodyOf(s3, { ...at, ...read, Range: `bytes=${first}-${last}` })
          t.ok(across.equals(whole.subarray(first, last + 1)), `across part ${i + 1}`)
        }
      })

      t.test('damage at the gateway is an error, and never a wrong byte', async (t) => {
        const content = bytes('damaged', 3 * CHUNK)
        const at = { Bucket, Key: 'damaged' }
        await s3.putObject({ ...at, Body: content, ...write })
        const { body, headers } = await user.get(Bucket, at.Key)
        const marks = [...headers].filter(([name]) => name.includes('-meta-dealgate-encrypted'))
        const put = (bad: Buffer, key = at.Key) => user.put(Bucket, key, bad, Object.fromEntries(marks))
        const start = Number(marks[0]?.[1].split(' ')[1]) + 16
        const chunk = (i: number) => body.subarray(start + i * (CHUNK + 16), start + (i + 1) * (CHUNK + 16))
        const head = body.subarray(0, start)
        const flipped = (place: number) => {
          const bad = Buffer.from(body)
          bad[place] = (bad[place] ?? 0) ^ 1
          return bad
        }
        for (const [what, bad] of [
          ...[25, start - 19, start - 13, start, body.length - 1].map((i) => [`byte ${i}`, flipped(i)] as const),
          ['two chunks exchanged', Buffer.concat([head, chunk(1), chunk(0), chunk(2)])],
          ['cut after a chunk', Buffer.concat([head, chunk(0), chunk(1)])],
          ['cut within a chunk', body.subarray(0, -5)],
          ['cut within the header', body.subarray(0, 10)],
          ['empty', Buffer.alloc(0)],
        ] as const) {
          await put(bad)
          await t.rejects(bodyOf(s3, { ...at, ...read }), what)
        }
        await put(flipped(body.length - 9))
        t.ok(
          (await bodyOf(s3, { ...at, ...read, Range: 'bytes=0-9' })).equals(content.subarray(0, 10)),
          'what is whole',
        )
        await t.rejects(bodyOf(s3, { ...at, ...read, Range: `bytes=${2 * CHUNK}-` }))
        await put(body)
        t.ok((await bodyOf(s3, { ...at, ...read })).equals(content))
        // It may have been taken from a public network.
        await put(body, 'elsewhere')
        const elsewhere = bodyOf(s3, { ...at, ...read, Key: 'elsewhere' })
        await t.rejects(elsewhere, { name: 'AccessDenied' }, 'it opens at its place alone')
      })

      t.test('the state is lost, and everything is read with the keys', async (t) => {
        await server.restart({ data: temporaryFolder(t) })
        for (const size of SIZES) {
          const { at, content } = ofSize(size)
          const head = await s3.headObject({ ...at, ...read })
          t.match(head, { ...told, ContentLength: size })
          t.ok(head.ETag === `"${md5(content)}"` || head.ETag?.includes('-'), 'an ETag is never that of other bytes')
          t.ok((await bodyOf(s3, { ...at, ...read })).equals(content))
        }
        t.equal((await s3.headObject({ Bucket, Key: 'parts', ...read })).ContentLength, whole.length)
      })
    })
