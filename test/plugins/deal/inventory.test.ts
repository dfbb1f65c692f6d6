import type { InventoryOptionalField } from '@aws-sdk/client-s3'
import { S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { rowsOf } from '../../s3/inventory/scene.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms } from './archive-proxy.js'
import { owner } from './proxy.js'

const FIELDS = [
  ...['StorageClass', 'x-Cid', 'x-PieceCid', 'x-DealState', 'x-DealCount', 'x-Providers', 'x-DealEndEpoch'],
  ...['x-DealEnd', 'x-TaskUuid', 'x-BytesAt'],
] as readonly string[]

t.test('an inventory says which deals hold an object, until when, and where its bytes are', async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  const s3 = new S3({
    endpoint: proxy.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: owner.accessKeyId, secretAccessKey: owner.secretAccessKey },
  })
  t.teardown(() => s3.destroy())
  await proxy.put('plain', { StorageClass: 'STANDARD' })
  await proxy.put('archived')
  await s3.createBucket({ Bucket: 'reports' })
  await s3.putBucketInventoryConfiguration({
    Bucket: BUCKET,
    Id: 'deals',
    InventoryConfiguration: {
      Destination: { S3BucketDestination: { Bucket: 'arn:aws:s3:::reports', Format: 'CSV' } },
      ...{ IsEnabled: false, Id: 'deals', IncludedObjectVersions: 'Current', Schedule: { Frequency: 'Daily' } },
      OptionalFields: FIELDS as InventoryOptionalField[],
    },
  })
  const rows = async () => {
    const asked = { body: { Id: 'deals' }, headers: { prefer: 'wait=300' } }
    const answer = await signedCall(proxy.endpoint, owner, 'POST', `/${BUCKET}?x-inventory=&format=json`, asked)
    const found = await rowsOf(s3, JSON.parse(answer.body).Manifest, 'reports')
    return Object.fromEntries(found.map((row) => [row.Key, row]))
  }
  await proxy.untilCold('archived')
  const { plain, archived } = await until('the deal is active', async () => {
    const found = await rows()
    return found.archived?.['x-DealEnd'] !== '' && found
  })
  const head = await proxy.head('archived')
  t.match(archived, {
    StorageClass: 'GLACIER',
    'x-Cid': head.Metadata?.cid,
    'x-PieceCid': /^baga/,
    'x-DealState': 'StorageDealActive',
    'x-DealCount': '1',
    'x-Providers': terms.minerId,
    'x-DealEndEpoch': /^\d+$/,
    'x-DealEnd': new RegExp(`^${head.Metadata?.['deal-expiry']?.slice(0, 16)}`),
    'x-TaskUuid': '',
    'x-BytesAt': 'provider',
  })
  t.match(plain, {
    ...{ StorageClass: 'STANDARD', 'x-Cid': '', 'x-PieceCid': '', 'x-DealState': '', 'x-DealCount': '0' },
    ...{ 'x-Providers': '', 'x-DealEnd': '', 'x-BytesAt': 'gateway' },
  })

  // Deals hold the bytes of a version: those of an object that has replaced it are others.
  await proxy.put('archived', { StorageClass: 'STANDARD', Body: 'other bytes' })
  t.match((await rows()).archived, { 'x-DealCount': '0', 'x-Cid': '', 'x-BytesAt': 'gateway' })
})
