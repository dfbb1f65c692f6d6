import {
  access,
  chmod,
  constants,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bytes, MiB } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, run, runAny } from '../support/programs/run.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'

const path = await findClient(t, 's3fs')
const fuse = await access('/dev/fuse', constants.R_OK | constants.W_OK).then(
  () => true,
  () => false,
)
if (path && !fuse) t.pass('s3fs', { skip: 'this machine has no /dev/fuse' })
if (path && fuse) {
  inEachMode(t, async (t, server) => {
    const folder = await mountBucket(t, path, server, 's3fs-bucket')
    await t.test('files', (t) => files(t, folder))
    await t.test('folders', (t) => folders(t, folder))
  })
}

async function mountBucket(t: Test, s3fs: string, server: Dealgate, bucket: string): Promise<string> {
  const home = temporaryFolder(t)
  const folder = join(home, 'mount')
  await mkdir(folder)
  await writeFile(join(home, 'passwd'), `${server.accessKey}:${server.secretKey}`, { mode: 0o600 })
  const env = { HOME: home }
  const aws = { ...env, AWS_ACCESS_KEY_ID: server.accessKey, AWS_SECRET_ACCESS_KEY: server.secretKey }
  await run(
    'curl',
    [
      ...['-sSf', '-X', 'PUT', '--aws-sigv4', `aws:amz:${server.region}:s3`, '-u'],
      ...[`${server.accessKey}:${server.secretKey}`, `${server.endpoint}/${bucket}`],
    ],
    { env: aws },
  )
  const options = [
    `url=${server.endpoint}`,
    `passwd_file=${join(home, 'passwd')}`,
    `endpoint=${server.region}`,
    'use_path_request_style',
    'multipart_size=5',
    'max_stat_cache_size=0',
    'retries=1',
  ]
  await run(s3fs, [bucket, folder, ...options.flatMap((option) => ['-o', option])], { env })
  t.teardown(async () => {
    await runAny('fusermount', ['-u', folder], { env })
  })
  return folder
}

async function files(t: Test, folder: string): Promise<void> {
  const small = bytes('s3fs-small', 1000)
  const large = bytes('s3fs-large', 12 * MiB)
  await writeFile(join(folder, 'small file ü'), small)
  await writeFile(join(folder, 'large'), large)
  t.ok((await readFile(join(folder, 'small file ü'))).equals(small))
  t.ok((await readFile(join(folder, 'large'))).equals(large), 'a multipart upload')
  await copyFile(join(folder, 'large'), join(folder, 'copy'))
  t.ok((await readFile(join(folder, 'copy'))).equals(large), 'cp')
  await rename(join(folder, 'copy'), join(folder, 'moved'))
  t.ok((await readFile(join(folder, 'moved'))).equals(large), 'mv')
  await chmod(join(folder, 'moved'), 0o640)
  t.equal((await stat(join(folder, 'moved'))).mode & 0o777, 0o640, 'chmod')
  await writeFile(join(folder, 'small file ü'), 'replaced')
  t.equal(await readFile(join(folder, 'small file ü'), 'utf8'), 'replaced')
  t.same((await readdir(folder)).sort(), ['large', 'moved', 'small file ü'])
}

async function folders(t: Test, folder: string): Promise<void> {
  await mkdir(join(folder, 'a', 'b'), { recursive: true })
  await writeFile(join(folder, 'a', 'b', 'file'), 'in a folder')
  await mkdir(join(folder, 'empty'))
  t.same((await readdir(join(folder, 'a'))).sort(), ['b'])
  await rename(join(folder, 'a'), join(folder, 'z'))
  t.equal(await readFile(join(folder, 'z', 'b', 'file'), 'utf8'), 'in a folder', 'a folder was moved')
  await rm(join(folder, 'z'), { recursive: true })
  await rm(join(folder, 'empty'), { recursive: true })
  t.same((await readdir(folder)).sort(), ['large', 'moved', 'small file ü'], 'rm -r took the folders and nothing else')
}
