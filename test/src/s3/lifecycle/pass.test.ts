import t, { type Test } from 'tap'
import { S3Error } from '../../../../common/errors/s3-error.js'
import { DAY_MS } from '../../../../common/time.js'
import type { RequireOwner, Tag } from '../../../../src/api/access.js'
import type { Archive } from '../../../../src/api/object-records.js'
import type { Store, StoredObject, StorePage } from '../../../../src/api/store.js'
import { passBucket } from '../../../../src/s3/lifecycle/bucket-pass.js'
import type { LifecycleConfiguration, LifecycleRule } from '../../../../src/s3/lifecycle/configuration.js'
import type { PassDeps } from '../../../../src/s3/lifecycle/pass.js'
import { startLifecycle } from '../../../../src/s3/lifecycle/runner.js'
import { openState } from '../../../../src/state/open-state.js'
import { createBucketSettings } from '../../../../src/state/records/bucket-settings.js'
import { creationTimesOf } from '../../../support/gateway/creation-times.js'
import { keptLog } from '../../../support/server/kept-log.js'

const NOW = Date.UTC(2030, 5, 15, 12)
const ago = (days: number) => new Date(NOW - days * DAY_MS).toISOString()
const hooks: PassDeps['hooks'] = { objectMoved: async () => {} }

interface Held {
  size: number
  lastModified: string
  etag: string
  tags?: readonly Tag[]
  archive?: Archive
}

/** A store of so many objects that counts what is asked of it. */
function modelStore(objects: Map<string, Held>) {
  const seen = { lists: 0, most: 0, removed: [] as string[], beforeRemove: (_key: string) => {} }
  const shown = (bucket: string, key: string) => {
    const held = objects.get(key)
    return held && ({ bucket, key, contentType: '', headers: {}, metadata: {}, revision: '', ...held } as StoredObject)
  }
  const store: Pick<Store, 'list' | 'remove' | 'find'> = {
    find: async (bucket, key) => shown(bucket, key),
    async list(_bucket, { prefix, after, limit }): Promise<StorePage> {
      seen.lists++
      const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort()
      const page = keys.slice(0, limit)
      seen.most = Math.max(seen.most, page.length)
      const entries = page.map((key) => ({
        kind: 'object' as const,
        key,
        cold: false,
        ...(objects.get(key) as Held),
      }))
      return { entries, truncated: keys.length > limit }
    },
    async remove(bucket, key, cause, precondition) {
      seen.beforeRemove(key)
      precondition?.(shown(bucket, key))
      if (cause.name !== 'LifecycleExpiration:Delete') throw new Error(cause.name)
      seen.removed.push(key)
      objects.delete(key)
      return {}
    },
  }
  return { store: store as Store, seen }
}

async function fixture(t: Test, objects: Record<string, Partial<Held>>) {
  const { log, lines } = keptLog()
  const state = await openState({ data: t.testdir(), log })
  t.teardown(() => state.close())
  const held = new Map<string, Held>()
  for (const [key, some] of Object.entries(objects)) {
    held.set(key, { size: 1, lastModified: ago(100), etag: 'e', ...some })
  }
  const { store, seen } = modelStore(held)
  const parts: PassDeps & { requireOwner: RequireOwner } = {
    requireOwner: async () => {},
    store,
    state,
    storageClasses: new Map(),
    hooks,
    log,
    now: () => NOW,
    ended: async () => false,
    isMeant: async () => true,
    isVersioned: async () => false,
  }
  /** The runner over these parts, which is told to run. */
  const runnerOf = (more: Partial<Parameters<typeof startLifecycle>[0]>) =>
    startLifecycle({
      ...parts,
      state,
      settings: createBucketSettings(state, creationTimesOf()),
      ownerOf: async () => parts,
      intervalMs: 0,
      ...more,
    })
  return { parts, state, held, seen, lines, runnerOf }
}

const rule = (filter: Partial<LifecycleRule['filter']>, more: Partial<LifecycleRule> = {}): LifecycleRule => ({
  id: 'r',
  enabled: true,
  filter: { form: 'filter', ...filter },
  expiration: { days: 30 },
  ...more,
})
const rules = (...some: LifecycleRule[]): LifecycleConfiguration => ({
  rules: some,
  minimumTransitionSize: 'all_storage_classes_128K',
})

t.test('what changes between the listing and its turn stays', async (t) => {
  const tags = [{ key: 'temp', value: 'yes' }]
  const { parts, seen, held } = await fixture(t, {
    overwritten: {},
    'same second': {},
    gone: {},
    untagged: { tags },
    old: { tags },
  })
  seen.beforeRemove = (key) => {
    const object = held.get(key) as Held
    if (key === 'overwritten') held.set(key, { ...object, lastModified: ago(0) })
    if (key === 'same second') held.set(key, { ...object, etag: 'another' })
    if (key === 'gone') held.delete(key)
    if (key === 'untagged') held.set(key, { ...object, tags: [] })
  }
  // A date is due whatever the age: it is the version that was listed, or nothing.
  const byDate = rule({}, { expiration: { date: NOW - DAY_MS } })
  const small = { ...byDate, filter: { form: 'filter' as const, lessThan: 0 } }
  const tally = await passBucket(parts, 'b', rules(rule({ tags }), small))
  t.same(seen.removed, ['old'])
  t.match(tally, { expired: 1, spared: 1, failed: 0 })
  const again = await passBucket(parts, 'b', rules(byDate))
  t.same(seen.removed, ['old', 'untagged'], 'neither what was overwritten nor what was gone')
  t.match(again, { expired: 1, spared: 3, complete: true })
})

t.test('a version that was replaced, or has lost a newer one since the listing, stays', async (t) => {
  const { parts } = await fixture(t, {})
  const versionOf = (versionId: string) => {
    const object = {
      key: 'a',
      size: 1,
      etag: 'e',
      lastModified: ago(10),
      revision: versionId,
      versionId,
    } as StoredObject
    return { kind: 'version' as const, object, versionId, isLatest: versionId === '0', since: ago(10) }
  }
  const asked: Parameters<Store['remove']>[4][] = []
  const store: Pick<Store, 'listVersions' | 'remove'> = {
    listVersions: async () => ({ entries: ['0', '1', '2', '3', '4'].map(versionOf), truncated: false }),
    async remove(_bucket, _key, _cause, precondition, version) {
      asked.push(version)
      if (version?.id === '2') throw new S3Error('PreconditionFailed')
      const { object } = versionOf(version?.id ?? '')
      precondition?.(version?.id === '3' ? { ...object, revision: 'another' } : object)
      return {}
    },
  }
  const noncurrent = rule({}, { expiration: undefined, noncurrentExpiration: { days: 3, newer: 1 } })
  const deps = { ...parts, store: store as Store, isVersioned: async () => true }
  t.match(await passBucket(deps, 'b', rules(noncurrent)), { removed: 1, spared: 2, failed: 0, complete: true })
  t.match(
    asked.sort((a, b) => Number(a?.id) - Number(b?.id)),
    ['2', '3', '4'].map((id) => ({ id, only: { newer: 1 } })),
    'the gateway compares what is newer',
  )
})

t.test('an object that has lost its tag or its bytes since the listing is not moved', async (t) => {
  const tags = [{ key: 'cold', value: 'yes' }]
  const big = { size: 200_000, tags }
  const { parts, held } = await fixture(t, { lost: big, moved: big, replaced: big })
  const { list } = parts.store
  Object.assign(parts.store, {
    list: async (...asked: Parameters<Store['list']>) => {
      const page = await list(...asked)
      held.set('lost', { ...(held.get('lost') as Held), tags: [] })
      held.set('replaced', { ...(held.get('replaced') as Held), etag: 'another' })
      return page
    },
  })
  const moved: string[] = []
  const transition = async ({ key }: { key: string }) => moved.push(key) > 0
  const storageClasses: PassDeps['storageClasses'] = new Map([['GLACIER', { name: 'GLACIER', transition }]])
  const moving = rule({ tags }, { expiration: undefined, transitions: [{ days: 1, storageClass: 'GLACIER' }] })
  t.match(await passBucket({ ...parts, storageClasses }, 'b', rules(moving)), { transitioned: 1, spared: 2, failed: 0 })
  t.same(moved, ['moved'])
})

t.test('a large bucket is read in pages, and only below the prefixes of the rules', async (t) => {
  const many = Object.fromEntries(
    ['a/', 'z/'].flatMap((prefix) =>
      Array.from({ length: 2500 }, (_, i) => [`${prefix}${String(i).padStart(5, '0')}`, {}]),
    ),
  )
  const { parts, seen, held } = await fixture(t, many)
  const tally = await passBucket(parts, 'b', rules(rule({ prefix: 'a/' }), rule({ prefix: 'a/0' })))
  t.match(tally, { scanned: 2500, expired: 2500, complete: true })
  t.hasStrict(seen, { most: 1000, lists: 3 })
  t.equal(held.size, 2500)
})

const manyKeys = (length: number) => Object.fromEntries(Array.from({ length }, (_, i) => [`${i}`, {}]))

t.test('failures are counted, and too many end the pass', async (t) => {
  const { parts, seen, lines } = await fixture(t, manyKeys(1200))
  seen.beforeRemove = () => {
    throw new Error('the gateway is not well')
  }
  const tally = await passBucket(parts, 'b', rules(rule({})))
  t.equal(tally.complete, false)
  t.ok(tally.failed >= 100 && tally.failed < 110, String(tally.failed))
  const logged = lines.filter(({ msg }) => /^could not (?:abort an upload by|apply) a lifecycle rule/.test(msg))
  t.equal(logged.length, tally.failed)
})

t.test('objects that are refused because they are plain do not end the pass', async (t) => {
  const big = { size: 200_000 }
  const plain = Object.fromEntries(Object.keys(manyKeys(150)).map((key) => [`a${key}`, big]))
  const { parts, seen, lines } = await fixture(t, { ...plain, z: {} })
  const transition = async () => {
    throw new S3Error('ObjectNotEncrypted')
  }
  const storageClasses: PassDeps['storageClasses'] = new Map([['GLACIER', { name: 'GLACIER', transition }]])
  const moving = rule({ prefix: 'a' }, { expiration: undefined, transitions: [{ days: 1, storageClass: 'GLACIER' }] })
  const tally = await passBucket({ ...parts, storageClasses }, 'b', rules(moving, rule({ prefix: 'z' })))
  t.match(tally, { refused: 150, expired: 1, failed: 0, complete: true })
  t.same(seen.removed, ['z'])
  t.equal(lines.filter(({ msg }) => /pass over plain objects/.test(msg)).length, 1)
})

t.test('the runner does a day’s work once, and again when the rules change or something failed', async (t) => {
  const { state, seen, held, runnerOf } = await fixture(t, { a: {} })
  let now = NOW
  const settings = createBucketSettings(state, creationTimesOf())
  await settings.set('b', 'lifecycle', rules(rule({})))
  const runner = runnerOf({ settings, now: () => now })
  t.equal(seen.lists, 0, 'an interval of 0 starts nothing by itself')
  seen.beforeRemove = () => {
    throw new Error('not now')
  }
  await runner.run()
  t.equal(seen.lists, 1)
  seen.beforeRemove = () => {}
  await Promise.all([runner.run(), runner.run()])
  t.equal(seen.lists, 2, 'what failed is tried again, once at a time')
  t.same(seen.removed, ['a'])
  await runner.run()
  t.equal(seen.lists, 2, 'the day’s work is done')
  const another = runnerOf({ settings, now: () => now })
  await another.run()
  t.equal(seen.lists, 2, 'after a restart as well')
  await settings.set('b', 'lifecycle', rules(rule({ prefix: 'x' })))
  await runner.run()
  t.equal(seen.lists, 3, 'other rules are other work')
  now += DAY_MS
  await runner.run()
  t.equal(seen.lists, 4, 'a new day')
  now += DAY_MS
  held.set('x', { size: 1, lastModified: ago(100), etag: 'e' })
  seen.beforeRemove = () => void settings.delete('b', 'lifecycle')
  await runner.run()
  await settings.delete('b', 'lifecycle')
  now += DAY_MS
  await runner.run()
  t.equal(seen.lists, 5, 'no rules, no work')
  const left: string[] = []
  for await (const [bucket] of state.records('lifecycle-passes').entries()) left.push(bucket)
  t.same(left, [], 'nothing is remembered of buckets without rules')
  await runner.stop()
})

t.test('rules that are taken away stop the pass', async (t) => {
  const { parts, state, seen, runnerOf } = await fixture(t, manyKeys(100))
  const settings = createBucketSettings(state, creationTimesOf())
  await settings.set('b', 'lifecycle', rules(rule({})))
  const runner = runnerOf({ settings })
  let deleted: Promise<void> | undefined
  const { remove } = parts.store
  Object.assign(parts.store, {
    remove: async (...args: Parameters<Store['remove']>) => {
      deleted ??= settings.delete('b', 'lifecycle')
      await deleted
      return remove(...args)
    },
  })
  await runner.run()
  t.ok(seen.removed.length < 10, `${seen.removed.length} of 100`)
})

t.test('nothing is done in a bucket that the server’s own account does not own', async (t) => {
  const { parts, state, seen, held, runnerOf } = await fixture(t, { a: {}, b: {} })
  const settings = createBucketSettings(state, creationTimesOf())
  await settings.set('b', 'lifecycle', rules(rule({})))
  let isOwner = false
  const requireOwner = async (bucket: string) => {
    t.equal(bucket, 'b')
    if (!isOwner) throw new S3Error('AccessDenied')
  }
  const runner = runnerOf({ settings, ownerOf: async () => ({ ...parts, requireOwner }) })
  await runner.run()
  t.ok(seen.lists > 0)
  t.same(seen.removed, [])
  isOwner = true
  await runner.run()
  t.same([...seen.removed].sort(), ['a', 'b'], 'it is tried again')
  t.equal(held.size, 0)
})

t.test('rules of a bucket that is gone end where one made again could not be told from it', async (t) => {
  const { parts, state, runnerOf } = await fixture(t, { a: {} })
  Object.assign(parts.store, {
    list: async () => {
      throw new S3Error('NoSuchBucket')
    },
  })
  for (const creationTime of [undefined, '2026-01-01T00:00:00.000000001Z']) {
    const creationTimes = new Map(creationTime === undefined ? [] : [['b', creationTime]])
    const settings = createBucketSettings(state, creationTimesOf(creationTimes))
    await settings.set('b', 'tagging', [{ key: 'a', value: 'b' }])
    await settings.set('b', 'lifecycle', rules(rule({})))
    creationTimes.clear()
    const runner = runnerOf({ settings })
    await runner.run()
    t.equal((await settings.get('b', 'lifecycle')) !== undefined, creationTime !== undefined)
    t.ok(await settings.get('b', 'tagging'), 'what destroys nothing stays')
  }
})
