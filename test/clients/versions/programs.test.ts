import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { bytes, hashesOf, hashTree, KiB, writeTree } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { rcloneEnv } from '../../support/programs/rclone.js'
import { findBuilt, findClient, run, runFailing } from '../../support/programs/run.js'
import { S3cmd } from '../../support/programs/s3cmd.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { entriesOf, idsOf, momentOf } from './entries.js'

// rclone and s3cmd in buckets with versions and locks. docs/guides/backups-that-stay has the commands of restic.

const OLD_VERSIONS_EXPIRE = `<LifecycleConfiguration><Rule><ID>old</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter>
<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration></Rule></LifecycleConfiguration>`

const server = await startDealgate(t)
const s3 = sdkFor(t, server)
const rclone = await findClient(t, 'rclone')
const s3cmdPath = resolve('.ci/clients/bin/s3cmd')
const hasS3cmd = await findBuilt(t, 's3cmd (.ci/run)', s3cmdPath)
if (rclone) await t.test('rclone', (t) => versionsByRclone(t, rclone))
if (hasS3cmd) await t.test('s3cmd', async (t) => locksByS3cmd(t, await versionsByS3cmd(t)))

async function versionsByRclone(t: Test, program: string): Promise<void> {
  const home = temporaryFolder(t)
  const env = { ...(await rcloneEnv(server, home)), RCLONE_LOW_LEVEL_RETRIES: '1' }
  const call = async (...args: string[]) => (await run(program, args, { env })).toString()
  const [Bucket, remote] = ['rclone-versions', 'dg:rclone-versions']
  const up = join(home, 'up')
  const store = async (files: Record<string, Buffer>) => {
    await writeTree(up, files)
    await call('copy', up, remote)
  }
  await call('mkdir', remote)
  t.match(await call('backend', 'versioning', remote), 'Unversioned')
  t.match(await call('backend', 'versioning', remote, 'Enabled'), 'Enabled')
  t.equal((await s3.getBucketVersioning({ Bucket })).Status, 'Enabled')

  const first = { 'letter.txt': bytes('one', 10), 'dir/a ü+b': bytes('a', 20 * KiB) }
  await store(first)
  const past = await momentOf(s3, Bucket)
  await store({ 'letter.txt': bytes('another', 11), later: bytes('later', 5) })
  await call('deletefile', `${remote}/dir/a ü+b`)

  t.equal(await call('lsf', '-R', remote), 'later\nletter.txt\n')
  const all = (await call('lsf', '-R', '--files-only', '--s3-versions', remote)).trim().split('\n')
  const old = all.find((name) => /^letter-v[-\d]+\.txt$/.test(name))
  t.match(all.sort(), [/^dir\/a ü\+b-v[-\d]+$/, 'later', /^letter-v[-\d]+\.txt$/, 'letter.txt'])
  t.equal(await call('cat', '--s3-versions', `${remote}/${old}`), first['letter.txt'].toString('utf8'))
  const back = join(home, 'back')
  await call('copy', '--s3-version-at', past, remote, back)
  t.same(await hashTree(back), hashesOf(first), 'the folder as it was')
  t.match(
    await runFailing(program, ['copy', '--s3-version-at', past, up, remote], { env }),
    /version/i,
    'and read only',
  )

  await call('deletefile', '--s3-versions', `${remote}/${old}`)
  t.equal((await entriesOf(s3, Bucket)).filter(({ key }) => key === 'letter.txt').length, 1, 'gone for good')
  await call('backend', 'cleanup-hidden', remote)
  const left = await entriesOf(s3, Bucket)
  t.same(left.map(({ key, latest, marker }) => [key, latest, marker]).sort(), [
    ['later', true, false],
    ['letter.txt', true, false],
  ])
  t.match(await call('backend', 'versioning', remote, 'Suspended'), 'Suspended')

  const vault = { Bucket: 'rclone-vault', ObjectLockEnabledForBucket: true }
  await s3.createBucket(vault)
  const Rule = { DefaultRetention: { Mode: 'COMPLIANCE', Days: 1 } } as const
  await s3.putObjectLockConfiguration({ ...vault, ObjectLockConfiguration: { ObjectLockEnabled: 'Enabled', Rule } })
  await call('copy', up, 'dg:rclone-vault')
  await call('delete', 'dg:rclone-vault')
  const kept = await entriesOf(s3, 'rclone-vault')
  await runFailing(program, ['backend', 'cleanup-hidden', 'dg:rclone-vault'], { env })
  const versions = ({ marker }: { marker: boolean }) => !marker
  t.same(
    idsOf((await entriesOf(s3, 'rclone-vault')).filter(versions)),
    idsOf(kept.filter(versions)),
    'locked versions stay',
  )
  const { Contents } = await s3.listObjectsV2({ Bucket: 'rclone-vault' })
  t.equal(Contents?.length, 3, 'and are current again, because the markers above them are removed')
}

/** It lists and reads current objects alone. */
async function versionsByS3cmd(t: Test): Promise<S3cmd> {
  const s3cmd = await S3cmd.configured(s3cmdPath, server, temporaryFolder(t))
  const [Bucket, remote] = ['s3cmd-versions', 's3://s3cmd-versions']
  const file = join(s3cmd.home, 'letter')
  await s3cmd.run('mb', remote)
  await s3cmd.run('setversioning', remote, 'enable')
  t.match(await s3cmd.run('info', remote), /Versioning: *Enabled/)
  for (const text of ['one', 'two']) {
    await writeFile(file, text)
    await s3cmd.run('put', file, `${remote}/letter`)
  }
  t.equal(await s3cmd.run('get', '--force', `${remote}/letter`, '-'), 'two')
  await s3cmd.run('del', `${remote}/letter`)
  t.equal(await s3cmd.run('ls', remote), '')
  const entries = await entriesOf(s3, Bucket)
  t.same([entries.length, entries.filter(({ marker }) => marker).length], [3, 1], 'two versions and a marker')
  const rules = join(s3cmd.home, 'rules.xml')
  await writeFile(rules, OLD_VERSIONS_EXPIRE)
  await s3cmd.run('setlifecycle', rules, remote)
  t.match(await s3cmd.run('getlifecycle', remote), /<NoncurrentDays>3</)
  return s3cmd
}

async function locksByS3cmd(t: Test, s3cmd: S3cmd): Promise<void> {
  const remote = 's3://s3cmd-locks/letter'
  await s3.createBucket({ Bucket: 's3cmd-locks', ObjectLockEnabledForBucket: true })
  await s3cmd.run('put', join(s3cmd.home, 'letter'), remote)
  const until = new Date(Date.now() + DAY_MS).toISOString().replace(/\.\d+/, '')
  // This command of s3cmd 2.4.0 ends with 1 also when it has succeeded.
  t.notMatch(await s3cmd.failing('setobjectretention', 'COMPLIANCE', until, remote), 'ERROR')
  await s3cmd.run('setobjectlegalhold', 'ON', remote)
  const head = await s3.headObject({ Bucket: 's3cmd-locks', Key: 'letter' })
  t.match(head, { ObjectLockMode: 'COMPLIANCE', ObjectLockLegalHoldStatus: 'ON' })
  t.equal(Number(head.ObjectLockRetainUntilDate), Date.parse(until))
  t.match(await s3cmd.failing('setobjectretention', 'GOVERNANCE', until, remote), 'AccessDenied')
}
