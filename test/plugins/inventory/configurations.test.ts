import type { InventoryConfiguration } from '@aws-sdk/client-s3'
import t from 'tap'
import { dueSince, nextDue } from '../../../plugins/inventory/scheduler.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'

const Bucket = 'source'

const configuration = (Id: string, more: Partial<InventoryConfiguration> = {}): InventoryConfiguration => ({
  Destination: { S3BucketDestination: { Bucket: 'arn:aws:s3:::reports', Format: 'CSV', Prefix: 'inv' } },
  IsEnabled: false,
  Id,
  IncludedObjectVersions: 'Current',
  Schedule: { Frequency: 'Daily' },
  ...more,
})

for (const mode of modes) {
  t.test(`${mode}: configurations are kept, listed in pages, and removed`, async (t) => {
    const { s3 } = await startInProcess(t, mode, { standard: { inventory: { intervalMs: 0 } } })
    await s3.createBucket({ Bucket })
    await s3.createBucket({ Bucket: 'reports' })
    const put = (one: InventoryConfiguration, Id = one.Id) =>
      s3.putBucketInventoryConfiguration({ Bucket, Id, InventoryConfiguration: one })

    await t.rejects(s3.getBucketInventoryConfiguration({ Bucket, Id: 'none' }), { name: 'NoSuchConfiguration' })
    await t.rejects(s3.deleteBucketInventoryConfiguration({ Bucket, Id: 'none' }), { name: 'NoSuchConfiguration' })
    t.same((await s3.listBucketInventoryConfigurations({ Bucket })).InventoryConfigurationList ?? [], [])

    const whole: InventoryConfiguration = {
      Destination: {
        S3BucketDestination: {
          AccountId: (await s3.listBuckets({})).Owner?.ID,
          Bucket: 'arn:aws:s3:::reports',
          Format: 'Parquet',
          Prefix: 'ä & b',
          Encryption: { SSES3: {} },
        },
      },
      IsEnabled: false,
      Filter: { Prefix: 'a/' },
      Id: 'whole',
      IncludedObjectVersions: 'All',
      OptionalFields: ['Size', 'ETag', 'x-Tags' as 'Size'],
      Schedule: { Frequency: 'Weekly' },
    }
    await put(whole)
    t.same((await s3.getBucketInventoryConfiguration({ Bucket, Id: 'whole' })).InventoryConfiguration, whole)
    await put({ ...whole, Schedule: { Frequency: 'Daily' } })
    const shown = (await s3.listBucketInventoryConfigurations({ Bucket })).InventoryConfigurationList
    t.same(shown, [{ ...whole, Schedule: { Frequency: 'Daily' } }], 'a configuration of the same id replaces it')

    for (let n = 0; n < 100; n++) await put(configuration(`c${String(n).padStart(3, '0')}`))
    const first = await s3.listBucketInventoryConfigurations({ Bucket })
    t.equal(first.InventoryConfigurationList?.length, 100)
    t.equal(first.IsTruncated, true)
    const second = await s3.listBucketInventoryConfigurations({
      Bucket,
      ContinuationToken: first.NextContinuationToken,
    })
    t.same(
      second.InventoryConfigurationList?.map(({ Id }) => Id),
      ['whole'],
    )
    t.equal(second.IsTruncated, false)
    await t.rejects(s3.listBucketInventoryConfigurations({ Bucket, ContinuationToken: 'x' }), {
      name: 'InvalidArgument',
    })

    await s3.deleteBucketInventoryConfiguration({ Bucket, Id: 'whole' })
    await t.rejects(s3.getBucketInventoryConfiguration({ Bucket, Id: 'whole' }), { name: 'NoSuchConfiguration' })

    const to = (more: object) => ({
      S3BucketDestination: { Bucket: 'arn:aws:s3:::reports', Format: 'CSV' as const, ...more },
    })
    const wrong: [code: string, more: Partial<InventoryConfiguration>, id?: string][] = [
      ['InvalidArgument', {}, 'other'],
      ['InvalidArgument', { Id: 'a b' }],
      ['InvalidArgument', { Id: 'a'.repeat(65) }],
      ['InvalidArgument', { Destination: to({ Format: 'ORC' }) }],
      ['MalformedXML', { Destination: to({ Format: 'TSV' }) }],
      ['InvalidArgument', { Destination: to({ Bucket: 'reports' }) }],
      ['NoSuchBucket', { Destination: to({ Bucket: 'arn:aws:s3:::absent' }) }],
      ['MalformedXML', { Schedule: { Frequency: 'Hourly' as 'Daily' } }],
      ['MalformedXML', { IncludedObjectVersions: 'None' as 'All' }],
      ['MalformedXML', { OptionalFields: ['x-Unknown' as 'Size'] }],
      ['NotImplemented', { OptionalFields: ['ObjectLockEventHoldStatus'] }],
      ['KMS.NotFoundException', { Destination: to({ Encryption: { SSEKMS: { KeyId: 'a b' } } }) }],
    ]
    for (const [name, more, id] of wrong)
      await t.rejects(put(configuration('wrong', more), id ?? more.Id ?? 'wrong'), { name }, JSON.stringify(more))
    await t.rejects(
      s3.putBucketInventoryConfiguration({ Bucket: 'absent', Id: 'x', InventoryConfiguration: configuration('x') }),
      { name: 'NoSuchBucket' },
    )
    await s3.deleteBucket({ Bucket })
    await s3.createBucket({ Bucket })
    t.same((await s3.listBucketInventoryConfigurations({ Bucket })).InventoryConfigurationList ?? [], [])
  })
}

t.test('the first inventory is due at once, and the others at midnight', async (t) => {
  const at = (text: string) => Date.parse(text)
  const daily = { frequency: 'Daily', since: at('2026-11-25T10:00:00Z') } as const
  const weekly = { ...daily, frequency: 'Weekly' } as const
  const after = (due: string) => ({ scheduled: { due: at(due), jobId: 'j' } })
  const now = at('2026-11-26T09:00:00Z')
  t.equal(dueSince(daily, {}, now), daily.since)
  t.equal(dueSince(daily, after('2026-11-25T10:00:00Z'), at('2026-11-25T23:59:59Z')), undefined)
  t.equal(dueSince(daily, after('2026-11-25T10:00:00Z'), now), at('2026-11-26'))
  t.equal(dueSince(daily, after('2026-11-26T00:00:00Z'), now), undefined, 'that of midnight is due once')
  t.equal(dueSince(daily, after('2026-11-20T10:00:00Z'), now), at('2026-11-26'), 'one stands for all that were missed')
  t.equal(dueSince(weekly, after('2026-11-25T10:00:00Z'), at('2026-11-28T23:59:59Z')), undefined)
  t.equal(dueSince(weekly, after('2026-11-25T10:00:00Z'), at('2026-11-29T00:00:00Z')), at('2026-11-29'))
  t.equal(new Date(nextDue('Weekly', now)).toISOString(), '2026-11-29T00:00:00.000Z')
  t.equal(new Date(nextDue('Daily', now)).toISOString(), '2026-11-27T00:00:00.000Z')
})
