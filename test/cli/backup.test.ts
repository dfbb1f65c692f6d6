import { execFileSync } from 'node:child_process'
import {
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readManifest } from '../../cli/backup/manifest.js'
import { beginRestore } from '../../common/files/data-version.js'
import { bytes, KiB, md5, sha256 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'

const BUCKET = 'kept'
const LARGE = 300 * KiB

interface Made {
  readonly backup: string
  readonly files: number
  readonly linked: number
  readonly removed: number
  readonly notIncluded: readonly string[]
  readonly damaged: readonly string[]
  readonly missing: readonly string[]
}

async function made(data: string, folder: string, ...more: string[]): Promise<Made> {
  const { code, stdout, stderr } = await runCli(['backup', folder, '--data', data, '--print', 'json', ...more])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

async function put(server: Dealgate, key: string, version: number, size: number): Promise<void> {
  const body = bytes(`${key} ${version}`, size)
  const headers = { 'x-amz-meta-version': String(version), 'x-amz-tagging': `version=${version}` }
  const { status } = await send(server, { method: 'PUT', target: targetOf(BUCKET, key), headers, body })
  if (status !== 200) throw new Error(`PUT ${key}: ${status}`)
}

/** Writes until it is told to end. `acknowledged` has the versions that were, by key, at any time. */
function startWriters(server: Dealgate) {
  const acknowledged = new Map<string, number>()
  let ended = false
  const repeat = async (write: (n: number) => Promise<void>) => {
    for (let n = 1; !ended; n++) {
      await write(n)
      // More writes of the same kind show nothing more.
      await sleep(20)
    }
  }
  const write = async (key: string, version: number, size: number) => {
    await put(server, key, version, size)
    acknowledged.set(key, version)
  }
  const running = [
    ...['hot-a', 'hot-b'].map((key) => repeat((n) => write(key, n, LARGE))),
    repeat((n) => write(`small-${n}`, 1, 500)),
    repeat((n) => write(`large-${n}`, 1, LARGE)),
    repeat(async (n) => {
      await put(server, `gone-${n % 3}`, n, LARGE)
      await send(server, { method: 'DELETE', target: targetOf(BUCKET, `gone-${n % 3}`) })
    }),
  ]
  const end = async () => {
    ended = true
    await Promise.all(running)
  }
  return { acknowledged, end }
}

async function makeBucket(t: Test, server: Dealgate): Promise<void> {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
}

/** Every object of the bucket is whole. Returns the versions by key. */
async function readAll(t: Test, server: Dealgate): Promise<Map<string, number>> {
  const versions = new Map<string, number>()
  for (let after = ''; ; ) {
    const target = `/${BUCKET}?list-type=2&start-after=${after}`
    const { body } = await send(server, { method: 'GET', target })
    const keys = [...body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key ?? '')
    for (const key of keys) {
      const answer = await send(server, { method: 'GET', target: targetOf(BUCKET, key) })
      const version = Number(answer.headers['x-amz-meta-version'])
      const size = key.startsWith('small') ? 500 : LARGE
      const right = answer.status === 200 && answer.body.equals(bytes(`${key} ${version}`, size))
      if (!right || answer.headers.etag !== `"${md5(answer.body)}"`) t.fail(`${key} is whole: ${answer.status}`)
      versions.set(key, version)
    }
    const last = keys.at(-1)
    if (last === undefined) return versions
    after = last
  }
}

/** Of all tests but the first, which kills its own. */
const server = await startDealgate(t)

t.test('a backup under load has every write that was acknowledged before it, and none half', async (t) => {
  const server = await startDealgate(t)
  const folder = temporaryFolder(t)
  await makeBucket(t, server)
  const begun = await send(server, { method: 'POST', target: targetOf(BUCKET, 'joined', 'uploads=') })
  const upload = /<UploadId>(.*?)<\/UploadId>/.exec(begun.body.toString())?.[1] ?? ''
  const part = await send(server, {
    method: 'PUT',
    target: targetOf(BUCKET, 'joined', `partNumber=1&uploadId=${upload}`),
    body: bytes('joined 1', LARGE),
  })
  const writers = startWriters(server)
  const first = await made(server.data, folder)
  const before = new Map(writers.acknowledged)
  t.ok(before.size > 2, `${before.size} objects were written meanwhile`)
  const { backup, linked, missing } = await made(server.data, folder)
  t.same([first.missing, missing], [[], []])
  t.ok(linked > 0, `${linked} files are those of the first backup`)
  await writers.end()
  await server.kill9()

  const restored = join(temporaryFolder(t), 'restored')
  const done = await runCli(['restore', backup, '--data', restored])
  t.equal(done.code, 0, done.stderr)
  rmSync(server.data, { recursive: true })
  const again = await startDealgate(t, { data: restored })
  const found = await readAll(t, again)
  for (const [key, version] of before) if (!((found.get(key) ?? 0) >= version)) t.fail(`${key} has version ${version}`)
  for (const [key, version] of found)
    if (!key.startsWith('gone') && version > (writers.acknowledged.get(key) ?? 0)) t.fail(`${key} was written`)
  const some = [...before.keys()][0] ?? ''
  const tags = await send(again, { method: 'GET', target: targetOf(BUCKET, some, 'tagging=') })
  t.match(tags.body.toString(), `<Value>${found.get(some)}</Value>`)
  const complete = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
  const target = targetOf(BUCKET, 'joined', `uploadId=${upload}`)
  t.equal((await send(again, { method: 'POST', target, body: Buffer.from(complete) })).status, 200)
  t.ok((await send(again, { method: 'GET', target: targetOf(BUCKET, 'joined') })).body.equals(bytes('joined 1', LARGE)))
})

t.test('backups share files, are kept in number, and show damage', async (t) => {
  const folder = temporaryFolder(t)
  await makeBucket(t, server)
  for (const key of ['one', 'two']) await put(server, key, 1, LARGE)
  const first = await made(server.data, folder)
  await put(server, 'two', 2, LARGE)
  t.equal((await made(server.data, folder)).linked, 1)
  t.equal((await made(server.data, folder, '--keep', '2')).removed, 1)
  t.same(readdirSync(folder).filter((name) => name !== 'lock').length, 2)
  t.throws(() => statSync(first.backup))

  const state = 'redis://user:topsecret@127.0.0.1:1/0'
  const { notIncluded } = await made(server.data, folder, '--state', state)
  t.match(notIncluded[0], /the records in redis:\/\/127\.0\.0\.1:1 \(--state\)/, 'without the password')

  const check = () => runCli(['restore', folder, '--check', '--print', 'json'])
  const newest = JSON.parse((await check()).stdout).backup
  const shared = join(newest, 'data/services/gateway/objects')
  const files = readdirSync(shared, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  t.equal(files.length, 2)
  const lost = join(files[0]?.parentPath ?? '', files[0]?.name ?? '')
  truncateSync(lost, 1)
  const found = await check()
  t.equal(found.code, 1)
  t.match(found.stderr, /backup .* is damaged: services\/gateway\/objects\/\S+ is not as it was written/)
  const mended = await made(server.data, folder, '--verify')
  t.same([mended.linked, mended.damaged.length], [1, 0], 'a file of another size is copied in any case')
  t.equal((await check()).code, 0)
  const rotten = join(mended.backup, 'data/services/gateway/objects', relative(shared, lost))
  const { atime, mtime } = statSync(rotten)
  writeFileSync(rotten, Buffer.alloc(LARGE))
  utimesSync(rotten, atime, mtime)
  await made(server.data, folder)
  t.equal((await check()).code, 1, 'linked files are not read')
  const again = await made(server.data, folder, '--verify')
  t.same([again.linked, again.damaged], [1, [join('services/gateway/objects', relative(shared, lost))]])
  t.equal((await check()).code, 0)
  const data = join(temporaryFolder(t), 'data')
  t.equal((await runCli(['restore', newest, '--data', data])).code, 1)
  const start = await runCli(['serve', '--data', data, '--port', '0', '--gateway-port', '0'])
  t.match(start.stderr, /data folder .* is incomplete: a restore into it has not ended/)
})

t.test('what a backup and a restore refuse', async (t) => {
  await server.stop()
  const folder = temporaryFolder(t)
  const refused = async (said: RegExp, ...args: string[]) => {
    const { code, stderr } = await runCli(args)
    t.not(code, 0, args.join(' '))
    t.match(stderr, said, args.join(' '))
  }
  await refused(/is in the data folder/, 'backup', join(server.data, 'backups'), '--data', server.data)
  await refused(/There is no data folder/, 'backup', folder, '--data', join(folder, 'none'))
  await refused(/is not a data folder/, 'backup', join(folder, 'to'), '--data', temporaryFolder(t))
  await refused(/is no backup, and has none in it/, 'restore', temporaryFolder(t), '--data', join(folder, 'data'))
  const { backup } = await made(server.data, folder)
  await refused(/is not empty\. Restore into a new folder/, 'restore', backup, '--data', server.data)
  const keys = join(backup, 'data/keys.json')
  const elsewhere = join(folder, 'the-same-bytes')
  renameSync(keys, elsewhere)
  for (const replace of [() => symlinkSync(elsewhere, keys), () => execFileSync('mkfifo', [keys])]) {
    rmSync(keys, { force: true })
    replace()
    await refused(/is damaged: keys\.json/, 'restore', backup, '--data', join(temporaryFolder(t), 'data'))
  }
  rmSync(keys)
  renameSync(elsewhere, keys)
  const services = join(backup, 'data/services')
  renameSync(services, join(folder, 'the-same-files'))
  symlinkSync(join(folder, 'the-same-files'), services)
  await refused(/is damaged: services\//, 'restore', backup, '--data', join(temporaryFolder(t), 'data'))
  rmSync(services)
  renameSync(join(folder, 'the-same-files'), services)
  const manifest = join(backup, 'manifest.json')
  const list = join(backup, 'files.txt')
  const [written, listed] = [manifest, list].map((file) => readFileSync(file, 'utf8'))
  for (const path of ['/keys.json', '../keys.json', 'state/../../keys.json', 'state//keys.json', '.', 'state/']) {
    const text = listed?.replace('data/keys.json', `data/${path}`) ?? ''
    writeFileSync(list, text)
    writeFileSync(manifest, written?.replace(sha256(listed ?? ''), sha256(text)) ?? '')
    await t.rejects(readManifest(backup), { message: /is damaged: files\.txt/ }, path)
  }
  await refused(/is damaged: files\.txt/, 'restore', backup, '--data', join(temporaryFolder(t), 'data'))
  writeFileSync(manifest, written ?? '')
  rmSync(list)
  execFileSync('mkfifo', [list])
  await refused(/is damaged: files\.txt/, 'restore', backup, '--check')
  rmSync(list)
  writeFileSync(list, listed ?? '')
  const backups = temporaryFolder(t)
  symlinkSync(backup, join(backups, basename(backup)))
  await refused(/is no backup, and has none in it/, 'restore', backups, '--check')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"format": 1', '"format": 2'))
  await refused(/manifest\.json is damaged, or of a later version/, 'restore', backup, '--check')

  const unfinished = join(temporaryFolder(t), 'data')
  cpSync(server.data, unfinished, { recursive: true })
  beginRestore(unfinished)
  await refused(/a restore into it has not ended/, 'backup', folder, '--data', unfinished)
  rmSync(join(server.data, 'version.json'))
  await refused(/An earlier version .* Start this version with it once/, 'backup', folder, '--data', server.data)
})
