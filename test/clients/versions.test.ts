import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DAY_MS } from '../../src/common/time.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { startDealgate } from '../support/server/dealgate.js'

// Versions and locks as aws-cli uses them; test/clients/further has boto3.

const [version] = await awsVersions(t)
if (version) {
  const server = await startDealgate(t)
  const aws = new Aws(version, server, temporaryFolder(t))
  await t.test('versions', (t) => versions(t, aws))
  await t.test('locks', (t) => locks(t, aws))
}

async function versions(t: Test, aws: Aws): Promise<void> {
  const on = ['--bucket', 'cli-versions']
  const at = [...on, '--key', 'letter']
  const file = join(aws.home, 'letter')
  const put = async (text: string) => {
    await writeFile(file, text)
    return (await aws.api('put-object', ...at, '--body', file)).VersionId as string
  }
  const get = async (...args: string[]) => aws.api('get-object', ...at, ...args, join(aws.home, 'down'))
  await aws.api('create-bucket', ...on)
  t.equal(await put('null'), undefined)
  await aws.api('put-bucket-versioning', ...on, '--versioning-configuration', 'Status=Enabled')
  t.same(await aws.api('get-bucket-versioning', ...on), { Status: 'Enabled' })
  const first = await put('first')
  const second = await put('second!')
  t.equal((await get('--version-id', first)).ContentLength, 5)
  t.equal((await get('--version-id', 'null')).ContentLength, 4)
  t.match(await aws.apiFailing('get-object', ...at, '--version-id', '0'.repeat(32), file), 'NoSuchVersion')

  await aws.s3('rm', 's3://cli-versions/letter')
  t.match(await aws.apiFailing('head-object', ...at), '404')
  const list = await aws.api('list-object-versions', ...on, '--page-size', '2')
  type Listed = { VersionId: string; IsLatest: boolean }
  t.same(
    list.Versions.map(({ VersionId }: Listed) => VersionId),
    [second, first, 'null'],
  )
  t.match(list.DeleteMarkers, [{ Key: 'letter', IsLatest: true }])
  const marker = list.DeleteMarkers[0].VersionId
  t.match(await aws.api('delete-object', ...at, '--version-id', marker), { DeleteMarker: true, VersionId: marker })
  t.equal((await get()).VersionId, second, 'without the marker it is back')
  t.match(await aws.apiFailing('delete-bucket', ...on), 'BucketNotEmpty')
  const Objects = [second, first, 'null'].map((VersionId) => ({ Key: 'letter', VersionId }))
  const deleted = await aws.api('delete-objects', ...on, '--delete', JSON.stringify({ Objects }))
  t.equal(deleted.Deleted.length, 3)
  await aws.api('put-bucket-versioning', ...on, '--versioning-configuration', 'Status=Suspended')
  t.equal(await put('suspended'), 'null')
  await aws.s3('rm', 's3://cli-versions/letter')
  t.match((await aws.api('list-object-versions', ...on)).DeleteMarkers, [{ VersionId: 'null' }])
  await aws.api('delete-object', ...at, '--version-id', 'null')
  await aws.api('delete-bucket', ...on)
}

async function locks(t: Test, aws: Aws): Promise<void> {
  const on = ['--bucket', 'cli-locks']
  const at = [...on, '--key', 'letter']
  const file = join(aws.home, 'locked')
  await writeFile(file, 'x')
  await aws.api('create-bucket', ...on, '--object-lock-enabled-for-bucket')
  const ahead = (days: number) => new Date(Math.ceil(Date.now() / 1000) * 1000 + days * DAY_MS).toISOString()
  const until = ahead(2)
  const lock = ['--object-lock-mode', 'COMPLIANCE', '--object-lock-retain-until-date', until]
  const { VersionId } = await aws.api('put-object', ...at, '--body', file, ...lock)
  const own = [...at, '--version-id', VersionId]
  t.match(await aws.api('head-object', ...at), { ObjectLockMode: 'COMPLIANCE' })
  t.match(await aws.apiFailing('delete-object', ...own, '--bypass-governance-retention'), 'AccessDenied')
  const retain = (days: number) => ['--retention', JSON.stringify({ Mode: 'COMPLIANCE', RetainUntilDate: ahead(days) })]
  t.match(await aws.apiFailing('put-object-retention', ...own, ...retain(1)), 'AccessDenied')
  await aws.api('put-object-retention', ...own, ...retain(3))
  t.equal((await aws.api('get-object-retention', ...own)).Retention.Mode, 'COMPLIANCE')
  await aws.api('put-object-legal-hold', ...own, '--legal-hold', 'Status=ON')
  t.same(await aws.api('get-object-legal-hold', ...own), { LegalHold: { Status: 'ON' } })
  const rule = { ObjectLockEnabled: 'Enabled', Rule: { DefaultRetention: { Mode: 'GOVERNANCE', Days: 1 } } }
  const configuration = ['--object-lock-configuration', JSON.stringify(rule)]
  await aws.api('put-object-lock-configuration', ...on, ...configuration)
  t.same(await aws.api('get-object-lock-configuration', ...on), { ObjectLockConfiguration: rule })
  await aws.s3('cp', '--quiet', file, 's3://cli-locks/free')
  const free = (await aws.api('head-object', ...on, '--key', 'free')).VersionId
  const freed = [...on, '--key', 'free', '--version-id', free]
  t.match(await aws.apiFailing('delete-object', ...freed), 'AccessDenied')
  await aws.api('delete-object', ...freed, '--bypass-governance-retention')
  await aws.s3('rm', 's3://cli-locks/letter')
  t.match(await aws.apiFailing('delete-bucket', ...on), 'BucketNotEmpty')
}
