import { chmod, mkdir, rm, utimes, writeFile } from 'node:fs/promises'
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
import { rcloneEnv } from '../support/programs/rclone.js'
import { findClient, type RunOptions, run, runFailing } from '../support/programs/run.js'
import { inEachMode } from '../support/server/dealgate.js'

class Rclone {
  readonly home: string
  readonly #path: string
  readonly #env: Record<string, string>

  constructor(path: string, env: Record<string, string>, home: string) {
    this.#path = path
    this.home = home
    this.#env = { ...env, RCLONE_LOW_LEVEL_RETRIES: '1', RCLONE_S3_CHUNK_SIZE: '5Mi' }
  }

  async run(...args: string[]): Promise<string> {
    return String(await this.bytes(args))
  }

  bytes(args: string[], options: RunOptions = {}): Promise<Buffer> {
    return run(this.#path, args, { ...options, env: this.#env })
  }

  failing(...args: string[]): Promise<string> {
    return runFailing(this.#path, args, { env: this.#env })
  }
}

const path = await findClient(t, 'rclone')
if (path) {
  inEachMode(t, async (t, server) => {
    const home = temporaryFolder(t)
    const rclone = new Rclone(path, await rcloneEnv(server, home), home)
    await t.test('multipart', (t) => multipart(t, rclone))
    // real-gateway copies folders to a legacy gateway, too.
    if (server.mode === 'legacy') return
    await t.test('folders', (t) => folders(t, rclone))
    await t.test('single objects', (t) => single(t, rclone))
  })
}

async function folders(t: Test, rclone: Rclone): Promise<void> {
  const local = join(rclone.home, 'local')
  const back = join(rclone.home, 'back')
  const remote = 'dg:rclone-folders/tree'
  const tree: Record<string, Buffer> = {
    'a.txt': bytes('a', 10),
    'a/b.txt': bytes('b', 20 * KiB),
    'a/c/d.bin': bytes('d', 300 * KiB),
    'a-b/e': bytes('e', 0),
  }
  await writeTree(local, tree)
  const old = new Date('2001-02-03T04:05:06.789Z')
  await utimes(join(local, 'a/b.txt'), old, old)
  await rclone.run('mkdir', 'dg:rclone-folders')
  await rclone.run('mkdir', 'dg:rclone-folders')
  await rclone.run('copy', local, remote)
  t.match(await rclone.run('lsl', `${remote}/a`), /2001-02-03 .*06\.789\d* b\.txt/, 'the time of change is kept')
  t.same(
    (await rclone.run('lsf', '-R', remote)).trim().split('\n').sort(),
    ['a-b/', 'a-b/e', 'a.txt', 'a/', 'a/b.txt', 'a/c/', 'a/c/d.bin'],
    'lsf -R',
  )
  await rclone.run('check', local, remote)
  t.match(await rclone.run('md5sum', remote), `${md5(tree['a/b.txt'] as Buffer)}  a/b.txt`)
  await rclone.run('copy', remote, back)
  t.same(await hashTree(back), hashesOf(tree))

  const touched = new Date('2010-01-01T00:00:00Z')
  await utimes(join(local, 'a/b.txt'), touched, touched)
  await rm(join(local, 'a.txt'))
  await writeFile(join(local, 'a/c/d.bin'), bytes('changed', 5))
  await rclone.run('sync', local, remote)
  t.match(await rclone.run('lsl', `${remote}/a`), /2010-01-01 .* b\.txt/, 'a copy onto itself changes a new time alone')
  await rclone.run('sync', remote, back)
  t.same(await hashTree(back), await hashTree(local), 'sync there and back')
  await writeFile(join(local, 'a/c/d.bin'), bytes('changed again', 5))
  t.match(await rclone.failing('check', local, remote), '1 differences found')

  await rclone.run('move', `${remote}/a`, 'dg:rclone-folders/elsewhere')
  t.equal(await rclone.run('lsf', '-R', '--files-only', remote), 'a-b/e\n')
  await rclone.run('purge', 'dg:rclone-folders')
  t.match(await rclone.failing('lsf', 'dg:rclone-folders'), 'directory not found')
}

async function single(t: Test, rclone: Rclone): Promise<void> {
  await rclone.run('mkdir', 'dg:rclone-single')
  const data = bytes('rcat', 50 * KiB)
  await rclone.bytes(['rcat', 'dg:rclone-single/small'], { input: data })
  t.same(await rclone.bytes(['cat', 'dg:rclone-single/small']), data)
  t.same(
    await rclone.bytes(['cat', '--offset', '1000', '--count', '77', 'dg:rclone-single/small']),
    data.subarray(1000, 1077),
  )
  await rclone.bytes(['rcat', 'dg:rclone-single/empty'], { input: '' })
  await rclone.run('copyto', 'dg:rclone-single/small', 'dg:rclone-single/copy')
  await rclone.run('moveto', 'dg:rclone-single/copy', 'dg:rclone-single/folder/moved')
  t.same(await rclone.bytes(['cat', 'dg:rclone-single/folder/moved']), data)
  await rclone.run('touch', '--timestamp', '2005-05-05T05:05:05', 'dg:rclone-single/small')
  t.match(await rclone.run('lsl', 'dg:rclone-single'), /2005-05-05 05:05:05.* small/)
  const file = join(rclone.home, 'meta')
  await writeFile(file, 'meta')
  await chmod(file, 0o644)
  await rclone.run('copyto', '--metadata', file, 'dg:rclone-single/meta')
  t.match(await rclone.run('lsjson', '--stat', '--metadata', 'dg:rclone-single/meta'), /"mode":\s*"100644"/, 'metadata')
  const response = await fetch((await rclone.run('link', 'dg:rclone-single/small')).trim())
  t.equal(sha256(Buffer.from(await response.arrayBuffer())), sha256(data), 'link makes a URL that works')
}

async function multipart(t: Test, rclone: Rclone): Promise<void> {
  await rclone.run('mkdir', 'dg:rclone-multi')
  const up = join(rclone.home, 'big')
  const down = join(rclone.home, 'big.down')
  const data = bytes('big', 17 * MiB)
  await mkdir(down)
  await writeFile(up, data)
  const parts = ['--s3-upload-cutoff', '5M', '--s3-chunk-size', '5M', '--s3-upload-concurrency', '4']
  await rclone.run('copy', ...parts, up, 'dg:rclone-multi')
  t.match(await rclone.run('md5sum', 'dg:rclone-multi/big'), md5(data), 'the MD5 that rclone keeps in metadata')
  await rclone.run('copy', 'dg:rclone-multi/big', down)
  t.equal(await sha256OfFile(join(down, 'big')), sha256(data))
  await rclone.run('check', up, 'dg:rclone-multi')
  await rclone.run('copyto', '--s3-copy-cutoff', '6M', 'dg:rclone-multi/big', 'dg:rclone-multi/copied-in-parts')
  t.match(await rclone.run('size', 'dg:rclone-multi/copied-in-parts'), '17 MiB')

  const stream = bytes('stream', 12 * MiB + 3)
  await rclone.bytes(['rcat', '--s3-chunk-size', '5M', 'dg:rclone-multi/stream'], { input: stream })
  t.equal(sha256(await rclone.bytes(['cat', 'dg:rclone-multi/stream'])), sha256(stream), 'rcat of unknown length')
  t.equal(await rclone.run('backend', 'list-multipart-uploads', 'dg:rclone-multi'), '{\n\t"rclone-multi": []\n}\n')
}
