import t from 'tap'
import { createLogger } from '../../src/log.js'
import { CACHED_MS, createBucketSettings } from '../../src/state/bucket-settings.js'
import { openState } from '../../src/state/open-state.js'

const log = createLogger({ level: 'silent' })
const tags = (value: string) => [{ key: 'team', value }]

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

t.test('settings of buckets', async (t) => {
  const data = t.testdir({})
  let time = 0
  const state = await openState({ data, log })
  const here = createBucketSettings(state, () => time)
  const elsewhere = createBucketSettings(state, () => time)

  t.equal(await here.get('photos', 'tagging'), undefined)
  await here.set('photos', 'tagging', tags('one'))
  t.same(await here.get('photos', 'tagging'), tags('one'), 'read at once where it was written')
  t.same(await elsewhere.get('photos', 'tagging'), tags('one'))

  await here.set('photos', 'tagging', tags('two'))
  t.same(await elsewhere.get('photos', 'tagging'), tags('one'), 'remembered elsewhere')
  time += CACHED_MS
  t.same(await elsewhere.get('photos', 'tagging'), tags('two'), 'for so long and no longer')

  await here.set('films', 'tagging', tags('three'))
  t.same((await all(here.buckets('tagging'))).sort(), [
    ['films', tags('three')],
    ['photos', tags('two')],
  ])

  await elsewhere.clear('photos')
  t.same(await all(here.buckets('tagging')), [['films', tags('three')]])
  t.equal(await elsewhere.get('photos', 'tagging'), undefined)
  await here.delete('films', 'tagging')
  await here.delete('films', 'tagging')
  t.same(await all(here.buckets('tagging')), [])

  await Promise.all(['a', 'b'].map((value, i) => (i ? here : elsewhere).set(`b${i}`, 'tagging', tags(value))))
  await state.close()
  const again = await openState({ data, log })
  t.teardown(() => again.close())
  t.same(await createBucketSettings(again).get('b1', 'tagging'), tags('b'), 'kept over a restart')
})

t.test('a failure is thrown, not remembered, and the next one tries again', async (t) => {
  const state = await openState({ data: t.testdir({}), log })
  t.teardown(() => state.close())
  let failing = true
  const settings = createBucketSettings({
    locks: state.locks,
    records: <T>(name: string) => {
      const records = state.records<T>(name)
      const guarded = <A extends unknown[], R>(run: (...given: A) => Promise<R>) => {
        return async (...given: A) => {
          if (failing) throw new Error('no disk')
          return run(...given)
        }
      }
      return {
        get: guarded((key: string) => records.get(key)),
        set: guarded((key: string, value: T) => records.set(key, value)),
        delete: guarded((key: string) => records.delete(key)),
        entries: () => records.entries(),
      }
    },
  })
  await t.rejects(settings.get('photos', 'tagging'), /no disk/)
  await t.rejects(settings.set('photos', 'tagging', tags('one')), /no disk/)
  failing = false
  t.equal(await settings.get('photos', 'tagging'), undefined)
  await settings.set('photos', 'tagging', tags('one'))
  t.same(await settings.get('photos', 'tagging'), tags('one'))
})
