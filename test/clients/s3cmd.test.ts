import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  bytes,
  hashesOf,
  hashTree,
  KiB,
  MiB,
  md5,
  sha256,
  sha256OfFile,
  writeTree,
} from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient } from '../support/programs/run.js'
import { S3cmd } from '../support/programs/s3cmd.js'
import { startDealgate } from '../support/server/dealgate.js'

const path = await findClient(t, 's3cmd')
if (path) {
  const s3cmd = await S3cmd.configured(path, await startDealgate(t), temporaryFolder(t))
  await t.test('objects', (t) => objects(t, s3cmd))
  await t.test('folders', (t) => folders(t, s3cmd))
  await t.test('signature version 2', (t) => version2(t, s3cmd))
}

async function objects(t: Test, s3cmd: S3cmd): Promise<void> {
  const bucket = 's3://s3cmd-objects'
  const file = (name: string) => join(s3cmd.home, name)
  t.match(await s3cmd.run('mb', bucket), 'created')
  t.match(await s3cmd.run('ls'), bucket)
  const sizes = { empty: 0, small: 100 * KiB, multi: 16 * MiB }
  for (const [name, size] of Object.entries(sizes)) {
    const data = bytes(name, size)
    await writeFile(file(name), data)
    await s3cmd.run('put', '--multipart-chunk-size-mb=5', file(name), `${bucket}/${name}`)
    await s3cmd.run('get', `${bucket}/${name}`, file(`${name}.down`))
    t.equal(await sha256OfFile(file(`${name}.down`)), sha256(data), `${size} bytes come back`)
  }
  t.match(await s3cmd.run('ls', '--recursive', `${bucket}/`), new RegExp(` ${16 * MiB} +${bucket}/multi\n`))
  t.match(await s3cmd.run('ls', '--list-md5', `${bucket}/small`), md5(bytes('small', 100 * KiB)))
  t.match(await s3cmd.run('du', bucket), `${16 * MiB + 100 * KiB}`)
  await s3cmd.run('put', '--mime-type=text/x-odd', '--add-header=x-amz-meta-odd:yes', file('small'), `${bucket}/meta`)
  const info = await s3cmd.run('info', `${bucket}/meta`)
  t.match(info, /MIME type: *text\/x-odd/)
  t.match(info, /x-amz-meta-odd: yes/)
  t.match(info, new RegExp(`MD5 sum: *${md5(bytes('small', 100 * KiB))}`))
  t.match(await s3cmd.run('info', bucket), /Location: *us-east-1/)

  await s3cmd.run('mv', `${bucket}/meta`, `${bucket}/moved`)
  t.match(await s3cmd.failing('info', `${bucket}/meta`), '404')
  await s3cmd.run('modify', '--add-header=x-amz-meta-odd:changed', `${bucket}/moved`)
  t.match(await s3cmd.run('info', `${bucket}/moved`), /x-amz-meta-odd: changed/)
  t.equal(await s3cmd.run('multipart', bucket).then((text) => text.trim().split('\n').length), 2, 'no upload is left')

  // signurl knows signature version 2 alone, in every release of s3cmd so far.
  const url = (await s3cmd.run('signurl', `${bucket}/small`, '+600')).trim()
  const signed = await fetch(url)
  t.equal(signed.status, 200, 'signurl makes a URL that works')
  t.equal(sha256(Buffer.from(await signed.arrayBuffer())), sha256(bytes('small', 100 * KiB)))
  t.equal((await fetch(url.replace(/Signature=[^&]{4}/, 'Signature=AAAA'))).status, 403, 'and no other one does')

  t.match(await s3cmd.failing('rb', bucket), 'BucketNotEmpty')
  await s3cmd.run('del', '--recursive', '--force', `${bucket}/`)
  t.match(await s3cmd.run('rb', bucket), 'removed')
}

async function folders(t: Test, s3cmd: S3cmd): Promise<void> {
  const up = join(s3cmd.home, 'up')
  const down = join(s3cmd.home, 'down')
  const remote = 's3://s3cmd-folders/tree/'
  const tree: Record<string, Buffer> = {
    'a.txt': bytes('a', 10),
    'a/b.txt': bytes('b', 20 * KiB),
    'a/c/d.bin': bytes('d', 300 * KiB),
    'a-b/e': bytes('e', 0),
  }
  await writeTree(up, tree)
  await mkdir(down)
  await s3cmd.run('mb', 's3://s3cmd-folders')
  await s3cmd.run('sync', `${up}/`, remote)
  t.equal(await s3cmd.run('sync', `${up}/`, remote), '', 'a second sync has nothing to do')
  await s3cmd.run('sync', remote, `${down}/`)
  t.same(await hashTree(down), hashesOf(tree))
  await rm(join(up, 'a.txt'))
  await writeFile(join(up, 'a/b.txt'), bytes('changed', 20 * KiB))
  t.match(await s3cmd.run('sync', '--delete-removed', `${up}/`, remote), 'a.txt')
  await s3cmd.run('sync', '--delete-removed', remote, `${down}/`)
  t.same(await hashTree(down), await hashTree(up))
  t.match(await s3cmd.run('ls', remote), /DIR +s3:\/\/s3cmd-folders\/tree\/a\//)
  await s3cmd.run('rb', '--recursive', '--force', 's3://s3cmd-folders')
}

async function version2(t: Test, s3cmd: S3cmd): Promise<void> {
  const bucket = 's3://s3cmd-version2'
  const v2 = (...args: string[]) => s3cmd.run('--signature-v2', ...args)
  const data = bytes('version 2', 6 * MiB)
  const file = join(s3cmd.home, 'version2')
  await writeFile(file, data)
  await v2('mb', bucket)
  await v2('put', '--multipart-chunk-size-mb=5', '--add-header=x-amz-meta-odd:yes', file, `${bucket}/a b+c/ü.bin`)
  await v2('cp', `${bucket}/a b+c/ü.bin`, `${bucket}/copy`)
  t.match(await v2('info', `${bucket}/copy`), /x-amz-meta-odd: yes/)
  await v2('get', '--force', `${bucket}/copy`, file)
  t.equal(await sha256OfFile(file), sha256(data))
  t.match(await v2('ls', `${bucket}/a`), /DIR +s3:\/\/s3cmd-version2\/a b\+c\/\n/)
  await v2('rb', '--recursive', '--force', bucket)
}
