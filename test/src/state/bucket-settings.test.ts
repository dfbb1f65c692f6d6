// It declares the type of the setting that this test stores.

import t from 'tap'
import { createLogger } from '../../../common/log.js'
import type {} from '../../../src/s3/tagging.js'
import { openState } from '../../../src/state/open-state.js'
import { CACHED_MS, createBucketSettings } from '../../../src/state/records/bucket-settings.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { creationTimesOf } from '../../support/gateway/creation-times.js'

const log = createLogger({ level: 'silent' })
const tags = (value: string) => [{ key: 'team', value }]

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

t.test('settings of buckets are remembered for a while elsewhere', async (t) => {
  const state = await openState({ data: temporaryFolder(t), log })
  t.teardown(() => state.close())
  let time = 0
  const here = createBucketSettings(state, creationTimesOf(), () => time)
  const elsewhere = createBucketSettings(state, creationTimesOf(), () => time)
  t.equal(await here.get('photos', 'tagging'), undefined)
  await here.set('photos', 'tagging', tags('one'))
  t.same(await here.get('photos', 'tagging'), tags('one'), 'read at once where it was written')
  t.same(await elsewhere.get('photos', 'tagging'), tags('one'))
  await here.set('photos', 'tagging', tags('two'))
  t.same(await elsewhere.get('photos', 'tagging'), tags('one'), 'remembered elsewhere')
  time += CACHED_MS
  t.same(await elsewhere.get('photos', 'tagging'), tags('two'), 'for so long and no longer')
  await here.set('films', 'tagging', tags('three'))
  await elsewhere.clear('photos')
  t.same(await all(here.buckets('tagging')), [['films', tags('three')]])
  t.equal(await elsewhere.get('photos', 'tagging'), undefined)
})

t.test('settings are those of the bucket that they were set for', async (t) => {
  const state = await openState({ data: temporaryFolder(t), log })
  t.teardown(() => state.close())
  const creationTimes = new Map<string, string>()
  let asks = 0
  const told = creationTimesOf(creationTimes)
  const settings = createBucketSettings(state, {
    ...told,
    now(bucket) {
      asks++
      return told.now(bucket)
    },
  })
  await settings.set('b', 'tagging', tags('kept before the gateway told'))
  t.notOk(await settings.isBound('b'))
  creationTimes.set('b', '2026-01-02')
  t.ok(await settings.confirmed('b', 'tagging'))
  t.ok(await settings.isBound('b'), 'from then on')
  creationTimes.set('b', '2026-01-03')
  asks = 0
  t.equal(await settings.get('b', 'tagging'), undefined, 'made again')
  t.equal(asks, 0)
  t.equal(await settings.confirmed('b', 'tagging'), undefined)
  creationTimes.set('b', '2026-01-02')
  t.same(await settings.get('b', 'tagging'), tags('kept before the gateway told'), 'it was another gateway for a while')

  creationTimes.set('b', '2026-01-03')
  await settings.set('b', 'cors', [])
  t.same(await settings.get('b', 'cors'), [])
  t.equal(await settings.get('b', 'tagging'), undefined, 'a new one begins with nothing')
  creationTimes.delete('b')
  t.same(await settings.get('b', 'cors'), [], 'what cannot be told counts as the same')
  await settings.delete('b', 'cors')
  t.same(await all(state.records('bucket-settings').entries()), [], 'nothing is kept for nothing')
})

t.test('what is cleared before a bucket is made spares the bucket that was made meanwhile', async (t) => {
  const state = await openState({ data: temporaryFolder(t), log })
  t.teardown(() => state.close())
  let creationTime: string | undefined = '2026-01-01T00:00:00Z'
  const creationTimes = { now: async () => creationTime, cached: async () => creationTime }
  const settings = createBucketSettings(state, creationTimes)
  await settings.set('photos', 'tagging', tags('one'))
  await settings.clearFormer('photos')
  t.same(await settings.latest('photos', 'tagging'), tags('one'))
  creationTime = undefined
  await settings.clearFormer('photos')
  t.equal(await settings.latest('photos', 'tagging'), undefined, 'of a bucket that does not exist')
  await settings.set('photos', 'tagging', tags('two'))
  creationTime = '2026-01-02T00:00:00Z'
  await settings.clearFormer('photos')
  t.equal(await settings.latest('photos', 'tagging'), undefined, 'of an earlier one')
})
