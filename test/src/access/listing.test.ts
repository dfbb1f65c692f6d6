import fc from 'fast-check'
import t from 'tap'
import { compareUtf8 } from '../../../common/byte-order.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { listReadable } from '../../../src/access/list-readable.js'
import { Rights } from '../../../src/access/rights.js'
import type { Gateway, ListEntry, ListPage, ListQuery } from '../../../src/api/gateway.js'
import type { Right } from '../../../src/api/identity.js'
import { Level, LevelBuilder } from '../../../src/gateway/listing/level.js'
import { SnapshotCache } from '../../../src/gateway/listing/snapshot-cache.js'

/** What a listing of these keys is: every one in order, or the group it falls into, from `after` on. */
function model(keys: readonly string[], { prefix, delimiter, after, limit }: ListQuery): ListPage {
  const entries: ListEntry[] = []
  for (const key of [...new Set(keys)].sort(compareUtf8)) {
    if (!key.startsWith(prefix)) continue
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    const name = at < 0 ? key : key.slice(0, at + delimiter.length)
    const last = entries.at(-1)
    if (compareUtf8(name, after) <= 0 || (last?.kind === 'prefix' && last.prefix === name)) continue
    entries.push(at < 0 ? { kind: 'object', object: object(key) } : { kind: 'prefix', prefix: name })
  }
  return { entries: entries.slice(0, limit), truncated: entries.length > limit }
}

function object(key: string) {
  return { key, size: 0, lastModified: '2020-01-01T00:00:00Z', contentType: 'text/plain', revision: '1' }
}

function holding(keys: readonly string[]): Gateway {
  return { list: async (_: string, query: ListQuery) => model(keys, query) } as Partial<Gateway> as Gateway
}

const name = fc.string({ unit: fc.constantFrom('a', 'b', '/', 'é', '😀', '￿'), maxLength: 5 })
const key = name.filter((text) => text !== '')

t.test('a listing shows what a listing of the readable keys alone would show', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(key, { maxLength: 20 }),
      fc.array(name, { minLength: 1, maxLength: 4 }),
      fc.record({
        prefix: name,
        delimiter: fc.constantFrom('', '/', 'a', '/a', 'ab'),
        after: name,
        limit: fc.integer({ min: 1, max: 5 }),
      }),
      async (keys, prefixes, query) => {
        const rights = new Rights(prefixes.map((prefix): Right => ({ bucket: 'b', prefix, access: 'read' })))
        const readable = keys.filter((k) => rights.mayKey('b', k, 'read'))
        try {
          const page = await listReadable(holding(keys), rights.prefixes('b', 'read'), 'b', query)
          const expected = model(isWithin(prefixes, query.prefix) ? keys : readable, query)
          if (JSON.stringify(page) !== JSON.stringify(expected))
            throw new Error(`${JSON.stringify(page)} instead of ${JSON.stringify(expected)}`)
        } catch (error) {
          if (!(error instanceof S3Error)) throw error
          if (error.code === 'AccessDenied' && model(readable, { ...query, after: '' }).entries.length === 0) return
          if (error.code === 'NotImplemented' && query.delimiter.length > 1) return
          throw error
        }
      },
    ),
    { numRuns: 5000 },
  )
})

/** Everything below such a prefix is readable. */
function isWithin(prefixes: readonly string[], prefix: string): boolean {
  return prefixes.some((readable) => prefix.startsWith(readable))
}

t.test('what one account has listed is kept for that account alone', async (t) => {
  const snapshots = new SnapshotCache(1024 * 1024, () => 0)
  t.teardown(() => snapshots.clear())
  const [one, other] = [{}, {}]
  const builder = new LevelBuilder()
  builder.add({ name: 'secret', size: 1, lastModified: '2020-01-01T00:00:00Z', contentType: '', isPrefix: false })
  const reading = snapshots.begin(one, 'b', '')
  snapshots.store(reading, await Level.seal(builder, true))
  snapshots.end(reading)
  t.equal(snapshots.get(one, 'b', '')?.count, 1)
  t.equal(snapshots.get(other, 'b', ''), undefined)
})

t.test('rights: bucket patterns, prefixes and access', async (t) => {
  const rights = new Rights([
    { bucket: 'photos', prefix: '2024/', access: 'read' },
    { bucket: 'photos', prefix: '2024/05/', access: 'read' },
    { bucket: 'photos', prefix: 'inbox/', access: 'write' },
    { bucket: 'alice-*', access: 'readwrite' },
  ])
  t.same(rights.prefixes('photos', 'read'), ['2024/'])
  t.same(rights.prefixes('alice-x', 'write'), [''])
  t.same(rights.prefixes('alice', 'write'), [])
  t.ok(rights.mayKey('photos', '2024/a', 'read'))
  t.notOk(rights.mayKey('photos', '2024/a', 'write'))
  t.notOk(rights.mayKey('photos', '2024', 'read'), 'the prefix ends in a slash, the key does not')
  t.notOk(rights.mayKey('photos', 'inbox/a', 'read'))
  t.ok(rights.mayWholeBucket('alice-x', 'write'))
  t.notOk(rights.mayWholeBucket('photos', 'read'))
  t.ok(rights.mayAnything('photos'))
  t.notOk(rights.mayAnything('photos2'))
  t.ok(new Rights([{ bucket: '*', access: 'read' }]).mayWholeBucket('any', 'read'))
  t.notOk(new Rights([]).mayAnything('any'))
})
