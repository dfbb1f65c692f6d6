import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bytes, MiB, md5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { rcloneEnv } from '../support/programs/rclone.js'
import { findClient, run, runAny } from '../support/programs/run.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/**
 * Storage classes that are kept by deals, as clients see them that know nothing of deals: docs/archive.md has the
 * commands of s3cmd. The network needs a quarter of a second to seal.
 */

const options = {
  // Epochs are milliseconds here: the longest deals that there are, for none must end before the test.
  terms: { minerId: 't01000', price: '0.0001', duration: 1_555_200 },
  maxSpendPerDay: 'none',
  maxTimesAsk: 'none',
  eviction: 'verified',
  evictionIntervalSeconds: 1,
  statusIntervalSeconds: 1,
}

async function start(t: Test): Promise<Dealgate> {
  const config = join(temporaryFolder(t), 'dealgate.json')
  await writeFile(config, JSON.stringify({ plugins: [{ use: 'deal', options }] }))
  return startDealgate(t, { args: ['--config', config, '--network-epoch-seconds', '0.001'] })
}

/** Heads are asked for until they say so: without a program. */
class Archive {
  readonly #server: Dealgate
  readonly #bucket: string

  constructor(server: Dealgate, bucket: string) {
    this.#server = server
    this.#bucket = bucket
  }

  async head(key: string): Promise<{ storageClass: unknown; restore: unknown }> {
    const { headers } = await send(this.#server, { method: 'HEAD', target: targetOf(this.#bucket, key) })
    return { storageClass: headers['x-amz-storage-class'], restore: headers['x-amz-restore'] }
  }

  async untilCold(key: string): Promise<void> {
    await until(`${key} is cold`, async () => {
      const { storageClass, restore } = await this.head(key)
      return storageClass === 'GLACIER' && restore === undefined
    })
  }

  /** What the head says of the restoration. */
  untilRestored(key: string): Promise<string> {
    return until(`${key} is back`, async () => {
      const restore = String((await this.head(key)).restore)
      return /ongoing-request="false"/.test(restore) && restore
    })
  }
}

const [version] = await awsVersions(t)
const rclone = await findClient(t, 'rclone')
if (version) {
  const server = await start(t)
  const home = temporaryFolder(t)
  const aws = new Aws(version, server, home)
  const path = (name: string) => join(home, name)
  const small = bytes('small', 70_000)
  const large = bytes('large', 9 * MiB)
  await writeFile(path('small'), small)
  await writeFile(path('large'), large)

  await t.test('aws-cli', async (t) => {
    const archive = new Archive(server, 'archive')
    await aws.s3('mb', 's3://archive')
    await aws.s3('cp', path('small'), 's3://archive/dir/small', '--storage-class', 'GLACIER')
    await aws.s3('cp', path('large'), 's3://archive/dir/large', '--storage-class', 'GLACIER')
    await aws.s3('cp', path('small'), 's3://archive/hot')
    await aws.s3('cp', 's3://archive/hot', 's3://archive/hot', '--storage-class', 'GLACIER')
    await aws.s3('cp', path('small'), 's3://archive/near', '--storage-class', 'GLACIER_IR')
    t.match(
      await aws.s3Failing('cp', path('small'), 's3://archive/no', '--storage-class', 'DEEP_ARCHIVE'),
      'InvalidStorageClass',
    )
    for (const key of ['dir/small', 'dir/large', 'hot']) await archive.untilCold(key)
    t.match(await aws.api('head-object', '--bucket', 'archive', '--key', 'dir/large'), {
      Metadata: { 'deal-status': 'StorageDealActive', cid: /^baf/ },
      ContentLength: large.length,
    })
    t.equal((await archive.head('near')).storageClass, 'GLACIER_IR')

    const get = ['--bucket', 'archive', '--key', 'dir/large', path('back')]
    t.match(await aws.apiFailing('get-object', ...get), 'InvalidObjectState')
    t.match(await aws.s3Failing('cp', 's3://archive/dir/large', path('back')), /GLACIER/)
    await aws.s3('cp', '--recursive', '--exclude', '*', '--include', 'near', 's3://archive', path('all'))
    t.equal(
      await aws.s3Code('cp', '--recursive', 's3://archive', path('all')),
      2,
      'cold objects are skipped and warned of',
    )
    t.ok((await readFile(path('all/near'))).equals(small), 'what is not, comes')

    const restore = (key: string, request?: object) => {
      const more = request === undefined ? [] : ['--restore-request', JSON.stringify(request)]
      return aws.api('restore-object', '--bucket', 'archive', '--key', key, ...more)
    }
    await restore('dir/large', { Days: 7, GlacierJobParameters: { Tier: 'Expedited' } })
    await restore('hot')
    const restored = await archive.untilRestored('dir/large')
    t.match(restored, /^ongoing-request="false", expiry-date="\w{3}, \d\d \w{3} \d{4} 00:00:00 GMT"$/)
    await aws.s3('cp', 's3://archive/dir/large', path('back'))
    t.ok((await readFile(path('back'))).equals(large), 'the identical bytes')
    await until('hot is back for good', async () => (await archive.head('hot')).storageClass === 'GLACIER_IR')
    t.match(await aws.apiFailing('restore-object', '--bucket', 'archive', '--key', 'none'), 'NoSuchKey')
    if (!version.modern) return
    const listing = ['list-objects-v2', '--bucket', 'archive', '--optional-object-attributes', 'RestoreStatus'] as const
    const { Contents } = await aws.api(...listing)
    const classes = Contents.map((entry: Record<string, unknown>) => [entry.Key, entry.StorageClass])
    t.same(classes, [
      ['dir/large', 'GLACIER'],
      ['dir/small', 'GLACIER'],
      ['hot', 'GLACIER_IR'],
      ['near', 'GLACIER_IR'],
    ])
    t.match(Contents[0].RestoreStatus, { IsRestoreInProgress: false, RestoreExpiryDate: /T00:00:00/ })
  })

  if (rclone) {
    await t.test('rclone', async (t) => {
      const archive = new Archive(server, 'rclone-archive')
      const env = await rcloneEnv(server, home)
      const does = async (...args: string[]) => (await run(rclone, args, { env })).toString('utf8')
      await does('mkdir', 'dg:rclone-archive')
      await does('copyto', '--s3-storage-class', 'GLACIER', path('small'), 'dg:rclone-archive/dir/small')
      await does('copyto', path('small'), 'dg:rclone-archive/dir/hot')
      await archive.untilCold('dir/small')
      const refused = await runAny(rclone, ['copyto', 'dg:rclone-archive/dir/small', path('returned')], { env })
      t.match(refused.stderr, /restore first/i, 'rclone knows what the refusal means')
      t.not(refused.code, 0)
      const restore = ['backend', 'restore', 'dg:rclone-archive/dir', '-o', 'priority=Standard', '-o', 'lifetime=1']
      const told = JSON.parse(await does(...restore))
      const asked = told.filter((entry: { Status: string }) => entry.Status === 'OK')
      t.match(asked, [{ Remote: 'small' }], 'only what is cold')
      await archive.untilRestored('dir/small')
      if (/restore-status/.test(await does('backend', 'help', 's3'))) {
        const status = JSON.parse(await does('backend', 'restore-status', 'dg:rclone-archive/dir'))
        t.match(status, [{ Remote: 'small', RestoreStatus: { IsRestoreInProgress: false } }])
      } else t.pass('restore-status', { skip: 'this rclone has no restore-status' })
      await does('copyto', 'dg:rclone-archive/dir/small', path('returned'))
      t.equal(md5(await readFile(path('returned'))), md5(small))
    })
  }
}
