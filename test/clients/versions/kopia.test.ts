import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bytes, hashesOf, hashTree, KiB, MiB, writeTree } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { run } from '../../support/programs/run.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { type Entry, entriesOf, idsOf, momentOf } from './entries.js'

const Bucket = 'vault'
/** What Kopia locks: packs, indexes, and what opens the repository; not its logs and the times of its maintenance. */
const LOCKED = /^kopia\/(p|q|xn|kopia\.repository|kopia\.blobcfg)/

/** `.ci/run` does not build it, because that takes minutes: `go install github.com/kopia/kopia@v0.21.1`. */
const skip = spawnSync('kopia', ['--version']).status !== 0 && 'kopia is not installed'

t.test('Kopia: a repository whose blobs are locked, and its past', { skip }, async (t) => {
  const server = await startDealgate(t)
  const s3 = sdkFor(t, server)
  const home = temporaryFolder(t)
  const [from, to] = [join(home, 'from'), join(home, 'to')]
  await mkdir(from)
  const first = { 'a/small': bytes('small', 10 * KiB), 'large ü': bytes('large', 6 * MiB) }
  await writeTree(from, first)
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  const env = {
    ...{ HOME: home, KOPIA_PASSWORD: 'password', KOPIA_CHECK_FOR_UPDATES: 'false' },
    ...{ AWS_ACCESS_KEY_ID: server.accessKey, AWS_SECRET_ACCESS_KEY: server.secretKey },
  }
  const kopia = async (...args: string[]) =>
    (
      await run('kopia', ['--no-progress', `--config-file=${join(home, 'repository.config')}`, ...args], { env })
    ).toString()
  const storage = [
    ...['s3', `--bucket=${Bucket}`, '--prefix=kopia/', `--region=${server.region}`],
    ...[`--endpoint=${new URL(server.endpoint).host}`, '--disable-tls'],
  ]
  const snapshots = async (): Promise<{ id: string }[]> => JSON.parse(await kopia('snapshot', 'list', '--json'))
  const lockOf = async ({ key, id }: Entry) => {
    const { ObjectLockMode, ObjectLockRetainUntilDate } = await s3.headObject({ Bucket, Key: key, VersionId: id })
    return { mode: ObjectLockMode, until: Number(ObjectLockRetainUntilDate) }
  }
  const locked = async () => (await entriesOf(s3, Bucket)).filter(({ key, marker }) => LOCKED.test(key) && !marker)

  await kopia('repository', 'create', ...storage, '--retention-mode=COMPLIANCE', '--retention-period=48h')
  await kopia('maintenance', 'set', '--extend-object-locks=true', '--full-interval=24h')
  await kopia('snapshot', 'create', from)
  const [snapshot] = await snapshots()
  const moment = await momentOf(s3, Bucket)
  const before = await locked()
  t.ok(before.length >= 5, String(before.length))
  for (const entry of before) {
    const lock = await lockOf(entry)
    t.equal(lock.mode, 'COMPLIANCE', entry.key)
    t.ok(lock.until > Date.now(), entry.key)
    await t.rejects(s3.deleteObject({ Bucket, Key: entry.key, VersionId: entry.id }), { name: 'AccessDenied' })
  }

  t.test('maintenance extends the retention of what it needs', async (t) => {
    const until = async () => Promise.all((await locked()).filter(({ latest }) => latest).map(lockOf))
    const least = Math.min(...(await until()).map(({ until }) => until))
    await kopia('maintenance', 'run', '--full')
    t.ok(Math.min(...(await until()).map(({ until }) => until)) > least)
  })

  t.test('what is deleted and overwritten comes back', async (t) => {
    await writeFile(join(from, 'large ü'), bytes('other', 6 * MiB))
    await kopia('snapshot', 'create', from)
    await kopia('snapshot', 'delete', '--all-snapshots-for-source', from, '--delete')
    t.same(await snapshots(), [])
    await kopia('maintenance', 'run', '--full', '--safety=none')
    for (const { key, latest, marker } of await entriesOf(s3, Bucket))
      if (latest && !marker) await s3.deleteObject({ Bucket, Key: key })
    await s3.putObject({ Bucket, Key: 'kopia/kopia.repository', Body: 'pay for your files' })
    const left = new Set(idsOf(await locked()))
    t.ok(
      idsOf(before).every((id) => left.has(id)),
      'every version is there',
    )

    await kopia('repository', 'disconnect')
    await kopia('repository', 'connect', ...storage, `--point-in-time=${moment}`)
    t.match(await snapshots(), [{ id: snapshot?.id }])
    await kopia('snapshot', 'restore', String(snapshot?.id), to)
    t.same(await hashTree(to), hashesOf(first))
  })
})
