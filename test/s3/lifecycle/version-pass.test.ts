import t from 'tap'
import type { Store, StoredObject } from '../../../src/api/store.js'
import type { VersionEntry } from '../../../src/api/versions.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { DAY_MS } from '../../../src/common/time.js'
import { passBucket } from '../../../src/s3/lifecycle/bucket-pass.js'
import type { LifecycleRule } from '../../../src/s3/lifecycle/configuration.js'
import type { PassDeps } from '../../../src/s3/lifecycle/pass.js'
import { keptLog } from '../../support/server/kept-log.js'

const NOW = Date.UTC(2030, 5, 15, 12)
const old = new Date(NOW - 10 * DAY_MS).toISOString()

type Entry = Extract<VersionEntry<StoredObject>, { kind: 'version' }>

/** A key with so many versions, the newest first, in a store that counts what is asked of it. */
function modelStore(count: number) {
  const all = Array.from({ length: count }, (_, i): Entry => {
    const versionId = String(i).padStart(32, '0')
    const object = { key: 'a', size: 1, etag: 'e', lastModified: old, revision: versionId, versionId } as StoredObject
    return { kind: 'version', object, versionId, isLatest: i === 0, since: old }
  })
  const seen = { lists: 0, most: 0, beforeRemove: (_id: string) => {} }
  const store: Pick<Store, 'listVersions' | 'remove'> = {
    async listVersions(_bucket, { keyMarker, versionMarker, limit }) {
      seen.lists++
      const rest = keyMarker === '' ? all : all.filter(({ versionId }) => versionId > versionMarker)
      const entries = rest.slice(0, limit)
      seen.most = Math.max(seen.most, entries.length)
      const last = entries.at(-1)
      const next = last && { nextKey: 'a', nextVersion: last.versionId }
      return { entries, truncated: rest.length > limit, ...next }
    },
    async remove(_bucket, _key, _cause, precondition, version) {
      seen.beforeRemove(version?.id ?? '')
      const at = all.findIndex(({ versionId }) => versionId === version?.id)
      precondition?.(all[at]?.object)
      const only = version?.only
      if (!only || !('newer' in only) || at - 1 < only.newer) throw new S3Error('PreconditionFailed')
      all.splice(at, 1)
      return {}
    },
  }
  const { log } = keptLog()
  const deps: PassDeps = {
    ...{ store: store as Store, log, now: () => NOW, storageClasses: new Map() },
    hooks: { objectMoved: async () => {} },
    state: {} as PassDeps['state'],
    ended: async () => false,
    isMeant: async () => true,
    isVersioned: async () => true,
  }
  return { all, seen, deps }
}

const rule = (newer: number): LifecycleRule => ({
  ...{ id: 'r', enabled: true, filter: { form: 'filter' }, noncurrentExpiration: { days: 3, newer } },
})
const pass = ({ deps }: ReturnType<typeof modelStore>, ...rules: LifecycleRule[]) =>
  passBucket(deps, 'b', { rules, minimumTransitionSize: 'all_storage_classes_128K' })

t.test('the newest of 10,000 versions of a key stay, which are read in pages', async (t) => {
  const model = modelStore(10_000)
  const { seen, all } = model
  const kept = all.slice(0, 101).map(({ versionId }) => versionId)
  t.match(await pass(model, rule(100)), { scanned: 10_000, removed: 9899, spared: 0, failed: 0, complete: true })
  t.hasStrict(seen, { most: 1000, lists: 10 })
  t.same(
    all.map(({ versionId }) => versionId),
    kept,
  )
})

t.test('a pass that ended early is begun again', async (t) => {
  const model = modelStore(2500)
  let left = 1300
  const ended = async () => left-- <= 0
  const first = await passBucket({ ...model.deps, ended }, 'b', {
    ...{ rules: [rule(1)], minimumTransitionSize: 'all_storage_classes_128K' },
  })
  t.equal(first.complete, false)
  t.ok(first.removed > 1000 && first.removed < 1400, String(first.removed))
  const second = await pass(model, rule(1))
  t.equal(first.removed + second.removed, 2498)
  t.equal(model.all.length, 2)
})

t.test('what was replaced, or has lost a newer version meanwhile, stays', async (t) => {
  const model = modelStore(6)
  const { all, seen } = model
  const [, newer, two, three] = all.map(({ versionId }) => versionId)
  seen.beforeRemove = (id) => {
    if (id === two) all.splice(1, 1)
    if (id !== three) return
    const at = all.findIndex(({ versionId }) => versionId === id)
    const entry = all[at] as Entry
    all[at] = { ...entry, object: { ...entry.object, revision: 'another' } }
  }
  t.match(await pass(model, rule(1)), { spared: 2, failed: 0, complete: true })
  const rest = all.map(({ versionId }) => versionId)
  t.ok(rest.includes(String(two)) && rest.includes(String(three)) && !rest.includes(String(newer)))
})

t.test('nothing is listed of a bucket without versions', async (t) => {
  const model = modelStore(3)
  const deps = { ...model.deps, isVersioned: async () => false }
  const rules = { rules: [rule(1)], minimumTransitionSize: 'all_storage_classes_128K' as const }
  t.match(await passBucket(deps, 'b', rules), { removed: 0, complete: true })
  t.equal(model.seen.lists, 0)
})
