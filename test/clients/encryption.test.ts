import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bytes, KiB, MiB } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { rcloneEnv } from '../support/programs/rclone.js'
import { findClient, run } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { sdkFor } from '../support/programs/sdk.js'
import { inEachMode, startDealgate } from '../support/server/dealgate.js'

// What clients send with their own options for AES256 comes back, also from parallel ranges.

const files = { empty: 0, odd: 64 * KiB + 1, large: 20 * MiB + 7 }

const versions = await awsVersions(t)
const rclone = await findClient(t, 'rclone')
const s3cmdPath = await findClient(t, 's3cmd')

inEachMode(t, async (t, server) => {
  const home = temporaryFolder(t)
  for (const [name, size] of Object.entries(files)) await writeFile(join(home, name), bytes(name, size))
  const s3 = sdkFor(t, server)
  await s3.createBucket({ Bucket: 'clients' })
  const check = async (prefix: string) => {
    for (const [name, size] of Object.entries(files)) {
      const { ServerSideEncryption, ContentLength } = await s3.headObject({
        Bucket: 'clients',
        Key: `${prefix}/${name}`,
      })
      t.same({ ServerSideEncryption, ContentLength }, { ServerSideEncryption: 'AES256', ContentLength: size })
    }
  }
  for (const version of versions)
    await t.test(version.name, async (t) => {
      const aws = new Aws(version, server, home)
      for (const [name, size] of Object.entries(files)) {
        await aws.s3('cp', join(home, name), `s3://clients/aws/${name}`, '--sse', 'AES256', '--no-progress')
        await aws.s3('cp', `s3://clients/aws/${name}`, join(home, 'back'), '--no-progress')
        t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
      }
      await check('aws')
    })
  if (rclone)
    await t.test('rclone', async (t) => {
      const env = { ...(await rcloneEnv(server, home)), RCLONE_S3_SERVER_SIDE_ENCRYPTION: 'AES256' }
      const more = { ...env, RCLONE_S3_UPLOAD_CUTOFF: '5Mi', RCLONE_S3_CHUNK_SIZE: '5Mi' }
      const include = Object.keys(files).flatMap((name) => ['--include', name])
      await run(rclone, ['copy', home, 'dg:clients/rclone', ...include], { env: more })
      await run(rclone, ['check', home, 'dg:clients/rclone', ...include, '--download'], { env: more })
      await run(rclone, ['check', home, 'dg:clients/rclone', ...include], { env: more })
      await check('rclone')
      t.pass('rclone finds no difference, neither in hashes nor in bytes')
    })
  if (s3cmdPath)
    await t.test('s3cmd', async (t) => {
      const s3cmd = await S3cmd.configured(s3cmdPath, server, temporaryFolder(t))
      for (const [name, size] of Object.entries(files)) {
        await s3cmd.run('put', '--server-side-encryption', join(home, name), `s3://clients/s3cmd/${name}`)
        await s3cmd.run('get', '--force', `s3://clients/s3cmd/${name}`, join(home, 'back'))
        t.ok((await readFile(join(home, 'back'))).equals(bytes(name, size)), name)
      }
      await check('s3cmd')
    })
})

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
    const { Body } = await after.getObject({ Bucket: 'clients', Key })
    t.ok(Buffer.from((await Body?.transformToByteArray()) ?? []).equals(content), Key)
  }
})
