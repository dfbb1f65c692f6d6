import assert from 'node:assert/strict'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { compareUtf8 } from '../../../common/byte-order.js'
import { createLogger } from '../../../common/log.js'
import { legacy, type QuirkName, startServices } from '../../../services/index.js'
import type { Gateway, ListEntry, ListPage, ListQuery } from '../../../src/api/gateway.js'
import { createGatewayPool } from '../../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../../src/gateway/brand.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { scriptedGateway } from './scripted-gateway.js'

/** Rounds of a property; the suite runs a sample, `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 5) * 10
const TIME = '2026-01-01T00:00:00.5Z'

/** What a listing should be: `keys` may hold folder markers, which are keys that end in `/`. */
function model(keys: readonly string[], query: ListQuery): { names: string[]; truncated: boolean } {
  const names = new Set<string>()
  for (const key of [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
    if (!key.startsWith(query.prefix)) continue
    const at = query.delimiter === '' ? -1 : key.indexOf(query.delimiter, query.prefix.length)
    names.add(at < 0 ? key : `${key.slice(0, at + query.delimiter.length)} *`)
  }
  const beyond = [...names].filter((name) => compareUtf8(name.replace(/ \*$/, ''), query.after) > 0)
  return { names: beyond.slice(0, query.limit), truncated: beyond.length > query.limit }
}

function names(page: ListPage): { names: string[]; truncated: boolean } {
  return {
    names: page.entries.map((entry) => (entry.kind === 'prefix' ? `${entry.prefix} *` : entry.object.key)),
    truncated: page.truncated,
  }
}

const nameOf = (entry: ListEntry): string => (entry.kind === 'prefix' ? entry.prefix : entry.object.key)

async function allPages(client: Gateway, bucket: string, query: ListQuery): Promise<string[]> {
  const found: string[] = []
  let after = ''
  for (;;) {
    const page = await client.list(bucket, { ...query, after })
    found.push(...names(page).names)
    const last = page.entries.at(-1)
    if (!page.truncated || !last) return found
    after = nameOf(last)
  }
}

const element = fc
  .string({ unit: fc.constantFrom('a', 'b', '-', '.', '0', 'é', '\uffee', '😀'), minLength: 1, maxLength: 2 })
  .filter((e) => e !== '.' && e !== '..')
const path = fc
  .tuple(fc.array(element, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([p, folder]) => p.join('/') + (folder && p.length < 3 ? '/' : ''))

/** Keys that a tree of files can hold: none is both a file and a folder. */
const tree = fc.array(path, { maxLength: 25 }).map((all) => {
  const keys = [...new Set(all)]
  return keys.filter(
    (key) =>
      !keys.some(
        (other) => other !== key && (key.endsWith('/') ? key.slice(0, -1) === other : other.startsWith(`${key}/`)),
      ),
  )
})
const anyKey = fc
  .array(fc.string({ unit: fc.constantFrom('a', '/', '-', '0', '.', 'é', '😀'), minLength: 1, maxLength: 5 }), {
    maxLength: 25,
  })
  .map((keys) => [...new Set(keys)])

const queryFor = (keys: readonly string[]) => {
  const someKey = keys.length > 0 ? fc.constantFrom(...keys) : fc.constant('a')
  const beginning = fc.tuple(someKey, fc.nat(8)).map(([key, n]) => [...key].slice(0, n).join(''))
  return fc.record({
    prefix: fc.oneof({ arbitrary: fc.constant(''), weight: 2 }, beginning, fc.constantFrom('.', '/', 'a/', 'zz/')),
    delimiter: fc.oneof(fc.constantFrom('', '/', '/'), fc.constantFrom('-', 'a', '/a', '//', 'é', '😀')),
    after: fc.oneof(
      { arbitrary: fc.constant(''), weight: 2 },
      someKey,
      beginning,
      beginning.map((p) => `${p}/`),
    ),
    limit: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(1000)),
  })
}
const withQuery = (keys: fc.Arbitrary<string[]>) => keys.chain((all) => fc.tuple(fc.constant(all), queryFor(all)))

/**
 * A tree of files as public gateways list it: one level, objects before prefixes, folders without a time unless they
 * are empty.
 */
function listLevel(keys: readonly string[], prefix: string): object[] | null {
  const found = new Map<string, string>()
  for (const key of keys) {
    if (!key.startsWith(prefix) || (key === prefix && key.endsWith('/'))) continue
    const at = key.indexOf('/', prefix.length)
    const name = at < 0 ? key : key.slice(0, at + 1)
    found.set(name, key === name && found.get(name) === undefined ? TIME : '0001-01-01T00:00:00Z')
  }
  const entries = [...found].map(([name, lastModified]) => ({ name, lastModified, size: 0, contentType: '' }))
  entries.sort((a, b) => Number(a.name.endsWith('/')) - Number(b.name.endsWith('/')))
  return entries.length === 0 ? null : entries
}

/** The order of keys decides in `listLevel` whether a folder is empty. */
const sorted = (keys: readonly string[]) => [...keys].sort(compareUtf8)

async function legacyTree(t: Test, snapshotBytes?: number) {
  const tree = { keys: [] as string[] }
  const gateway = await scriptedGateway(t, {
    rpc: { 'web.ListObjects': ({ prefix }) => ({ objects: listLevel(tree.keys, String(prefix)), writable: true }) },
  })
  const isMarker = async (_: string, prefixes: string[]) => prefixes.map((prefix) => tree.keys.includes(prefix))
  return { tree, gateway, client: gateway.client({ isMarker, ...(snapshotBytes !== undefined && { snapshotBytes }) }) }
}

t.test('a tree of levels lists as S3 would, with and without memory for snapshots', async (t) => {
  for (const snapshotBytes of [undefined, 0]) {
    const { tree: held, client } = await legacyTree(t, snapshotBytes)
    let round = 0
    await fc.assert(
      fc.asyncProperty(withQuery(tree), async ([keys, query]) => {
        held.keys = sorted(keys)
        // Another bucket each time: what another tree left in the snapshots is none of this one's business.
        const page = await client.list(`bucket-${round++}`, query)
        assert.deepEqual(names(page), model(keys, query))
      }),
      { numRuns: ROUNDS },
    )
    await fc.assert(
      fc.asyncProperty(withQuery(tree), async ([keys, query]) => {
        held.keys = sorted(keys)
        const pages = await allPages(client, `bucket-${round++}`, { ...query, limit: Math.min(query.limit, 3) })
        assert.deepEqual(pages, model(keys, { ...query, after: '', limit: 1000 }).names)
      }),
      { numRuns: Math.ceil(ROUNDS / 3) },
    )
  }
})

t.test('page n does not cost n walks, and what this proxy writes shows at once', async (t) => {
  const { tree: held, gateway, client } = await legacyTree(t)
  held.keys = sorted(Array.from({ length: 40 }, (_, i) => Array.from({ length: 10 }, (_, j) => `d${i}/f${j}`)).flat())
  const query = { prefix: '', delimiter: '', after: '', limit: 10 }
  t.strictSame(await allPages(client, 'b', query), held.keys)
  t.ok(gateway.count('web.ListObjects') <= 41, `${gateway.count('web.ListObjects')} calls for 41 levels in 40 pages`)

  const first = await client.list('b', query)
  const after = nameOf(first.entries.at(-1) as ListEntry)
  held.keys = held.keys.filter((key) => key !== 'd1/f1')
  await t.rejects(client.remove('b', 'd1/f1', anyOrder()), 'the script knows no such call, so its outcome is unknown')
  t.notOk(names(await client.list('b', { ...query, after })).names.includes('d1/f1'))
  const calls = gateway.count('web.ListObjects')
  await client.list('b', query)
  t.ok(gateway.count('web.ListObjects') > calls, 'a listing from the start is read anew')
})

t.test('a level too large to keep is selected from, in parts', async (t) => {
  const { tree: held, client, gateway } = await legacyTree(t, 50_000)
  held.keys = sorted(
    Array.from({ length: 3000 }, (_, i) => (i % 3 === 0 ? `k${(i * 7919) % 3000}/x` : `k${(i * 7919) % 3000}`)),
  )
  for (const delimiter of ['', '/', '0']) {
    const query = { prefix: '', delimiter, after: '', limit: 1250 }
    t.strictSame(await allPages(client, 'b', query), model(held.keys, { ...query, limit: 10_000 }).names, delimiter)
  }
  t.ok(gateway.count('web.ListObjects') > 3)
})

t.test('folders without end come to one', async (t) => {
  const folder = (params: Record<string, unknown>) => ({
    objects: [{ name: `${params.prefix}${'f'.repeat(200)}/`, lastModified: '0001-01-01T00:00:00Z', size: 0 }],
  })
  const gateway = await scriptedGateway(t, { rpc: { 'web.ListObjects': folder } })
  const listed = gateway.client().list('b', { prefix: '', delimiter: '', after: '', limit: 1 })
  await t.rejects(listed, { code: 'InternalError' })
})

t.test('the embedded gateway lists as S3 would, whatever it leaves out', async (t) => {
  const modes: (readonly QuirkName[])[] = [
    [],
    legacy,
    ['strict-keys', 'no-head'],
    ['one-level-listing', 'unsorted-listing', 'year-one-prefixes', 'null-arrays'],
  ]
  for (const quirks of modes) {
    await t.test(quirks.length > 9 ? 'legacy' : quirks.join() || 'full', async (t) => {
      const services = await startServices({
        data: temporaryFolder(t),
        gateway: { host: '127.0.0.1', port: 0, quirks },
      })
      t.teardown(() => services.stop())
      const stored = new Set<string>()
      const pool = createGatewayPool({
        url: services.gateway.url,
        brand: neutralBrand,
        log: createLogger({ level: 'silent' }),
        isMarker: async (bucket, prefixes) => prefixes.map((prefix) => stored.has(`${bucket}/${prefix}`)),
      })
      t.teardown(() => pool.close())
      const client = pool.for(await services.gateway.credentials())
      const strict = quirks.includes('strict-keys')
      const sets = fc.sample(strict ? tree : anyKey, { numRuns: 3, seed: 7 })
      sets.push(sorted(['a', 'b/', 'b/c', 'd/e/f', 'd/', 'g-', 'g/h', 'g0', 'empty/', '.h', '😀', '\uffee']))
      for (const [n, keys] of sets.entries()) {
        const bucket = `bucket-${n}`
        await client.makeBucket(bucket)
        for (const key of keys) {
          await client.upload(bucket, key, 0, { contentType: undefined, headers: {}, metadata: {} }).commit(anyOrder())
          if (key.endsWith('/')) stored.add(`${bucket}/${key}`)
        }
        for (const query of fc.sample(queryFor(keys), { numRuns: 20, seed: n }))
          assert.deepEqual(names(await client.list(bucket, query)), model(keys, query), JSON.stringify({ keys, query }))
        const all = { prefix: '', delimiter: '', after: '', limit: 3 }
        t.strictSame(await allPages(client, bucket, all), model(keys, { ...all, limit: 1000 }).names)
        for (const key of sorted(keys).reverse()) await client.remove(bucket, key, anyOrder())
        t.strictSame((await client.list(bucket, all)).entries, [], 'children before their folders, so all can go')
        await client.deleteBucket(bucket)
      }
    })
  }
})

t.test('a lookup waits as long as the timeout says, a listing longer', async (t) => {
  // No listing is answered.
  const gateway = await scriptedGateway(t, { before: ({ method }) => method === 'web.ListObjects' })
  const client = gateway.client({ timeoutMs: 500 })
  const ended: string[] = []
  const failing = async (what: string, asked: Promise<unknown>) => {
    await t.rejects(asked, { code: 'ServiceUnavailable', message: /too long/ }, what)
    ended.push(what)
  }
  await Promise.all([
    failing('a listing', client.list('bucket', { prefix: '', delimiter: '/', after: '', limit: 10 })),
    failing('an object', client.stat('bucket', 'd/key')),
    failing('a bucket', client.bucketExists('bucket')),
  ])
  t.equal(ended.at(-1), 'a listing')
})
