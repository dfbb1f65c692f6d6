import type { LifecycleRule, ObjectVersion, S3 } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import type { TransitionedObject } from '../../../../src/api/archive.js'
import type { StorageClass } from '../../../../src/api/context.js'
import type { ObjectEvent } from '../../../../src/api/hooks.js'
import { definePlugin } from '../../../../src/plugins/define-plugin.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { farFromMidnight, until } from '../../../support/waiting.js'

// Rules for versions that are not current and for delete markers, with the embedded gateway.

const Bucket = 'box'

async function startWorld(t: Test, { lock = false, storageClasses = [] as StorageClass[] } = {}) {
  await farFromMidnight()
  let now = Date.now()
  const removals: ObjectEvent[] = []
  const take = async (event: ObjectEvent) => void removals.push(event)
  const hooks = { objectDeleted: take, objectMoved: take }
  const watch = definePlugin({
    name: 'watch',
    summary: 'Keeps the events.',
    create: () => ({ operations: [], hooks, storageClasses }),
  })
  const server = await startInProcess(t, 'full', { now: () => now, lifecycleIntervalMs: 20, plugins: [watch({})] })
  await server.s3.createBucket({ Bucket, ObjectLockEnabledForBucket: lock })
  await server.s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  const passed = async (from: number) => {
    let tally: Record<string, number> | undefined
    await until('a pass is over', () => {
      for (const { lifecycle } of server.lines.slice(from)) {
        const found = lifecycle as (Record<string, number> & { complete: boolean }) | undefined
        if (found?.complete) tally = found
      }
      return tally !== undefined
    })
    return tally as unknown as Record<string, number>
  }
  return Object.assign(server, {
    removals,
    /** Sets the rules, and waits until they were applied. */
    async rules(...Rules: LifecycleRule[]) {
      const from = server.lines.length
      await server.s3.putBucketLifecycleConfiguration({ Bucket, LifecycleConfiguration: { Rules } })
      return passed(from)
    },
    /** Lets so many days pass, and waits until the rules were applied after them. */
    pass(days: number) {
      const from = server.lines.length
      now += days * DAY_MS
      return passed(from)
    },
  })
}

const rule = (ID: string, more: Partial<LifecycleRule>, Filter: LifecycleRule['Filter'] = {}): LifecycleRule => ({
  ...{ ID, Filter, Status: 'Enabled' },
  ...more,
})
const put = async (s3: S3, Key: string, Body: string, more: object = {}) =>
  String((await s3.putObject({ Bucket, Key, Body, ...more })).VersionId)

/** Ids, newest first; markers with a `-`. */
async function versionsOf(s3: S3, Prefix: string): Promise<string[]> {
  const { Versions = [], DeleteMarkers = [] } = await s3.listObjectVersions({ Bucket, Prefix })
  const all: (ObjectVersion & { marker?: true })[] = [
    ...Versions,
    ...DeleteMarkers.map((one) => ({ ...one, marker: true as const })),
  ]
  return all
    .sort((a, b) => Number(b.IsLatest) - Number(a.IsLatest) || Number(b.LastModified) - Number(a.LastModified))
    .map(({ VersionId, marker }) => `${marker ? '-' : ''}${VersionId}`)
}

t.test('versions expire by the day on which they were replaced, each by its own tags', async (t) => {
  const world = await startWorld(t)
  const { s3, removals } = world
  const kept = await put(s3, 'a', 'one', { Tagging: 'keep=yes' })
  const gone = await put(s3, 'a', 'one', { Tagging: 'keep=no' })
  const large = await put(s3, 'a', 'x'.repeat(100), { Tagging: 'keep=no' })
  const last = await put(s3, 'a', 'one', { Tagging: 'keep=no' })
  const other = await put(s3, 'b', 'one', { Tagging: 'keep=no' })
  const marker = (await s3.deleteObject({ Bucket, Key: 'b' })).VersionId
  const And = { Tags: [{ Key: 'keep', Value: 'no' }], ObjectSizeLessThan: 50 }
  await world.rules(rule('old', { NoncurrentVersionExpiration: { NoncurrentDays: 2 } }, { And }))
  t.match((await s3.getBucketLifecycleConfiguration({ Bucket })).Rules, [
    { NoncurrentVersionExpiration: { NoncurrentDays: 2 } },
  ])
  t.equal((await s3.headObject({ Bucket, Key: 'a' })).Expiration, undefined, 'the current one does not expire')

  t.match(await world.pass(2), { removed: 0 }, 'midnight is the moment')
  t.same(await versionsOf(s3, 'a'), [last, large, gone, kept])
  t.match(await world.pass(1), { removed: 2, failed: 0 })
  t.same(await versionsOf(s3, 'a'), [last, large, kept])
  t.same(await versionsOf(s3, 'b'), [`-${marker}`])
  await t.rejects(s3.getObject({ Bucket, Key: 'a', VersionId: gone }), { name: 'NoSuchVersion' })
  t.same(
    removals
      .filter(({ name }) => name === 'LifecycleExpiration:Delete')
      .map(({ versionId }) => versionId)
      .sort(),
    [gone, other].sort(),
  )
})

t.test('a marker that is alone goes with its own rule, and by the days of another', async (t) => {
  const world = await startWorld(t)
  const { s3 } = world
  for (const Key of ['alone', 'not-alone', 'by-days']) await put(s3, Key, 'x')
  const ids: Record<string, string | undefined> = {}
  for (const Key of ['alone', 'not-alone', 'by-days', 'never'])
    ids[Key] = (await s3.deleteObject({ Bucket, Key })).VersionId
  const Filter = (Prefix: string) => ({ Prefix })
  await world.rules(
    rule('v', { NoncurrentVersionExpiration: { NoncurrentDays: 1 } }, Filter('alone')),
    rule('w', { NoncurrentVersionExpiration: { NoncurrentDays: 1 } }, Filter('by-days')),
    rule('m', { Expiration: { ExpiredObjectDeleteMarker: true } }, Filter('alone')),
    rule('n', { Expiration: { ExpiredObjectDeleteMarker: true } }, Filter('not-alone')),
    rule('o', { Expiration: { ExpiredObjectDeleteMarker: false } }, Filter('never')),
    rule('d', { Expiration: { Days: 4 } }, Filter('by-days')),
  )
  t.match(await world.pass(2), { removed: 2 }, 'the versions')
  t.match(await world.pass(1), { removed: 1 }, 'the marker that is alone now')
  t.same(await versionsOf(s3, 'alone'), [])
  t.equal((await versionsOf(s3, 'not-alone')).length, 2)
  t.same(await versionsOf(s3, 'by-days'), [`-${ids['by-days']}`])
  t.match(await world.pass(2), { removed: 1 }, 'the days of the marker are over')
  t.same(await versionsOf(s3, 'by-days'), [])
  t.same(await versionsOf(s3, 'never'), [`-${ids.never}`])
})

t.test('Expiration adds a marker, or replaces the version null by one', async (t) => {
  const world = await startWorld(t)
  const { s3, removals } = world
  const stays = await put(s3, 'enabled', 'x')
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Suspended' } })
  await put(s3, 'suspended', 'x', { Tagging: 'a=b' })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  await world.rules(rule('d', { Expiration: { Days: 1 } }, { Prefix: 'enabled' }))
  t.match(await world.pass(2), { expired: 1, removed: 0 })
  const [marker, ...rest] = await versionsOf(s3, 'enabled')
  t.match(marker, /^-/)
  t.same(rest, [stays])
  t.match(removals.at(-1), { name: 'LifecycleExpiration:DeleteMarkerCreated', versionId: marker?.slice(1) })

  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Suspended' } })
  const one = rule('e', { Expiration: { Days: 1 } }, { Tag: { Key: 'a', Value: 'b' } })
  t.match(await world.rules(one), { expired: 1 }, 'the day is over')
  t.same(await versionsOf(s3, 'suspended'), ['-null'])
})

t.test('a locked version stays, and the others go', async (t) => {
  const world = await startWorld(t, { lock: true })
  const { s3 } = world
  const held = await put(s3, 'a', 'held', { ObjectLockLegalHoldStatus: 'ON', ChecksumAlgorithm: 'SHA256' })
  const retained = await put(s3, 'a', 'retained', {
    ObjectLockMode: 'GOVERNANCE',
    ObjectLockRetainUntilDate: new Date(Date.now() + 30 * DAY_MS),
    ChecksumAlgorithm: 'SHA256',
  })
  await put(s3, 'a', 'free')
  const current = await put(s3, 'a', 'current')
  await world.rules(rule('old', { NoncurrentVersionExpiration: { NoncurrentDays: 1 } }))
  t.match(await world.pass(2), { removed: 1, locked: 2, failed: 0 })
  t.same(await versionsOf(s3, 'a'), [current, retained, held])
  await s3.putObjectLegalHold({ Bucket, Key: 'a', VersionId: held, LegalHold: { Status: 'OFF' } })
  t.match(await world.pass(1), { removed: 1, locked: 1 })
})

t.test('so many newer versions stay', async (t) => {
  const world = await startWorld(t)
  const { s3 } = world
  // More than a page of a listing has.
  for (let i = 0; i < 1008; i++) await put(s3, 'a', String(i))
  await put(s3, 'b', 'one')
  await s3.deleteObject({ Bucket, Key: 'b' })
  for (const body of ['two', 'three']) await put(s3, 'b', body)
  const before = { a: await versionsOf(s3, 'a'), b: await versionsOf(s3, 'b') }
  await world.rules(rule('n', { NoncurrentVersionExpiration: { NoncurrentDays: 1, NewerNoncurrentVersions: 2 } }))
  t.match(await world.pass(2), { scanned: 1012, removed: 1005, failed: 0 })
  t.same(await versionsOf(s3, 'a'), before.a.slice(0, 3))
  t.same(await versionsOf(s3, 'b'), before.b, 'delete markers are not counted')
})

t.test('a version moves to a storage class by the day on which it was replaced', async (t) => {
  const moved: TransitionedObject[] = []
  const transition = async (object: TransitionedObject) => moved.push(object) > 0
  const storageClasses: StorageClass[] = [
    { name: 'GLACIER', transition },
    { name: 'DEEP_ARCHIVE', transition, currentOnly: true },
  ]
  const world = await startWorld(t, { storageClasses })
  const { s3, removals } = world
  const large = 'x'.repeat(200_000)
  const old = await put(s3, 'a', `${large} of old`)
  const newer = await put(s3, 'a', `${large} of newer`)
  const small = await put(s3, 'a', 'small')
  await put(s3, 'a', `${large} that is current`)
  const moving = (StorageClass: 'GLACIER' | 'DEEP_ARCHIVE', more = {}) =>
    rule('m', { NoncurrentVersionTransitions: [{ NoncurrentDays: 1, StorageClass, ...more }] })
  await t.rejects(world.rules(moving('DEEP_ARCHIVE')), { name: 'NotImplemented', message: /DEEP_ARCHIVE/ })
  await world.rules(moving('GLACIER', { NewerNoncurrentVersions: 2 }))
  t.match(await world.pass(2), { transitioned: 1, failed: 0 }, 'the one of which two are newer')
  const { revision } = moved[0] as TransitionedObject
  t.match(moved, [{ bucket: Bucket, key: 'a', size: large.length + 7 }])
  t.ok(revision)
  t.match(removals, [{ name: 'LifecycleTransition', versionId: old, storageClass: 'GLACIER' }])
  moved.length = 0
  t.match(await world.rules(moving('GLACIER')), { transitioned: 2 }, 'this class remembers nothing')
  t.same(moved.map(({ size }) => size).sort(), [large.length + 7, large.length + 9])
  t.same(
    removals
      .slice(1)
      .map(({ versionId }) => versionId)
      .sort(),
    [old, newer].sort(),
  )
  t.notOk(removals.some(({ versionId }) => versionId === small))
})

t.test('what changes between the listing and the removal stays', async (t) => {
  const world = await startWorld(t)
  const { s3 } = world
  const user = new GatewayUser(world.gateway)
  await user.login()
  const [first, second] = [await put(s3, 'a', 'one'), await put(s3, 'a', 'two')]
  const third = await put(s3, 'a', 'three')
  const marker = String((await s3.deleteObject({ Bucket, Key: 'a' })).VersionId)
  const page = await user.call('web.ListObjectVersions', {
    ...{ bucketName: Bucket, prefix: '', delimiter: '', keyMarker: '' },
  })
  const since = new Map(
    (page.versions as { versionId: string; since: string }[]).map((one) => [one.versionId, one.since]),
  )
  const remove = (versionId: string, more: object) =>
    user.call('web.RemoveObject', { bucketName: Bucket, objects: ['a'], versionId, ...more })
  const noncurrent = (id: string, newerNoncurrent?: number) =>
    remove(id, { noncurrentSince: since.get(id), newerNoncurrent })
  await t.rejects(noncurrent(marker), { message: /generation/ }, 'it is current')
  await t.rejects(remove(marker, { alone: true }), { message: /generation/ }, 'it is not alone')
  await t.rejects(remove(third, { alone: true }), { message: /generation/ }, 'it is no marker')
  await t.rejects(remove(third, { noncurrentSince: since.get(second) }), { message: /generation/ })
  await t.rejects(noncurrent(first, 3), { message: /generation/ }, 'the marker does not count')
  await remove(marker, {})
  await t.rejects(noncurrent(third), { message: /generation/ }, 'it has become current again')
  await t.rejects(noncurrent(first, 2), { message: /generation/ })
  await t.rejects(user.call('web.RemoveObject', { bucketName: Bucket, objects: ['a'], alone: true }))
  t.same(await versionsOf(s3, 'a'), [third, second, first])
  await noncurrent(first, 1)
  t.same(await versionsOf(s3, 'a'), [third, second])
})
