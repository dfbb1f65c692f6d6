import t, { type Test } from 'tap'
import { bytes } from '../../support/content/content.js'
import { controlKeys } from '../../support/content/keys.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { send, targetOf } from '../../support/sign/send.js'

/**
 * What MinIO and FS3 do in their versions and layouts, each as quirks of the embedded gateway;
 * test/clients/real-gateway drives MinIO itself, with its folder objects and its clients.
 */
const servers = {
  'one folder, 2021': 'legacy',
  'several drives, 2021': 'legacy,erasure-folders,root-name-listings',
  'one folder, 2019': 'legacy,capital-service-word,line-feed-keys,folder-clash-texts',
  'one folder, FS3 2.0': 'legacy,fs3-texts',
}

const ACCOUNT = { accessKey: 'owner', secretKey: 'owner-secret' }

for (const [name, quirks] of Object.entries(servers)) {
  t.test(name, async (t) => {
    const account = ['--gateway-access-key', ACCOUNT.accessKey, '--gateway-secret-key', ACCOUNT.secretKey]
    const server = await startDealgate(t, { mode: 'legacy', args: ['--gateway-quirks', quirks, ...account] })
    const service = quirks.includes('capital-service-word') ? 'Web' : 'web'
    const other = new GatewayUser({ url: server.gateway, ...ACCOUNT }, { service })
    await other.login()
    t.equal((await fetch(`${server.endpoint}/-/ready`)).status, 200)
    await t.test('missing objects', (t) => missing(t, server))
    await t.test('folder objects made elsewhere', (t) => foldersOfOthers(t, server, other))
    await t.test('names at the root', (t) => rootNames(t, server))
    await t.test('fs.json', (t) => fsJson(t, server, other))
    await t.test('control characters', (t) => controls(t, server, other, quirks))
    await t.test('an object and a folder of one name', (t) => clashes(t, server))
  })
}

async function keysIn(server: Dealgate, bucket: string, query = ''): Promise<string[]> {
  const answer = await send(server, { method: 'GET', target: `/${bucket}?list-type=2&encoding-type=url${query}` })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`)
  const names = /<(?:Key|Prefix)>([^<]+)<\/(?:Key|Prefix)>/g
  const listed = answer.body.toString().replace(/<Prefix>[^<]*<\/Prefix><KeyCount>/, '')
  return [...listed.matchAll(names)].map(([, name = '']) => decodeURIComponent(name.replaceAll('+', ' ')))
}

async function status(server: Dealgate, method: string, bucket: string, key = '', body?: string): Promise<number> {
  const target = key === '' ? `/${bucket}` : targetOf(bucket, key)
  return (await send(server, { method, target, ...(body !== undefined && { body: Buffer.from(body) }) })).status
}

/** All of them ask for an object that is not there. */
async function missing(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'missing'
  await status(server, 'PUT', bucket)
  for (const key of ['none', 'none/x', 'none/']) {
    t.equal(await status(server, 'HEAD', bucket, key), 404, key)
    t.match(await send(server, { method: 'GET', target: targetOf(bucket, key) }), { status: 404, code: 'NoSuchKey' })
    const tags = await send(server, { method: 'GET', target: targetOf(bucket, key, 'tagging') })
    t.match(tags, { status: 404, code: 'NoSuchKey' }, 'tags')
  }
  const from = { 'x-amz-copy-source': `/${bucket}/none` }
  const copied = await send(server, { method: 'PUT', target: targetOf(bucket, 'copy'), headers: from })
  t.match(copied, { status: 404, code: 'NoSuchKey' })
  const create = { method: 'PUT', target: targetOf(bucket, 'd/new'), headers: { 'if-none-match': '*' } }
  t.equal((await send(server, { ...create, body: Buffer.from('x') })).status, 200, 'a conditional create')
  t.match(await send(server, { ...create, body: Buffer.from('other') }), { status: 412, code: 'PreconditionFailed' })
  t.equal(await status(server, 'DELETE', bucket, 'd/new'), 204)
  t.equal(await status(server, 'HEAD', bucket, 'd/new'), 404, 'removed')
  const unmatched = { method: 'PUT', target: targetOf(bucket, 'new'), headers: { 'if-match': '"a"' } }
  t.match(await send(server, { ...unmatched, body: Buffer.from('x') }), { status: 404, code: 'NoSuchKey' })
  const upload = { method: 'PUT', target: '/no-such-bucket/key', body: Buffer.from('x') }
  t.match(await send(server, upload), { status: 404, code: 'NoSuchBucket' })
  t.equal(await status(server, 'DELETE', bucket), 204)
}

/** As `aws s3 rb --force` does it, in the order of a listing. */
async function foldersOfOthers(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  const bucket = 'others'
  await other.call('web.MakeBucket', { bucketName: bucket })
  for (const key of ['made/', 'deep/er/', 'filled/', 'filled/x', 'filled/sub/', 'filled/sub/y'])
    await other.put(bucket, key, key.endsWith('/') ? Buffer.of() : Buffer.from('x'))
  for (const key of ['made/', 'deep/er/']) {
    t.equal(await status(server, 'HEAD', bucket, key), 200, key)
    const got = await send(server, { method: 'GET', target: targetOf(bucket, key) })
    t.match([got.status, got.body.length], [200, 0], key)
  }
  for (const key of ['none/', 'deep/']) t.equal(await status(server, 'HEAD', bucket, key), 404, key)
  t.same(await keysIn(server, bucket, '&delimiter=/'), ['deep/', 'filled/', 'made/'], 'with a delimiter')
  t.same(await keysIn(server, bucket, '&prefix=made/&delimiter=/'), ['made/'])
  const keys = await keysIn(server, bucket)
  t.same(
    keys.filter((key) => !/^filled\/(sub\/)?$/.test(key)),
    ['deep/er/', 'filled/sub/y', 'filled/x', 'made/'],
  )
  const grouped = await keysIn(server, bucket, '&delimiter=er')
  t.same(grouped, [...keys.filter((key) => !key.startsWith('deep')), 'deep/er'], 'with another delimiter')
  t.equal(await status(server, 'DELETE', bucket, 'filled/'), 204)
  t.equal(await status(server, 'DELETE', bucket, 'filled/sub/'), 204)
  for (const key of ['filled/x', 'filled/sub/y'])
    t.equal(await status(server, 'HEAD', bucket, key), 200, `${key} stays`)
  for (const key of await keysIn(server, bucket)) t.equal(await status(server, 'DELETE', bucket, key), 204, key)
  t.equal(await status(server, 'DELETE', bucket), 204, 'the bucket goes at the first attempt')
}

/** Names at the root of the bucket, which the gateway shows wrongly to a listing of exactly that prefix. */
async function rootNames(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'root-names'
  await status(server, 'PUT', bucket)
  const keys = ['k', 'k1', 'k10', 'photos/', 'x/y', '.a', '😀']
  for (const key of keys) t.equal(await status(server, 'PUT', bucket, key, key.endsWith('/') ? '' : 'x'), 200, key)
  for (const key of keys) {
    t.equal(await status(server, 'HEAD', bucket, key), 200, key)
    const listed = await keysIn(server, bucket, `&prefix=${encodeURIComponent(key)}`)
    t.same(listed, keys.filter((other) => other.startsWith(key)).sort(), `listed with the prefix ${key}`)
  }
  t.same(await keysIn(server, bucket, '&prefix=x&delimiter=/'), ['x/'])
  t.same(await keysIn(server, bucket, '&prefix=photos'), ['photos/'])
  for (const key of keys) t.equal(await status(server, 'DELETE', bucket, key), 204, key)
  t.equal(await status(server, 'DELETE', bucket), 204)
}

async function fsJson(t: Test, server: Dealgate, other: GatewayUser): Promise<void> {
  const bucket = 'metadata'
  await other.call('web.MakeBucket', { bucketName: bucket })
  for (const key of ['fs.json', 'empty/', 'z/fs.json'])
    await other.put(bucket, key, key.endsWith('/') ? Buffer.of() : Buffer.from('{}'))
  t.same(await keysIn(server, bucket), ['empty/', 'fs.json', 'z/fs.json'])
  t.same(await keysIn(server, bucket, '&prefix=none/'), [])
  t.equal(await status(server, 'HEAD', bucket), 200)
  t.equal(await status(server, 'HEAD', bucket, 'none'), 404)
  t.equal(await status(server, 'GET', bucket, 'none/x'), 404)
  t.equal(await status(server, 'PUT', bucket, 'new', 'x'), 200)
  for (const key of await keysIn(server, bucket)) t.equal(await status(server, 'DELETE', bucket, key), 204, key)
  t.equal(await status(server, 'DELETE', bucket), 204)
}

async function controls(t: Test, server: Dealgate, other: GatewayUser, quirks: string): Promise<void> {
  const bucket = 'controls'
  await status(server, 'PUT', bucket)
  for (const key of controlKeys) {
    const target = targetOf(bucket, key)
    const body = bytes(key, 50)
    const put = await send(server, { method: 'PUT', target, body })
    if (key.includes('\n') && quirks.includes('line-feed-keys')) {
      t.match(put, { status: 400, code: 'InvalidArgument', message: /it has a line feed/ })
      t.equal(await status(server, 'HEAD', bucket, key), 404)
      continue
    }
    t.equal(put.status, 200, JSON.stringify(key))
    const theirs = bytes(`theirs ${key}`, 50)
    t.same((await send(server, { method: 'GET', target })).body, body)
    await other.put(bucket, encodeURIComponent(key), theirs)
    const got = await send(server, { method: 'GET', target })
    t.same(got.body, theirs, 'written elsewhere')
    t.equal(got.headers['content-disposition'], undefined, 'nothing that the gateway made up')
    t.not(got.headers.etag, put.headers.etag)
    t.equal(await status(server, 'DELETE', bucket, key), 204)
  }
  t.same(await keysIn(server, bucket), [])
}

async function clashes(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'clashes'
  await status(server, 'PUT', bucket)
  await status(server, 'PUT', bucket, 'a', 'x')
  await status(server, 'PUT', bucket, 'd/x', 'x')
  for (const key of ['a/b', 'd']) {
    const answer = await send(server, { method: 'PUT', target: targetOf(bucket, key), body: Buffer.from('x') })
    t.match(answer, { status: 400, code: 'InvalidRequest' }, `${key}: ${answer.message}`)
  }
}
