import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { bytes, hashesOf, hashTree, MiB, writeTree } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { fileKeys } from '../../support/content/keys.js'
import { Aws, type AwsVersion } from '../../support/programs/aws-cli.js'
import { rcloneEnv } from '../../support/programs/rclone.js'
import { findClient, run } from '../../support/programs/run.js'
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

export async function awsCli(t: Test, server: Dealgate, version: AwsVersion): Promise<void> {
  const { home, up, down } = await folders(t)
  const aws = new Aws(version, server, home)
  const bucket = 's3://real-aws-cli'
  await aws.s3('mb', bucket)
  await aws.s3('sync', '--quiet', up, bucket)
  t.equal(await aws.s3('sync', up, bucket), '', 'a second sync has nothing to do')
  await aws.s3('sync', '--quiet', bucket, down)
  t.same(await hashTree(down), hashesOf(tree))
  for (const key of ['photos/', 'photos/2026/']) await aws.api('put-object', '--bucket', 'real-aws-cli', '--key', key)
  t.match(await aws.s3('rb', '--force', bucket), 'remove_bucket')
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
