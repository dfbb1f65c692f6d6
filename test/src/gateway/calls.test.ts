import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import t from 'tap'
import { usableUntil } from '../../../src/gateway/account/session.js'
import { brandNames, neutralBrand } from '../../../src/gateway/brand.js'
import { isNotConnected } from '../../../src/gateway/errors.js'
import { whyUnfit } from '../../../src/gateway/keys.js'
import { ConnectionPool } from '../../../src/gateway/transport/connection-pool.js'
import { listen } from '../../support/server/listen.js'
import { until } from '../../support/waiting.js'
import { ALL_FEATURES, RpcFailure, read, scriptedGateway as start, withFeatures } from './scripted-gateway.js'

t.test('a key keeps every byte on its way, and a bucket is one segment', async (t) => {
  const { uploadPath, downloadPath } = brandNames(neutralBrand)
  t.equal(uploadPath('b', 'a b/ü?#%+/..//'), '/gateway/upload/b/a%20b/%C3%BC%3F%23%25%2B/..//')
  t.equal(downloadPath('b/c', "!'()*~-_."), '/gateway/download/b%2Fc/%21%27%28%29%2A~-_.')
  t.throws(() => brandNames({ path: 'a/b', header: 'cloud' }), TypeError)
})
t.test('keys that a gateway of files cannot hold are named with the reason', async (t) => {
  for (const key of ['', '/a', 'a//b', 'a//', '.', '..', 'a/../b', 'a/.', './', 'a\\b', 'a\0', `a/${'é'.repeat(128)}`])
    t.type(whyUnfit(key), 'string', JSON.stringify(key))
  for (const key of ['a', 'a/b', 'a/', '...', '.a', 'a..', 'a ?#%+', '😀'.repeat(63)])
    t.equal(whyUnfit(key), undefined, key)
})

t.test('a token is used for as long as it says, by whichever clock', async (t) => {
  const now = Date.UTC(2026, 0, 1)
  const jwt = (claims: object) => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`
  const s = now / 1000
  t.equal(usableUntil(jwt({ exp: s + 3600 }), now), now + 3585_000)
  t.equal(usableUntil(jwt({ exp: s + 60 }), now), now + 45_000)
  t.equal(usableUntil(jwt({ iat: s - 5000, exp: s - 4940 }), now), now + 45_000, 'the gateway clock is behind')
  t.equal(usableUntil(jwt({ exp: s - 10 }), now), now + 20_000)
  for (const odd of ['opaque', 'a.b.c', jwt({ exp: 'x' }), '..']) t.equal(usableUntil(odd, now), now + 20_000)
})

t.test('calls that come together log in once', async (t) => {
  const gateway = await start(t, { rpc: { 'web.ListBuckets': () => ({ buckets: null }) } })
  const client = gateway.client()
  t.strictSame((await Promise.all(Array.from({ length: 20 }, () => client.listBuckets())))[7], [])
  t.equal(gateway.count('web.Login'), 1)
  t.match(gateway.calls[0]?.params, { username: 'access', password: 'secret-key' })
  t.ok(gateway.calls.every(({ headers }) => /Mozilla/.test(headers['user-agent'] ?? '')))
  const isBearer = ({ headers }: { headers: IncomingHttpHeaders }) => headers.authorization === 'Bearer login-1'
  t.ok(gateway.calls.every((call) => call.method === 'web.Login' || isBearer(call)))
})

t.test('a session that has ended is renewed once, by 401 or by text', async (t) => {
  for (const form of ['401', 'text']) {
    const gateway = await start(t, {
      rpc: { 'web.ListBuckets': () => ({ buckets: [{ name: 'abc', creationDate: '2026-01-01T00:00:00Z' }] }) },
      before({ headers }, response) {
        if (headers.authorization !== 'Bearer login-1') return false
        if (form === '401') response.writeHead(401).end()
        else {
          response.setHeader('content-type', 'application/json')
          response.end('{"error":{"code":0,"message":"Authentication failed, check your access credentials"},"id":1}')
        }
        return true
      },
    })
    t.equal((await gateway.client().listBuckets())[0]?.name, 'abc')
    t.equal(gateway.count('web.Login'), 2)
    t.equal(gateway.count('web.ListBuckets'), 2)
  }
})

t.test('a gateway that refuses for ever is asked twice', async (t) => {
  const gateway = await start(t, {
    before: ({ method }, response) => method !== 'web.Login' && !!response.writeHead(401).end(),
  })
  await t.rejects(gateway.client().listBuckets(), { code: 'AccessDenied' })
  t.equal(gateway.count('web.ListBuckets'), 2)
})

t.test('a wrong gateway key pair is said to be that', async (t) => {
  const gateway = await start(t, {
    rpc: {
      'web.Login': () => {
        throw new RpcFailure('The access key ID you provided does not exist in our records')
      },
    },
  })
  await t.rejects(gateway.client().ready(), { code: 'ServiceUnavailable', message: /does not accept the key pair/ })
  t.equal(gateway.count('web.Login'), 1)
})

t.test('what is no answer of this interface is an error', async (t) => {
  let answer: (response: ServerResponse) => void = () => {}
  const gateway = await start(t, {
    before({ method }, response) {
      if (method === 'web.Login') return false
      answer(response)
      return true
    },
  })
  const json = { 'content-type': 'application/json' }
  const client = gateway.client()
  for (const [text, type] of [
    ['<html>console</html>', 'text/html'],
    ['{"jsonrpc":"2.0","id":1}'],
    ['{"result":{"buckets"'],
    ['{"result":{"buckets":[{"nam":1}]}}'],
    [JSON.stringify({ result: { x: 'x'.repeat(17 * 1024 * 1024) } })],
  ] as const) {
    answer = (response) => response.writeHead(200, { ...json, ...(type && { 'content-type': type }) }).end(text)
    await t.rejects(client.listBuckets(), { code: 'InternalError', ...(type && { message: /address/ }) })
  }
  const hasty = gateway.client({ timeoutMs: 300, idleMs: 300 })
  answer = () => {}
  await t.rejects(hasty.listBuckets(), { code: 'ServiceUnavailable', message: /too long/ })
  answer = (response) => response.writeHead(200, json).write('{"result"')
  await t.rejects(hasty.listBuckets(), { code: 'ServiceUnavailable' })
  answer = (response) => response.writeHead(503).end()
  await t.rejects(client.listBuckets(), { code: 'ServiceUnavailable' })
})
t.test('a reading call is sent again when the connection was lost, a changing one is not', async (t) => {
  let losses = 0
  const gateway = await start(t, {
    rpc: { 'web.ListBuckets': () => ({ buckets: [] }) },
    before({ method }, response) {
      if (method === 'web.Login' || losses > 0) return false
      losses++
      response.destroy()
      return true
    },
  })
  t.strictSame(await gateway.client().listBuckets(), [])
  losses = 0
  await t.rejects(gateway.client().deleteBucket('abc'), { code: 'ServiceUnavailable' })
  t.equal(gateway.count('web.DeleteBucket'), 1)
})

t.test('features are those the gateway advertises, none if it knows no such thing', async (t) => {
  const full = await start(t, { rpc: withFeatures(...ALL_FEATURES, 'deal-tokens', 'state-epoch') })
  t.match(await full.client().features(), {
    ...{ pagedListing: true, objectHead: true, exactRemove: true, anyKey: true, fixedBuckets: false },
    ...{ dealTokens: true, dealStatus: false, offlineDeals: false, writeFences: true, storeIds: true },
  })
  const none = await start(t, {
    rpc: {
      'web.ServerInfo': () => {
        throw new RpcFailure('rpc: can\'t find method "web.ServerInfo"')
      },
    },
  })
  t.match(await none.client().features(), { pagedListing: false, objectHead: false, exactRemove: false, anyKey: false })
  const failing = await start(t, {
    before: ({ method }, response) => method === 'web.ServerInfo' && !!response.writeHead(500).end(),
  })
  await t.rejects(failing.client().features(), { code: 'InternalError' }, 'a failure is not taken for a legacy gateway')
})

t.test('a bucket exists unless one of the texts says no', async (t) => {
  let text = ''
  const gateway = await start(t, {
    rpc: {
      'web.ListObjects': () => {
        if (text) throw new RpcFailure(text)
        return { objects: null, writable: false }
      },
    },
  })
  const client = gateway.client()
  t.equal(await client.bucketExists('abc'), true)
  text = 'Bucket not found: abc'
  t.equal(await client.bucketExists('abc'), false)
  await t.rejects(client.stat('abc', 'k'), { code: 'NoSuchBucket' })
  await t.rejects(client.list('abc', { prefix: '//', delimiter: '', after: '', limit: 1 }), { code: 'NoSuchBucket' })
  text = 'Do not have enough permissions to access this resource'
  await t.rejects(client.bucketExists('abc'), { code: 'AccessDenied' })
  text = 'Object name invalid: abc#x'
  t.strictSame(await client.list('abc', { prefix: 'x', delimiter: '', after: '', limit: 1 }), {
    entries: [],
    truncated: false,
  })
})

t.test('a URL token is shared, used within its life and renewed once when refused', async (t) => {
  let clock = Date.now()
  const facts = { 'x-cloud-generation': '1', 'x-cloud-last-modified': '2026-01-01T00:00:00.5Z', 'content-length': 2 }
  const seen: string[] = []
  const gateway = await start(t, {
    rpc: withFeatures(...ALL_FEATURES),
    rest(request, response) {
      const token = new URL(request.url ?? '', 'http://x').searchParams.get('token') ?? ''
      seen.push(token)
      if (token === 'url-3') response.writeHead(403).end('Authentication failed, check your access credentials')
      else response.writeHead(200, facts).end('ok')
    },
  })
  const client = gateway.client({ now: () => clock })
  const get = async () => (await read(await client.download('b', 'k'))).toString()
  t.strictSame(await Promise.all([get(), get(), get()]), ['ok', 'ok', 'ok'])
  clock += 30_000
  await get()
  clock += 30_000
  t.equal(await get(), 'ok')
  t.strictSame(seen, ['url-1', 'url-1', 'url-1', 'url-2', 'url-3', 'url-4'])
})

t.test('whether a connection was made', async (t) => {
  const failure = (url: string) => {
    const pool = new ConnectionPool(new URL(url))
    t.teardown(() => pool.close())
    return pool.send({ method: 'POST', path: '/', headers: {} }).answered.catch((error: unknown) => error)
  }
  t.ok(isNotConnected(await failure('http://127.0.0.1:1')), 'refused')
  const url = await listen(
    createServer((request) => request.socket.destroy()),
    t,
  )
  t.notOk(isNotConnected(await failure(url)), 'lost')
  const failed = (code: string, syscall: string) => Object.assign(new Error(code), { code, syscall })
  t.ok(isNotConnected(failed('ENOTFOUND', 'getaddrinfo')), 'no such host')
  t.notOk(isNotConnected(failed('ETIMEDOUT', 'read')))
  const each = [failed('EHOSTUNREACH', 'connect'), failed('ECONNREFUSED', 'connect')]
  t.ok(isNotConnected(new AggregateError(each)), 'no address answers')
  t.notOk(isNotConnected(new AggregateError([])))
})

t.test('a deal that was given up before it was sent is not made', async (t) => {
  const gateway = await start(t, {})
  const client = gateway.client()
  const reason = new Error('stopped')
  const deal = { method: 'POST', endpoint: 'deal', bucket: 'abc', key: 'k', access: 'read' } as const
  await t.rejects(client.call({ ...deal, signal: AbortSignal.abort(reason) }), { code: 'ServiceUnavailable' })
  t.notOk('syscall' in reason, 'others may have the reason, too')
})

t.test('calls are bounded, wait in their order, and not for ever', async (t) => {
  const held: ServerResponse[] = []
  const gateway = await start(t, {
    before({ method }, response) {
      const isHeld = method === 'web.ListBuckets'
      if (isHeld) held.push(response)
      return isHeld
    },
  })
  const poolOf = (timeoutMs: number) => {
    const pool = gateway.pool({ timeoutMs })
    const client = pool.for({ accessKey: 'access', secretKey: 'secret-key' })
    const waiting = () => pool.usage().connections.find(({ use }) => use === 'shared')?.waiting
    return { client, waiting }
  }
  const answer = (response: ServerResponse) =>
    response.setHeader('content-type', 'application/json').end('{"result":{"buckets":[]}}')

  const { client, waiting } = poolOf(60_000)
  const all = Array.from({ length: 100 }, () => client.listBuckets())
  await until('64 calls are sent', () => held.length === 64)
  t.equal(waiting(), 36)
  answer(held.shift() as ServerResponse)
  await until('the next one is sent', () => held.length === 64)
  t.equal(waiting(), 35)
  for (let left = 99; left > 0; left--) {
    await until('a call is sent', () => held.length > 0)
    answer(held.shift() as ServerResponse)
  }
  t.equal((await Promise.all(all)).length, 100)
  t.equal(waiting(), 0)

  const hasty = poolOf(300)
  const failed = await Promise.allSettled(Array.from({ length: 70 }, () => hasty.client.listBuckets()))
  for (const outcome of failed) t.match(outcome, { status: 'rejected', reason: { code: 'ServiceUnavailable' } })
  t.equal(hasty.waiting(), 0)
})
