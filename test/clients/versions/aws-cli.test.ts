import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Aws, awsVersions } from '../../support/programs/aws-cli.js'
import { startDealgate } from '../../support/server/dealgate.js'

// How aws-cli asks for versions and locks, and what it makes of the answers. test/src/s3/versions has the rules.

const [version] = await awsVersions(t)
if (version !== undefined) {
  const aws = new Aws(version, await startDealgate(t), temporaryFolder(t))
  const body = join(aws.home, 'body')
  const put = async (bucket: string, text: string, ...more: string[]): Promise<string> => {
    await writeFile(body, text)
    const stored = await aws.api('put-object', '--bucket', bucket, '--key', 'k', '--body', body, ...more)
    return stored.VersionId
  }

  await t.test('versions', async (t) => {
    const on = ['--bucket', 'versions']
    const object = [...on, '--key', 'k']
    const size = async (...id: string[]) => (await aws.api('head-object', ...object, ...id)).ContentLength
    await aws.api('create-bucket', ...on)
    await aws.api('put-bucket-versioning', ...on, '--versioning-configuration', 'Status=Enabled')
    t.equal((await aws.api('get-bucket-versioning', ...on)).Status, 'Enabled')
    const [one, two] = [await put('versions', 'one'), await put('versions', 'the two')]
    t.same([await size(), await size('--version-id', one)], [7, 3])
    const { DeleteMarker, VersionId: marker } = await aws.api('delete-object', ...object)
    t.equal(DeleteMarker, true)
    t.match(await aws.apiFailing('head-object', ...object), '404')
    t.match(await aws.apiFailing('get-object', ...object, '--version-id', marker, body), 'MethodNotAllowed')

    const listed = await aws.api('list-object-versions', ...on, '--page-size', '1')
    t.match(listed.Versions, [{ VersionId: two }, { VersionId: one }], 'the newest first, over pages')
    t.match(listed.DeleteMarkers, [{ VersionId: marker, IsLatest: true }])
    t.match(await aws.s3Failing('rb', '--force', 's3://versions'), 'BucketNotEmpty')
    const Objects = [one, two, marker].map((VersionId) => ({ Key: 'k', VersionId }))
    const { Deleted } = await aws.api('delete-objects', ...on, '--delete', JSON.stringify({ Objects }))
    t.match(Deleted, [{ VersionId: one }, { VersionId: two }, { DeleteMarkerVersionId: marker }])
    await aws.s3('rb', 's3://versions')
  })

  await t.test('locks', async (t) => {
    const on = ['--bucket', 'locks']
    const object = [...on, '--key', 'k']
    await aws.api('create-bucket', ...on, '--object-lock-enabled-for-bucket')
    const Rule = { DefaultRetention: { Mode: 'GOVERNANCE', Days: 3 } }
    const configuration = JSON.stringify({ ObjectLockEnabled: 'Enabled', Rule })
    await aws.api('put-object-lock-configuration', ...on, '--object-lock-configuration', configuration)
    t.match(await aws.api('get-object-lock-configuration', ...on), { ObjectLockConfiguration: { Rule } })
    const one = ['--version-id', await put('locks', 'kept')]
    t.match(await aws.api('get-object-retention', ...object), { Retention: { Mode: 'GOVERNANCE' } })
    t.match(await aws.apiFailing('delete-object', ...object, ...one), 'AccessDenied')

    await aws.api('put-object-legal-hold', ...object, '--legal-hold', 'Status=ON')
    const passing = [...object, ...one, '--bypass-governance-retention']
    t.match(await aws.apiFailing('delete-object', ...passing), 'AccessDenied', 'a legal hold is passed by with nothing')
    await aws.api('put-object-legal-hold', ...object, '--legal-hold', 'Status=OFF')
    await aws.api('delete-object', ...passing)

    const until = new Date(Math.ceil(Date.now() / 1000) * 1000 + DAY_MS).toISOString()
    const compliance = ['--object-lock-mode', 'COMPLIANCE', '--object-lock-retain-until-date', until]
    const two = ['--version-id', await put('locks', 'kept', ...compliance)]
    const head = await aws.api('head-object', ...object)
    t.same([head.ObjectLockMode, Date.parse(head.ObjectLockRetainUntilDate)], ['COMPLIANCE', Date.parse(until)])
    const shorter = JSON.stringify({ Mode: 'GOVERNANCE', RetainUntilDate: until })
    t.match(await aws.apiFailing('put-object-retention', ...object, '--retention', shorter), 'AccessDenied')
    t.match(await aws.apiFailing('delete-object', ...object, ...two, '--bypass-governance-retention'), 'AccessDenied')
  })
}
