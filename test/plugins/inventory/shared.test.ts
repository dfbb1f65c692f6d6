import t from 'tap'
import { postgres, redis } from '../../src/state/servers.js'
import { startSeveral } from '../../src/state/several-proxies.js'
import {
  Bucket,
  configure,
  inventory,
  inventoryRows,
  KEYS,
  REPORTS,
  states,
} from '../../support/plugins/inventory-scene.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { until } from '../../support/waiting.js'

for (const kind of [redis, postgres])
  t.test(`two proxies on one ${kind.name} write one inventory`, { skip: kind.skip }, async (t) => {
    const store = await kind.start()
    t.teardown(() => store.stop())
    const several = await startSeveral(t, store.url)
    const options = { standard: { inventory: { intervalMs: 20 } } }
    const [one, two] = [await several.start('one', options), await several.start('two', options)]
    const { accessKeyId: accessKey, secretAccessKey: secretKey } = KEYS
    const s3 = sdkFor(t, { endpoint: one.endpoint, accessKey, secretKey, region: 'us-east-1' })
    for (const bucket of [Bucket, REPORTS]) await s3.createBucket({ Bucket: bucket })
    for (let n = 0; n < 30; n++) await s3.putObject({ Bucket, Key: `k${n}`, Body: 'x', Tagging: 'a=b' })
    await configure(s3, 'daily', { enabled: true, fields: ['x-Tags'] })
    await until('it is complete', async () => (await states(two.endpoint))[0].LastStatus === 'Complete')
    // Both have looked at the schedule many times until these are complete; of one configuration, they come in turn.
    const both = await Promise.all([inventory(one.endpoint, 'daily'), inventory(two.endpoint, 'daily')])
    const { Contents = [] } = await s3.listObjectsV2({ Bucket: REPORTS })
    const manifests = Contents.map(({ Key = '' }) => Key).filter((key) => key.endsWith('manifest.json'))
    t.equal(manifests.length, 3, 'one of the schedule, and two that were asked for')
    for (const { Manifest } of both) t.equal((await inventoryRows(s3, Manifest)).length, 30)
  })
