import { readFile, writeFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Authority } from '../support/content/certificates.js'
import { bytes, KiB, MiB } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { rcloneEnv } from '../support/programs/rclone.js'
import { findClient, run } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { bodyOf, sdkFor } from '../support/programs/sdk.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

// What clients send with their own options for encryption comes back, also from parallel ranges.

const files = { empty: 0, odd: 64 * KiB + 1, large: 10 * MiB + 7 }
const key = bytes('a key of a client', 16).toString('hex')

const [version] = await awsVersions(t)
const rclone = await findClient(t, 'rclone')
const s3cmdPath = await findClient(t, 's3cmd')

/** A form of encryption, as the options of each client ask for it, and as HEAD states it. */
interface Form {
  readonly name: string
  readonly aws: { readonly put: readonly string[]; readonly get: readonly string[] }
  readonly rclone: Readonly<Record<string, string>>
  readonly s3cmd?: readonly string[]
  readonly head: Readonly<Record<string, string>>
  /** What a HEAD needs. */
  readonly ask: { readonly SSECustomerAlgorithm?: string; readonly SSECustomerKey?: string }
}

function forms(home: string): Form[] {
  const sseC = ['--sse-c', 'AES256', '--sse-c-key', `fileb://${join(home, 'key')}`]
  return [
    {
      name: 'AES256',
      aws: { put: ['--sse', 'AES256'], get: [] },
      rclone: { RCLONE_S3_SERVER_SIDE_ENCRYPTION: 'AES256' },
      s3cmd: ['--server-side-encryption'],
      head: { ServerSideEncryption: 'AES256' },
      ask: {},
    },
    {
      name: 'kms',
      aws: { put: ['--sse', 'aws:kms', '--sse-kms-key-id', 'archive'], get: [] },
      rclone: { RCLONE_S3_SERVER_SIDE_ENCRYPTION: 'aws:kms', RCLONE_S3_SSE_KMS_KEY_ID: 'archive' },
      s3cmd: ['--server-side-encryption', '--server-side-encryption-kms-id=archive'],
      head: { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive' },
      ask: {},
    },
    {
      name: 'customer',
      aws: { put: sseC, get: sseC },
      rclone: { RCLONE_S3_SSE_CUSTOMER_ALGORITHM: 'AES256', RCLONE_S3_SSE_CUSTOMER_KEY: key },
      head: { SSECustomerAlgorithm: 'AES256' },
      ask: { SSECustomerAlgorithm: 'AES256', SSECustomerKey: key },
    },
  ]
}

const authority = new Authority(t.testdir())
const issued = authority.issue('server', 'IP:127.0.0.1,DNS:localhost')

// rclone sends keys over TLS alone.
const server = await startDealgate(t, { args: ['--tls-cert', issued.cert, '--tls-key', issued.key] })
const home = temporaryFolder(t)
for (const [name, size] of Object.entries(files)) await writeFile(join(home, name), bytes(name, size))
await writeFile(join(home, 'key'), key)
const rotated = await runCli(['encryption', 'rotate', '--name', 'archive', '--data', server.data])
if (rotated.code !== 0) throw new Error(rotated.stderr)
const s3 = sdkFor(t, server, { requestHandler: { httpsAgent: new Agent({ ca: authority.pem }) } })
await s3.createBucket({ Bucket: 'clients' })

for (const { name: form, head, ask, ...options } of forms(home)) {
  const check = async (t: Test, client: string) => {
    for (const [name, size] of Object.entries(files)) {
      const told = await s3.headObject({ Bucket: 'clients', Key: `${form}/${client}/${name}`, ...ask })
      t.match(told, { ContentLength: size, ...head })
    }
  }
  if (version)
    await t.test(`${form}: aws-cli`, async (t) => {
      const aws = new Aws(version, server, home, { AWS_CA_BUNDLE: authority.file })
      const at = (name: string) => `s3://clients/${form}/aws/${name}`
      for (const [name, size] of Object.entries(files)) {
        await aws.s3('cp', join(home, name), at(name), ...options.aws.put, '--no-progress')
        await aws.s3('cp', at(name), join(home, 'back'), ...options.aws.get, '--no-progress')
        t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
      }
      await check(t, 'aws')
      if (form === 'customer') t.not(await aws.s3Code('cp', at('odd'), join(home, 'back')), 0, 'without the key')
    })
  if (rclone)
    await t.test(`${form}: rclone`, async (t) => {
      const to = `dg:clients/${form}/rclone`
      const parts = { RCLONE_S3_UPLOAD_CUTOFF: '5Mi', RCLONE_S3_CHUNK_SIZE: '5Mi', RCLONE_CA_CERT: authority.file }
      const env = { ...(await rcloneEnv(server, home)), ...options.rclone, ...parts }
      const include = Object.keys(files).flatMap((name) => ['--include', name])
      await run(rclone, ['copy', home, to, ...include], { env })
      await run(rclone, ['check', home, to, ...include, '--download'], { env })
      await check(t, 'rclone')
    })
  const { s3cmd: flags } = options
  if (s3cmdPath && flags)
    await t.test(`${form}: s3cmd`, async (t) => {
      const s3cmd = await S3cmd.configured(s3cmdPath, server, temporaryFolder(t))
      const ca = ['--ssl', `--ca-certs=${authority.file}`]
      for (const [name, size] of Object.entries(files)) {
        const to = `s3://clients/${form}/s3cmd/${name}`
        await s3cmd.run(...ca, 'put', ...flags, join(home, name), to)
        await s3cmd.run(...ca, 'get', '--force', to, join(home, 'back'))
        t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
      }
      await check(t, 's3cmd')
    })
}

t.test('parts that were acknowledged survive kill -9, and are one object after it', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const at = { Bucket: 'clients', Key: 'killed' }
  const parts = [bytes('one', 5 * MiB + 1), bytes('two', 64 * KiB)]
  const before = await startDealgate(t, { data })
  const s3 = sdkFor(t, before)
  await s3.createBucket({ Bucket: 'clients' })
  await s3.putObject({ Bucket: 'clients', Key: 'whole', Body: parts[0], ServerSideEncryption: 'AES256' })
  const { UploadId } = await s3.createMultipartUpload({ ...at, ServerSideEncryption: 'AES256' })
  const sent = []
  for (const [i, Body] of parts.entries()) {
    const { ETag } = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body })
    sent.push({ PartNumber: i + 1, ETag })
  }
  await before.kill9()
  const after = sdkFor(t, await startDealgate(t, { data }))
  await after.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts: sent } })
  for (const [Key, content] of [
    ['killed', Buffer.concat(parts)],
    ['whole', parts[0] as Buffer],
  ] as const) {
    t.ok((await bodyOf(after, { Bucket: 'clients', Key })).equals(content), Key)
  }
})
