import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { paginateListObjectsV2 } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import type { Test } from 'tap'
import { bytes, hashesOf, hashTree, KiB, MiB, md5, sha256, writeTree } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { fileKeys } from '../../support/content/keys.js'
import { Aws, type AwsVersion } from '../../support/programs/aws-cli.js'
import { rcloneEnv } from '../../support/programs/rclone.js'
import { findClient, run } from '../../support/programs/run.js'
import { S3cmd } from '../../support/programs/s3cmd.js'
import { minioFor, sdkFor } from '../../support/programs/sdk.js'
import type { Dealgate } from '../../support/server/dealgate.js'

/** Odd names, an empty file, and one that is sent in parts. */
const tree: Readonly<Record<string, Buffer>> = {
  ...Object.fromEntries(fileKeys.map((key) => [key, bytes(key, 100)])),
  'empty/file': Buffer.of(),
  'large.bin': bytes('large', 9 * MiB),
}

async function folders(t: Test): Promise<{ home: string; up: string; down: string }> {
  const home = temporaryFolder(t)
  const [up, down] = [join(home, 'up'), join(home, 'down')]
  await writeTree(up, tree)
  await mkdir(down)
  return { home, up, down }
}

export async function awsCli(t: Test, server: Dealgate, versions: readonly AwsVersion[]): Promise<void> {
  for (const version of versions) {
    const { home, up, down } = await folders(t)
    const aws = new Aws(version, server, home)
    const bucket = `s3://real-${version.name.replace(/\W/g, '-')}`
    await aws.s3('mb', bucket)
    await aws.s3('sync', '--quiet', up, bucket)
    t.equal(await aws.s3('sync', up, bucket), '', `${version.name}: a second sync has nothing to do`)
    await aws.s3('sync', '--quiet', bucket, down)
    t.same(await hashTree(down), hashesOf(tree))
    await aws.api('put-object', '--bucket', bucket.slice(5), '--key', 'photos/')
    await aws.api('put-object', '--bucket', bucket.slice(5), '--key', 'photos/2026/')
    t.match(await aws.s3('rb', '--force', bucket), 'remove_bucket')
  }
}

export async function rclone(t: Test, server: Dealgate): Promise<void> {
  const path = await findClient(t, 'rclone')
  if (!path) return
  const { home, up, down } = await folders(t)
  const env = { ...(await rcloneEnv(server, home)), RCLONE_S3_CHUNK_SIZE: '5Mi', RCLONE_S3_UPLOAD_CUTOFF: '5Mi' }
  const rclone = async (...args: string[]) => (await run(path, args, { env })).toString()
  await rclone('mkdir', 'dg:real-rclone')
  await rclone('sync', up, 'dg:real-rclone')
  await rclone('check', '--download', up, 'dg:real-rclone')
  await rclone('sync', 'dg:real-rclone', down)
  t.same(await hashTree(down), hashesOf(tree))
  await rclone('purge', 'dg:real-rclone')
}

export async function s3cmd(t: Test, server: Dealgate): Promise<void> {
  const path = await findClient(t, 's3cmd')
  if (!path) return
  const { home, up, down } = await folders(t)
  const s3cmd = await S3cmd.configured(path, server, home)
  await s3cmd.run('mb', 's3://real-s3cmd')
  await s3cmd.run('sync', '--multipart-chunk-size-mb=5', `${up}/`, 's3://real-s3cmd')
  await s3cmd.run('sync', 's3://real-s3cmd', `${down}/`)
  t.same(await hashTree(down), hashesOf(tree))
  await s3cmd.run('rb', '--recursive', '--force', 's3://real-s3cmd')
}

export async function sdk(t: Test, server: Dealgate): Promise<void> {
  const client = sdkFor(t, server)
  const Bucket = 'real-sdk'
  await client.createBucket({ Bucket })
  const Metadata = { colour: 'red' }
  for (const [Key, Body] of Object.entries(tree)) {
    await new Upload({ client, partSize: 5 * MiB, params: { Bucket, Key, Body, Metadata } }).done()
    const got = await client.getObject({ Bucket, Key })
    t.equal(sha256((await got.Body?.transformToByteArray()) ?? ''), sha256(Body), Key)
    t.match(got.Metadata, Metadata)
  }
  const { ETag } = await client.headObject({ Bucket, Key: 'empty/file' })
  t.equal(ETag, `"${md5(Buffer.of())}"`)
  let listed = 0
  for await (const page of paginateListObjectsV2({ client, pageSize: 5 }, { Bucket })) listed += page.KeyCount ?? 0
  t.equal(listed, Object.keys(tree).length)
}

export async function minioJs(t: Test, server: Dealgate): Promise<void> {
  const client = minioFor(server, { partSize: 5 * MiB })
  const bucket = 'real-minio-js'
  await client.makeBucket(bucket, server.region)
  for (const [key, data] of Object.entries(tree)) {
    await client.putObject(bucket, key, data, data.length, { 'X-Amz-Meta-One': '1' })
    t.equal(sha256(await buffer(await client.getObject(bucket, key))), sha256(data), key)
  }
  t.match(await client.statObject(bucket, 'large.bin'), { size: 9 * MiB, metaData: { one: '1' } })
  const part = await buffer(await client.getPartialObject(bucket, 'large.bin', 5 * MiB, KiB))
  t.same(part, tree['large.bin']?.subarray(5 * MiB, 5 * MiB + KiB))
  await client.removeObjects(bucket, Object.keys(tree))
  await client.removeBucket(bucket)
}
