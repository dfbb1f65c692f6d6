import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { openState } from '../../../src/state/open-state.js'
import { createBucketSettings } from '../../../src/state/records/bucket-settings.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { publicRead } from '../../support/content/policies.js'
import { Between, type Fate } from '../../support/gateway/between.js'
import { creationTimesOf } from '../../support/gateway/creation-times.js'
import { until } from '../../support/waiting.js'
import { startHanging } from './hanging.js'
import { postgres, redis } from './servers.js'
import { begin, listOf, lostLocks, type OneOfSeveral, startSeveral } from './several-proxies.js'

// Settings of buckets, changed and relied on through two proxies that share a state store.

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)

const block = (...names: string[]) => {
  const all = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets']
  const elements = all.map((name) => `<${name}>${names.includes(name)}</${name}>`).join('')
  return `<PublicAccessBlockConfiguration>${elements}</PublicAccessBlockConfiguration>`
}
const tagging = (value: string) =>
  `<Tagging><TagSet><Tag><Key>team</Key><Value>${value}</Value></Tag></TagSet></Tagging>`
const cors =
  '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>'
const lifecycle =
  '<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>'

async function ok(t: Test, proxy: OneOfSeveral, method: string, path: string, query: object, body = '') {
  const answer = await proxy.send(method, path, { query: query as Record<string, string>, body })
  t.ok(answer.status < 300, `${method} ${path} ${JSON.stringify(query)}: ${answer.status} ${answer.code}`)
}

/** What the stores and the modes decide is apart: two pairs have each of them. */
const pairs = [
  { kind: redis, mode: 'legacy' },
  { kind: postgres, mode: 'full' },
] as const

for (const { kind, mode } of pairs) {
  t.test(`${kind.name}, ${mode}`, { skip: kind.skip, timeout: 600_000 }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())

    t.test('no acknowledged setting vanishes, also where locks are lost', async (t) => {
      const several = await startSeveral(t, server.url)
      const one = await several.start('one', { change: lostLocks })
      const two = await several.start('two', { change: lostLocks })
      const three = await several.start('three')
      await ok(t, one, 'PUT', '/kept', {})
      const names = ['publicAccessBlock', 'tagging', 'cors', 'lifecycle']
      const shown = () =>
        Promise.all(names.map(async (name) => (await three.send('GET', '/kept', { query: { [name]: '' } })).status))
      for (let round = 0; round < ROUNDS; round++) {
        await Promise.all([
          ok(t, one, 'PUT', '/kept', { tagging: '' }, tagging(`${round}`)),
          ok(t, two, 'PUT', '/kept', { publicAccessBlock: '' }, block('BlockPublicPolicy')),
          ok(t, one, 'PUT', '/kept', { cors: '' }, cors),
          ok(t, two, 'PUT', '/kept', { lifecycle: '' }, lifecycle),
        ])
        t.same(await shown(), [200, 200, 200, 200])
        const told = await three.send('GET', '/kept', { query: { tagging: '' } })
        t.match(told.body, `<Value>${round}</Value>`)
        await Promise.all([
          ok(t, one, 'DELETE', '/kept', { tagging: '' }),
          ok(t, two, 'DELETE', '/kept', { publicAccessBlock: '' }),
          ok(t, two, 'DELETE', '/kept', { cors: '' }),
          ok(t, one, 'DELETE', '/kept', { lifecycle: '' }),
        ])
        t.same(await shown(), [404, 404, 404, 404], 'and none comes back')
      }
    })

    t.test('what one proxy blocks the other one refuses at once', async (t) => {
      const several = await startSeveral(t, server.url, mode)
      const one = await several.start('one')
      const two = await several.start('two')
      const bucket = 'blocked'
      await ok(t, one, 'PUT', `/${bucket}`, {})
      for (const name of ['BlockPublicPolicy', 'RestrictPublicBuckets']) {
        // Both proxies remember that the bucket has no block.
        t.equal((await two.send('GET', `/${bucket}`, { query: { publicAccessBlock: '' } })).status, 404)
        await fetch(`${two.endpoint}/${bucket}/open/x`)
        await ok(t, one, 'PUT', `/${bucket}`, { publicAccessBlock: '' }, block(name))
        const refused = await two.send('PUT', `/${bucket}`, { query: { policy: '' }, body: publicRead(bucket) })
        if (name === 'BlockPublicPolicy') t.match(refused, { status: 403, code: 'AccessDenied' }, name)
        else {
          t.equal(refused.status, 204, 'the policy is stored, and opens nothing')
          t.equal((await fetch(`${two.endpoint}/${bucket}/open/x`)).status, 403, 'the server stays closed')
          t.equal((await fetch(`${several.gateway.url}/${bucket}/open/x`)).status, 403, 'the gateway stays closed')
          await ok(t, two, 'DELETE', `/${bucket}`, { policy: '' })
        }
        await ok(t, one, 'DELETE', `/${bucket}`, { publicAccessBlock: '' })
      }
      await ok(t, two, 'PUT', `/${bucket}`, { policy: '' }, publicRead(bucket))
      await ok(t, one, 'PUT', `/${bucket}/open/x`, {}, 'public')
      const acl = { headers: { 'x-amz-acl': 'public-read' } }
      t.equal((await two.send('PUT', `/${bucket}/open/x`, { query: { acl: '' }, ...acl })).status, 200)
      await ok(t, one, 'PUT', `/${bucket}`, { publicAccessBlock: '' }, block('BlockPublicAcls'))
      t.equal((await two.send('PUT', `/${bucket}/open/x`, { query: { acl: '' }, ...acl })).status, 403)
    })

    t.test('rules that one proxy removes delete nothing more at the other one', async (t) => {
      let between: Between | undefined
      const several = await startSeveral(t, server.url, 'full', async (gateway) => {
        between = await Between.start(t as Test, gateway)
        return between
      })
      const one = await several.start('one')
      await ok(t, one, 'PUT', '/ruled', {})
      const keys = Array.from({ length: 24 }, (_, i) => `k${i}`)
      await Promise.all(keys.map((key) => ok(t, one, 'PUT', `/ruled/${key}`, {}, 'x')))
      await ok(t, one, 'PUT', '/ruled', { lifecycle: '' }, lifecycle)
      let removals = 0
      let removed: Promise<unknown> | undefined
      if (between) {
        between.fate = async ({ body }): Promise<Fate> => {
          if (!body.includes('"web.RemoveObject"')) return 'pass'
          removals++
          // Those under way wait until the other proxy has acknowledged that the rules are gone.
          removed ??= ok(t, one, 'DELETE', '/ruled', { lifecycle: '' })
          await removed
          return 'pass'
        }
      }
      const later = Date.now() + 5 * 86_400_000
      const two = await several.start('two', { now: () => later, lifecycleIntervalMs: 60_000 })
      while (removed === undefined) await sleep(5)
      await removed
      // The pass has ended when its lease is free again.
      await two.close()
      t.ok(removals <= 4, `${removals} removals were under way when the rules went; no other one followed`)
      const left = await one.send('GET', '/ruled', { query: { 'list-type': '2' } })
      t.equal(left.body.match(/<Key>/g)?.length, 24 - removals)
    })
  })
}

const log = createLogger({ level: 'silent' })
const tags = (value: string) => [{ key: 'team', value }]

/** Where the first subscription is cut. */
const SUBSCRIBES = { redis: 'subscribe', postgres: 'LISTEN' }

/** Ends the connections that wait for signals. */
const cuts = {
  async redis(url: string) {
    const client = createClient({ url })
    await client.connect()
    await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await client.close()
  },
  async postgres(url: string) {
    const client = new pg.Client(url)
    await client.connect()
    const listens = "query LIKE 'LISTEN%' OR query = 'SELECT 1'"
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (${listens})`,
    )
    await client.end()
  },
}

async function hears(t: Test, value: string, get: () => Promise<unknown>): Promise<void> {
  await until(`the other proxy sees ${value}`, async () => JSON.stringify(await get()).includes(`"${value}"`))
  t.pass(`the other proxy sees ${value}`)
}

for (const kind of [redis, postgres]) {
  t.test(`changes of settings are told to the other proxies: ${kind.name}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const between = await startHanging(t, server.url)
    const folder = temporaryFolder(t)
    const here = await openState({ data: `${folder}/here`, url: server.url, log })
    t.teardown(() => here.close())
    between.cutAt(SUBSCRIBES[kind.name])
    const there = await openState({ data: `${folder}/there`, url: between.url, log, timeoutMs: 500 })
    t.teardown(() => there.close())
    const writer = createBucketSettings(here, creationTimesOf())
    // Its time stands still, so that nothing remembered grows old: only a signal makes it read again.
    const reader = createBucketSettings(there, creationTimesOf(), () => 0)
    const get = () => reader.get('photos', 'tagging').catch(() => 'fails')

    // Until the subscription is there, and with it the end of all that is remembered.
    await writer.set('photos', 'tagging', tags('first'))
    await hears(t, 'first', get)
    for (const value of ['second', 'third']) {
      await writer.set('photos', 'tagging', tags(value))
      await hears(t, value, get)
    }

    await cuts[kind.name](server.url)
    await writer.set('photos', 'tagging', tags('while it was cut'))
    await hears(t, 'while it was cut', get)
    await writer.set('photos', 'tagging', tags('after'))
    await hears(t, 'after', get)

    between.hang()
    await writer.set('photos', 'tagging', tags('while it hung'))
    between.go()
    await hears(t, 'while it hung', get)
  })
}

// Multipart uploads of which requests come to another proxy than the one that stages the parts.

for (const { kind, mode } of pairs) {
  t.test(`uploads: ${kind.name}, ${mode}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const several = await startSeveral(t, server.url, mode)
    const one = await several.start('one')
    const two = await several.start('two')
    await one.send('PUT', '/shared')
    await one.send('PUT', '/shared/source', { body: 'copied' })

    await t.test('the other proxy refuses parts and keeps those that were acknowledged', async (t) => {
      const uploadId = await begin(one, 'k')
      const first = await one.send('PUT', '/shared/k', { query: { uploadId, partNumber: '1' }, body: 'first' })
      t.equal(first.status, 200)
      const etag = String(first.headers.etag)
      const complete = { query: { uploadId }, body: listOf([etag]) }
      const refusals = [
        await two.send('PUT', '/shared/k', { query: { uploadId, partNumber: '1' }, body: 'other' }),
        await two.send('PUT', '/shared/k', { query: { uploadId, partNumber: '2' }, body: 'second' }),
        await two.send('PUT', '/shared/k', {
          query: { uploadId, partNumber: '1' },
          headers: { 'x-amz-copy-source': '/shared/source' },
        }),
        await two.send('POST', '/shared/k', complete),
      ]
      for (const refused of refusals) {
        t.match(refused, { status: 503, code: 'ServiceUnavailable', headers: { connection: 'close' } })
        t.match(refused.body, /kept by another server.*must reach the same server/)
      }
      const listed = await two.send('GET', '/shared/k', { query: { uploadId } })
      t.match(listed, { status: 200, body: /<PartNumber>1<\/PartNumber>/ })
      t.notMatch(listed.body, /<PartNumber>2<\/PartNumber>/)
      await two.state.uploads.sweep(Date.now() + 60_000)
      t.equal((await one.send('POST', '/shared/k', complete)).status, 200)
      t.equal((await two.send('GET', '/shared/k')).body, 'first')
      t.match(await two.send('POST', '/shared/k', complete), { status: 200 }, 'either one repeats the answer')
    })

    await t.test('an upload that is aborted at the other proxy has ended at both', async (t) => {
      const uploadId = await begin(one, 'gone')
      await one.send('PUT', '/shared/gone', { query: { uploadId, partNumber: '1' }, body: 'x' })
      t.equal((await two.send('DELETE', '/shared/gone', { query: { uploadId } })).status, 204)
      for (const proxy of [one, two]) {
        const refused = await proxy.send('PUT', '/shared/gone', { query: { uploadId, partNumber: '2' }, body: 'x' })
        t.match(refused, { status: 404, code: 'NoSuchUpload' })
      }
      t.ok(existsSync(join(one.data, 'staging', uploadId)), 'its bytes wait for the sweep of the proxy that has them')
    })
  })
}
