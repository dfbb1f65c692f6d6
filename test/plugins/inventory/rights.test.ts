import { S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { Bucket, configure, inventoryRows, KEYS, REPORTS, runNow } from '../../support/plugins/inventory-scene.js'
import { startInProcess } from '../../support/server/in-process.js'

const ALL = { Effect: 'Allow', Action: ['s3:*', 'inventory:*'], Resource: '*' }
const deny = (Action: string, name = '*') => ({ Effect: 'Deny', Action, Resource: `arn:aws:s3:::${Bucket}/${name}` })
const pair = (accessKeyId: string, ...Statement: readonly object[]) => ({
  ...{ accessKeyId, secretAccessKey: `secret-of-${accessKeyId}` },
  policies: [{ Version: '2012-10-17', Statement }],
})

t.test('an inventory shows only what the key pair may read of each object', async (t) => {
  const some = pair('some', ALL, deny('s3:GetObjectTagging', 'b*'))
  const none = pair('none', ALL, deny('s3:GetObjectAcl'), deny('s3:GetObjectTagging'))
  const { s3, endpoint } = await startInProcess(t, 'full', {
    identities: [KEYS, some, none],
    standard: { inventory: { intervalMs: 0 } },
  })
  for (const name of [Bucket, REPORTS]) await s3.createBucket({ Bucket: name })
  for (const Key of ['a', 'b']) await s3.putObject({ Bucket, Key, Body: Key, Tagging: 'k=v' })
  const client = (credentials: typeof KEYS) => {
    const made = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials })
    t.teardown(() => made.destroy())
    return made
  }
  await configure(client(some), 'some', { fields: ['Size', 'x-Tags'] })
  const tagsFor = async (keys: typeof KEYS) => {
    const { status, json } = await runNow(endpoint, 'some', keys)
    t.equal(status, 200, JSON.stringify(json))
    return (await inventoryRows(s3, json.Manifest)).map((row) => row['x-Tags'])
  }
  t.same(await tagsFor(some), ['{"k":"v"}', ''], 'tags that it may not read are empty')
  t.same(await tagsFor(KEYS), ['{"k":"v"}', '{"k":"v"}'], 'written by another key pair, with the rights of that')

  const refused = (fields: readonly string[]) => configure(client(none), 'none', { fields })
  await t.rejects(refused(['x-Tags']), { name: 'AccessDenied', message: /x-Tags need s3:GetObjectTagging/ })
  await t.rejects(refused(['ObjectAccessControlList']), { name: 'AccessDenied', message: /s3:GetObjectAcl/ })
  await t.resolves(refused(['Size', 'ETag']))
})
