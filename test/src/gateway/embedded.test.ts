import { createHash, randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { ownWire } from '../../../cli/serve/wire/own-wire.js'
import { createLogger } from '../../../common/log.js'
import { portTo } from '../../../common/port-messages.js'
import { openAccountRegistry } from '../../../services/gateway/accounts/account-registry.js'
import { legacy, type QuirkName, quirkNames, startServices } from '../../../services/index.js'
import type { Gateway, UploadAttributes } from '../../../src/api/gateway.js'
import { createGatewayPool } from '../../../src/gateway/account/create-gateway.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { read } from './scripted-gateway.js'

const attributes: UploadAttributes = {
  contentType: 'text/plain; charset=utf-8',
  headers: { 'cache-control': 'max-age=60', 'content-encoding': 'x-none', 'content-language': 'de' },
  // Header values are bytes, one per character.
  metadata: { colour: 'red', shape: Buffer.from('ü ✓').toString('latin1') },
}

const brand = { path: 'gateway', header: 'cloud' }
const log = createLogger({ level: 'silent' })

async function start(t: Test, quirks: readonly QuirkName[], words = brand): Promise<Gateway> {
  const data = temporaryFolder(t)
  const services = await startServices({ data, gateway: { host: '127.0.0.1', port: 0, quirks, brand: words } })
  t.teardown(() => services.stop())
  const wire = quirks.length === 0 ? ownWire({ port: portTo(services.gateway) }) : undefined
  const pool = createGatewayPool({ url: services.gateway.url, wire, brand: words, log })
  t.teardown(() => pool.close())
  const client = pool.for(await services.gateway.credentials())
  await client.ready()
  await client.makeBucket('bucket')
  return client
}

async function put(client: Gateway, key: string, body: Buffer, more: Partial<UploadAttributes> = {}) {
  const upload = client.upload('bucket', key, body.length, { ...attributes, ...more })
  for (let at = 0; at < body.length; at += 65_536) await upload.write(body.subarray(at, at + 65_536))
  return upload.commit(anyOrder())
}

/** One object, seen in every way there is. */
async function roundTrip(t: Test, client: Gateway, key: string, body: Buffer): Promise<void> {
  const checksum = { algorithm: 'CRC32', value: 'AAAAAA==', type: 'FULL_OBJECT' } as const
  const stored = await put(client, key, body, { checksum: () => checksum })
  const download = await client.download('bucket', key)
  const bytes = await read(download)
  const stat = await client.stat('bucket', key)
  const listed = (await client.list('bucket', { prefix: key, delimiter: '', after: '', limit: 1 })).entries[0]
  t.ok(bytes.equals(body), `${key}: bytes`)
  const features = await client.features()
  const kept = features.objectChecksums ? checksum : undefined
  t.same(stored.checksum, kept)
  const known = {
    key,
    size: body.length,
    contentType: attributes.contentType,
    revision: stored.revision,
    lastModified: stored.lastModified,
  }
  for (const [how, object] of Object.entries({
    download: download.object,
    stat,
    listed: listed?.kind === 'object' ? listed.object : undefined,
  })) {
    t.match(object, known, `${key}: ${how}`)
    t.same(object?.checksum, kept, `${key}: ${how}`)
    if (stored.etag !== undefined) t.equal(object?.etag ?? stored.etag, stored.etag, `${key}: ${how} has no other ETag`)
    if (object?.metadata) t.strictSame(object.metadata, attributes.metadata, `${key}: ${how}`)
    if (object?.headers && features.objectHead) t.strictSame(object.headers, attributes.headers, `${key}: ${how}`)
  }
  if (stored.etag !== undefined) t.equal(stored.etag, createHash('md5').update(body).digest('hex'))
  if (body.length <= 10) return
  const part = await client.download('bucket', key, { first: 3, last: body.length - 4 })
  t.ok((await read(part)).equals(body.subarray(3, -3)), `${key}: range`)
  t.match(part.object, { size: body.length, revision: stored.revision })
  const refused = { code: 'InvalidRange', fields: { ActualObjectSize: body.length } }
  await t.rejects(client.download('bucket', key, { first: body.length }), refused)
}

const KEYS = ['plain', 'a/b/c', "sp ace + & = ? # % ' ( ) ~ * ! , ; : @ $", 'ünï/😀/\uffee', '%2F%41']
/** Of each kind that a gateway treats by itself. */
const ODD_KEYS = ['x/', 'x//y', '..', 'back\\slash']

t.test('objects go in and come out, in every mode', async (t) => {
  const modes: (readonly QuirkName[])[] = [[], legacy, ...quirkNames.map((name) => [name])]
  for (const quirks of modes) {
    await t.test(quirks.length > 1 ? 'legacy' : quirks.join() || 'full', async (t) => {
      const client = await start(t, quirks)
      for (const key of KEYS) await roundTrip(t, client, key, randomBytes(key === 'a/b/c' ? 600_000 : 100))
      await roundTrip(t, client, 'empty', Buffer.alloc(0))
      const strict = !(await client.features()).anyKey
      for (const key of ODD_KEYS) {
        t.equal((await client.refusesKey(key)) !== undefined, strict && key !== 'x/', key)
        if (!strict) await roundTrip(t, client, key, Buffer.from(key))
        else if (key !== 'x/') {
          await t.rejects(put(client, key, Buffer.alloc(1)), { code: 'InvalidArgument' }, key)
          t.equal(await client.stat('bucket', key), undefined)
          await t.rejects(client.download('bucket', key), { code: 'NoSuchKey' })
          await client.remove('bucket', key, anyOrder())
        }
      }
      if (quirks.includes('strict-keys')) {
        await t.rejects(put(client, 'plain/below', Buffer.alloc(1)), { code: 'InvalidRequest', message: /cannot hold/ })
        await t.rejects(put(client, 'a/b', Buffer.alloc(1)), { code: 'InvalidRequest', message: /cannot hold/ })
      }
      if (strict) {
        t.ok((await put(client, 'x/', Buffer.alloc(0))).revision)
        await t.rejects(put(client, 'x/', Buffer.alloc(1)), { code: 'InvalidArgument' })
        t.match(await client.stat('bucket', 'x/'), { size: 0, revision: 'marker' })
        t.equal((await read(await client.download('bucket', 'x/'))).length, 0)
      }
    })
  }
})

t.test('another brand is reached by configuration', async (t) => {
  const client = await start(t, [], { path: 'minio', header: 'amz' })
  t.match(await client.features(), { pagedListing: true, objectHead: true })
  await roundTrip(t, client, 'k', Buffer.from('under other words'))
})

/** The bound of the pool. */
const MOST = 1000

t.test('each account logs in once, and again only after it had to make room', async (t) => {
  const data = temporaryFolder(t)
  const services = await startServices({ data, gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const registry = await openAccountRegistry(data)
  t.teardown(() => registry.close())
  const accounts = [await services.gateway.credentials(), await registry.add('second'), await registry.add('third')]
  const between = await Between.start(t, { url: services.gateway.url, ...(await services.gateway.credentials()) })
  const pool = createGatewayPool({ url: between.url, brand, log })
  t.teardown(() => pool.close())
  const logIns = () => between.requests.filter(({ body }) => body.includes('"web.Login"')).length
  const ask = () =>
    Promise.all(
      accounts.flatMap(({ accessKey, secretKey }) =>
        Array.from({ length: 5 }, () => pool.for({ accessKey, secretKey }).listBuckets()),
      ),
    )
  await ask()
  await ask()
  t.equal(logIns(), accounts.length)
  const [{ accessKey, secretKey }] = accounts as [(typeof accounts)[0]]
  const inUse = pool.for({ accessKey, secretKey })
  for (let i = 0; i < MOST; i++) pool.for({ accessKey: `account-${i}`, secretKey: `secret-of-${i}` })
  await inUse.listBuckets()
  t.equal(logIns(), accounts.length, 'a session that is in use stays with its user')
  await ask()
  t.equal(logIns(), 2 * accounts.length)
})
