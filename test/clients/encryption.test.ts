import { readFile, writeFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
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
import { modes } from '../support/server/modes.js'

// What clients send with their own options for encryption comes back, also from parallel ranges.

const files = { empty: 0, odd: 64 * KiB + 1, large: 10 * MiB + 7 }
const key = bytes('a key of a client', 16).toString('hex')

const versions = await awsVersions(t, 'each')
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

for (const mode of modes) {
  // rclone sends keys over TLS alone, and aws-cli is told the authority.
  const tls = mode === 'full'
  t.test(mode, async (t) => {
    const server = await startDealgate(t, {
      mode,
      args: tls ? ['--tls-cert', issued.cert, '--tls-key', issued.key] : [],
    })
    const home = temporaryFolder(t)
    for (const [name, size] of Object.entries(files)) await writeFile(join(home, name), bytes(name, size))
    await writeFile(join(home, 'key'), key)
    const { code, stderr } = await runCli(['encryption', 'rotate', '--name', 'archive', '--data', server.data])
    t.equal(code, 0, stderr)
    const agent = new Agent({ ca: authority.pem })
    const s3 = sdkFor(t, server, tls ? { requestHandler: { httpsAgent: agent } } : {})
    await s3.createBucket({ Bucket: 'clients' })
    // What the gateway is makes no difference to the headers of clients: the other forms run in one mode.
    for (const form of forms(home).filter(({ name }) => tls || name === 'AES256')) {
      const check = async (prefix: string) => {
        for (const [name, size] of Object.entries(files))
          t.match(await s3.headObject({ Bucket: 'clients', Key: `${form.name}/${prefix}/${name}`, ...form.ask }), {
            ContentLength: size,
            ...form.head,
          })
      }
      for (const version of form.name === 'customer' ? versions : versions.slice(-1))
        await t.test(`${form.name}: ${version.name}`, async (t) => {
          const aws = new Aws(version, server, home, tls ? { AWS_CA_BUNDLE: authority.file } : {})
          const at = (name: string) => `s3://clients/${form.name}/aws/${name}`
          for (const [name, size] of Object.entries(files)) {
            await aws.s3('cp', join(home, name), at(name), ...form.aws.put, '--no-progress')
            await aws.s3('cp', at(name), join(home, 'back'), ...form.aws.get, '--no-progress')
            t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
          }
          await check('aws')
          if (form.name === 'customer')
            t.not(await aws.s3Code('cp', at('odd'), join(home, 'back')), 0, 'without the key')
        })
      if (rclone)
        await t.test(`${form.name}: rclone`, async (t) => {
          const to = `dg:clients/${form.name}/rclone`
          const env = { ...(await rcloneEnv(server, home)), ...form.rclone, RCLONE_CA_CERT: authority.file }
          const more = { ...env, RCLONE_S3_UPLOAD_CUTOFF: '5Mi', RCLONE_S3_CHUNK_SIZE: '5Mi' }
          const include = Object.keys(files).flatMap((name) => ['--include', name])
          await run(rclone, ['copy', home, to, ...include], { env: more })
          await run(rclone, ['check', home, to, ...include, '--download'], { env: more })
          if (form.name === 'AES256') await run(rclone, ['check', home, to, ...include], { env: more })
          await check('rclone')
          t.pass('rclone finds no difference')
        })
      const { s3cmd: options } = form
      if (s3cmdPath && options)
        await t.test(`${form.name}: s3cmd`, async (t) => {
          const s3cmd = await S3cmd.configured(s3cmdPath, server, temporaryFolder(t))
          const ca = tls ? ['--ssl', `--ca-certs=${authority.file}`] : []
          for (const [name, size] of Object.entries(files)) {
            const to = `s3://clients/${form.name}/s3cmd/${name}`
            await s3cmd.run(...ca, 'put', ...options, join(home, name), to)
            await s3cmd.run(...ca, 'get', '--force', to, join(home, 'back'))
            t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
          }
          await check('s3cmd')
        })
    }
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
