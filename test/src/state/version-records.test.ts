import t from 'tap'
import type { ObjectRecord } from '../../../src/api/object-records.js'
import { partChecksumRecords } from '../../../src/objects/part-checksums.js'
import { openState } from '../../../src/state/open-state.js'
import { keptLog } from '../../support/server/kept-log.js'
import { lostLock } from './samples.js'
import { postgres, redis } from './servers.js'

// A key of a versioned bucket has a record for each version.

const [bucket, key] = ['box', 'a']

function recordOf(revision: string, more: Partial<ObjectRecord> = {}): ObjectRecord {
  const etag = `etag-${revision}`
  const common = { contentType: 'text/plain', headers: {}, metadata: { of: revision }, versionId: `id-${revision}` }
  return { bucket, key, revision, size: 1, etag, ...common, ...more }
}

const sqlite = { name: 'SQLite', skip: false as const, start: async () => ({ url: undefined, stop: async () => {} }) }

for (const kind of [sqlite, redis, postgres]) {
  t.test(kind.name, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const { log } = keptLog()
    const state = await openState({ data: t.testdir(), log, ...(server.url !== undefined && { url: server.url }) })
    t.teardown(() => state.close())
    const { objects, locks } = state
    const written = async (record: ObjectRecord) =>
      locks.withKey(bucket, key, (lock) => objects.setNewest(record, lock))
    const metadataOf = async (revision: string) => (await objects.ofRevision(bucket, key, revision))?.metadata.of

    await locks.withKey(bucket, key, (lock) => objects.set(recordOf('null', { versionId: undefined }), lock))
    await written(recordOf('1'))
    await written(recordOf('2'))
    for (const revision of ['null', '1', '2']) t.equal(await metadataOf(revision), revision)
    t.equal(await metadataOf('3'), undefined)
    const many = await objects.manyOfRevisions(bucket, [
      [key, '1'],
      ['other', '1'],
      [key, '2'],
    ])
    t.same(
      many.map((record) => record?.revision),
      ['1', undefined, '2'],
    )

    t.test('a change to one version leaves the others', async (t) => {
      const change = (revision: string, value: string) =>
        locks.withKey(bucket, key, (lock) =>
          objects.setVersion(recordOf(revision, { tags: [{ key: 'who', value }] }), lock),
        )
      await change('1', 'one')
      await change('2', 'two')
      const tagOf = async (revision: string) => (await objects.ofRevision(bucket, key, revision))?.tags?.[0]?.value
      t.same([await tagOf('null'), await tagOf('1'), await tagOf('2')], [undefined, 'one', 'two'])
      await written(recordOf('3'))
      t.same([await tagOf('null'), await tagOf('1'), await tagOf('2')], [undefined, 'one', 'two'])
      t.equal(await metadataOf('3'), '3')
    })

    t.test('a writer that has lost its lock keeps the record of its version alone', async (t) => {
      const lost = lostLock(await locks.withKey(bucket, key, async (lock) => lock))
      await written(recordOf('later'))
      await objects.setNewest(recordOf('late'), lost)
      t.equal(await metadataOf('late'), 'late')
      t.equal((await objects.get(bucket, key))?.revision, 'later')
      const change = recordOf('late', { tags: [{ key: 'who', value: 'later' }] })
      await locks.withKey(bucket, key, (lock) => objects.setVersion(change, lock))
      await objects.setNewest(recordOf('late'), lost)
      t.equal((await objects.ofRevision(bucket, key, 'late'))?.tags?.[0]?.value, 'later', 'a later change stands')
      await t.rejects(objects.setNewest(recordOf('null', { versionId: 'null' }), lost), { code: 'ServiceUnavailable' })
      await written(recordOf('5'))
    })

    t.test('a removal takes the record of its version alone', async (t) => {
      const remove = (revision: string) =>
        locks.withKey(bucket, key, (lock) => objects.deleteVersion(bucket, key, revision, lock))
      await remove('5')
      t.equal(await metadataOf('5'), undefined)
      t.equal(await objects.get(bucket, key), undefined, 'the record of the key was that of the version')
      await remove('1')
      for (const revision of ['null', '2', '3']) t.equal(await metadataOf(revision), revision)
    })

    t.test('a null version takes the place of the one before', async (t) => {
      await written(recordOf('n1', { versionId: 'null' }))
      await written(recordOf('n2', { versionId: 'null' }))
      t.equal(await metadataOf('n1'), undefined)
      t.equal(await metadataOf('n2'), 'n2')
      await written(recordOf('6'))
      t.equal(await metadataOf('n2'), 'n2')
    })

    t.test('checksums of parts', async (t) => {
      const parts = partChecksumRecords(state)
      const place = (revision: string, versionId?: string) => ({ bucket, key, revision, versionId })
      const write = (revision: string, versionId?: string) =>
        locks.withKey(bucket, key, (lock) =>
          parts.set(place(revision, versionId), { algorithm: 'CRC32', values: [revision] }, lock),
        )
      await write('null')
      await write('6', 'id-6')
      await write('gone', 'id-gone')
      const valuesOf = async (revision: string, versionId?: string) =>
        (await parts.get(place(revision, versionId)))?.values
      t.same(await valuesOf('null', 'null'), ['null'], 'those of an object from before the versioning')
      t.equal(await parts.sweep(), 1)
      t.same(await valuesOf('6', 'id-6'), ['6'])
      t.equal(await valuesOf('gone', 'id-gone'), undefined)
      t.same(await valuesOf('null', 'null'), ['null'])
    })
  })
}
