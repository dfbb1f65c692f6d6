import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { newIdentity } from '../../../src/objects/encryption/age-header.js'
import { linesOf } from '../../../src/objects/encryption/key-file.js'
import { bytes } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'

// Parts of odd sizes, whose borders lie anywhere in the chunks of the object.

const CHUNK = 64 * 1024
const PARTS = 200

/** Around the borders of chunks, and between them. */
const sizes = Array.from({ length: PARTS }, (_, i) =>
  i % 3 === 0 ? ([1, 2, 15, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1][i % 7] as number) : (i * 7919) % 120_001,
).map((size) => Math.max(1, size))
const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0))
const content = bytes(
  'odd parts',
  sizes.reduce((sum, size) => sum + size, 0),
)
const part = (i: number) => content.subarray(starts[i], (starts[i] ?? 0) + (sizes[i] ?? 0))

const secret = bytes('a key of a client', 32).toString('base64')
const customer = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: secret } as const
const forms = {
  s3: [{ ServerSideEncryption: 'AES256' }, {}],
  kms: [{ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive' }, {}],
  customer: [customer, customer],
} as const

for (const mode of modes)
  t.test(`${mode}: ${PARTS} parts of odd sizes`, async (t) => {
    const encryptionKeys = join(temporaryFolder(t), 'keys')
    await writeFile(
      encryptionKeys,
      (await linesOf(await newIdentity())) + (await linesOf(await newIdentity(), 'archive')),
    )
    const { s3 } = await startInProcess(t, mode, { encryptionKeys, limits: { minPartBytes: 1 } })
    await s3.createBucket({ Bucket: 'odd' })
    for (const [form, [write, read]] of Object.entries(forms)) {
      const at = { Bucket: 'odd', Key: form }
      const { UploadId } = await s3.createMultipartUpload({ ...at, ...write })
      const sent = []
      for (const i of sizes.keys()) {
        const { ETag } = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body: part(i), ...read })
        sent.push({ PartNumber: i + 1, ETag })
      }
      const done = await s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts: sent } })
      t.match(done.ETag, new RegExp(`-${PARTS}"$`), form)
      const ask = async (more: object = {}) => {
        const { Body, PartsCount } = await s3.getObject({ ...at, ...read, ...more })
        return { found: Buffer.from((await Body?.transformToByteArray()) ?? []), PartsCount }
      }
      t.ok((await ask()).found.equals(content), `${form}: the whole`)
      for (const i of [0, 1, 3, 100, PARTS - 1]) {
        const { found, PartsCount } = await ask({ PartNumber: i + 1 })
        t.equal(PartsCount, PARTS)
        t.ok(found.equals(part(i)), `${form}: part ${i + 1}`)
        const first = Math.max(0, (starts[i] ?? 0) - 1)
        const last = Math.min(content.length, (starts[i] ?? 0) + (sizes[i] ?? 0) + 1) - 1
        const across = await ask({ Range: `bytes=${first}-${last}` })
        t.ok(across.found.equals(content.subarray(first, last + 1)), `${form}: across part ${i + 1}`)
      }
    }
  })
