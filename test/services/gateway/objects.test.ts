import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { compareUtf8 } from '../../../common/byte-order.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { Client, connectTo, encodeKey, start, startGateway } from './client.js'

const oddKeys = [
  ...['a', 'a/b', 'a/b/c', 'a/', '/', '//', '/leading', 'trailing/', 'x//y', '.', '..', '../../etc/passwd'],
  ...['a/./b', 'a/../b', 'back\\slash', 'nul\0byte', 'new\nline', 'sp ace', '+%&=?#\'()~*!:;,@$"<>[]{}|^`', '%41'],
  // UTF-16 and most collations of databases have other orders.
  ...['\u{10348}astral', '\uffee high in the BMP', 'ü', 'u\u0308', 'A', 'B', 'a\0', 'a\0b', 'a\x01', 'a b', 'a-', 'a_'],
  ...['long/'.concat('x'.repeat(300), '/', 'y'.repeat(300)), 'k'.repeat(1024), '€'.repeat(341)],
]

async function withBucket(t: Parameters<typeof startGateway>[0], options = {}): Promise<Client> {
  const client = await startGateway(t, options)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  return client
}

t.test('keys are any UTF-8, and none is taken for another', async (t) => {
  const client = await withBucket(t)
  for (const key of oddKeys) {
    const { status } = await client.put('bucket', key, `body of ${key}`)
    t.equal(status, 200, JSON.stringify(key).slice(0, 40))
  }
  for (const key of oddKeys) t.equal((await client.get('bucket', key)).text, `body of ${key}`)
  const sorted = [...oddKeys].sort(compareUtf8)
  t.same(await client.names('bucket', { delimiter: '' }), sorted, 'listed in byte order')
  t.same(await client.names('bucket', { delimiter: '', prefix: 'a\0' }), ['a\0', 'a\0b'])
  let marker = ''
  for (const key of sorted) {
    const page = await client.call('ListObjects', { bucketName: 'bucket', delimiter: '', marker, maxKeys: 1 })
    t.match(page.objects, [{ name: key }], 'page by page')
    marker = page.nextMarker ?? ''
  }
  for (const key of sorted) {
    await client.call('RemoveObject', { bucketName: 'bucket', objects: [key] })
    t.equal((await client.get('bucket', key)).status, 404)
  }
  t.same(await client.names('bucket', { delimiter: '' }), [], 'each removal took one')

  for (const [path, code] of [
    ['bucket/%ff', 'InvalidURI'],
    ['bucket/%zz', 'InvalidURI'],
    [`bucket/${'x'.repeat(1025)}`, 'KeyTooLongError'],
    ['bucket/', 'InvalidArgument'],
    ['no%00bucket/key', 'InvalidBucketName'],
  ] as const) {
    const headers = { ...client.headers(), 'content-length': 0 }
    const answer = await client.send(`/gateway/upload/${path}`, { method: 'PUT', headers })
    t.match(answer, { status: 400, headers: { 'x-cloud-error-code': code } }, path.slice(0, 20))
  }
  const empty = await client.failure('RemoveObject', { bucketName: 'bucket', objects: [''] })
  t.match(empty, { message: 'Invalid arguments specified' })
  const lone = await client.failure('RemoveObject', { bucketName: 'bucket', objects: ['\ud800'] })
  t.equal(lone.code, -32600, 'half a surrogate pair names nothing')
})

t.test('ranges and conditions', async (t) => {
  const client = await withBucket(t)
  for (const [key, body] of [
    ['small', Buffer.from('0123456789')],
    ['large', randomBytes(1_500_000)],
  ] as const) {
    await client.put('bucket', key, body)
    const last = body.length - 1
    for (const [range, first, end] of [
      ['bytes=0-0', 0, 0],
      ['bytes=3-', 3, last],
      ['bytes=-4', last - 3, last],
      ['bytes=-99999999', 0, last],
      ['bytes=5-99999999', 5, last],
    ] as const) {
      const part = await client.get('bucket', key, { range })
      t.match(part, { status: 206, headers: { 'content-range': `bytes ${first}-${end}/${body.length}` } }, range)
      t.ok(part.body.equals(body.subarray(first, end + 1)))
    }
    for (const range of [`bytes=${body.length}-`, 'bytes=-0']) {
      const refused = await client.get('bucket', key, { range })
      t.match(refused, { status: 416, headers: { 'content-range': `bytes */${body.length}` } }, range)
    }
    for (const range of ['bytes=0-0,2-2', 'bytes=5-2', 'items=0-1', 'bytes=-', 'bytes=a-b'])
      t.ok((await client.get('bucket', key, { range })).body.equals(body), range)
    const part = await client.head('bucket', key, { range: 'bytes=1-2' })
    t.match(part, { status: 206, headers: { 'content-length': '2' } })
  }

  const { headers } = await client.head('bucket', 'small')
  const etag = headers.etag as string
  const modified = Date.parse(headers['x-cloud-last-modified'] as string)
  const then = new Date(Math.floor(modified / 1000) * 1000).toUTCString()
  const before = new Date(modified - 10_000).toUTCString()
  for (const [asked, status] of [
    [{ 'if-match': etag }, 200],
    [{ 'if-match': '"other", *' }, 200],
    [{ 'if-match': '"other"' }, 412],
    [{ 'if-match': etag, 'if-unmodified-since': before }, 200],
    [{ 'if-unmodified-since': then }, 200],
    [{ 'if-unmodified-since': before }, 412],
    [{ 'if-none-match': `W/${etag}` }, 304],
    [{ 'if-none-match': '"other"', 'if-modified-since': then }, 200],
    [{ 'if-modified-since': then }, 304],
    [{ 'if-modified-since': before }, 200],
    [{ 'if-modified-since': 'no date' }, 200],
    [{ 'if-range': etag, range: 'bytes=1-1' }, 206],
    [{ 'if-range': '"other"', range: 'bytes=1-1' }, 200],
    [{ 'if-range': then, range: 'bytes=1-1' }, 206],
    [{ 'if-range': before, range: 'bytes=1-1' }, 200],
  ] as [Record<string, string>, number][])
    for (const method of ['GET', 'HEAD'])
      t.equal((await client.get('bucket', 'small', asked, method)).status, status, `${method} ${JSON.stringify(asked)}`)
})

t.test('headers stored with an object come back byte for byte', async (t) => {
  const client = await withBucket(t)
  const latin1 = Buffer.from('na\u00efve \u20ac').toString('latin1')
  const stored = {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'max-age=60',
    'content-disposition': `inline; filename="${latin1}.txt"`,
    'content-encoding': 'gzip',
    'content-language': 'de',
    expires: 'Wed, 21 Oct 2026 07:28:00 GMT',
    'x-cloud-meta-plain': 'value',
    'x-cloud-meta-bytes': `${latin1} \xff\x80`,
    'x-cloud-meta-': 'no name',
  }
  const given = { 'x-cloud-etag': '"0123456789abcdef0123456789abcdef-7"' }
  for (const body of ['small', Buffer.alloc(100_000)]) {
    const up = await client.put('bucket', 'key', body, { ...stored, ...given })
    t.equal(up.headers.etag, given['x-cloud-etag'], 'the ETag is the one given')
    for (const answer of [await client.get('bucket', 'key'), await client.head('bucket', 'key')]) {
      t.match(answer.headers, stored)
      t.equal(answer.headers.etag, given['x-cloud-etag'])
    }
  }
  const overrides = {
    'content-type': 'a/b',
    'content-disposition': 'attachment; filename="€"',
    'cache-control': 'no-cache',
    expires: 'never',
    'content-language': 'fr',
    'content-encoding': 'identity',
  }
  const asked = Object.entries(overrides).map(([name, value]) => `&response-${name}=${encodeURIComponent(value)}`)
  const target = `/gateway/download/bucket/key?token=${client.token}`
  const disposition = Buffer.from(overrides['content-disposition']).toString('latin1')
  const other = await client.send(`${target}${asked.join('')}`)
  t.match(other.headers, { ...overrides, 'content-disposition': disposition })
  const split = await client.send(`${target}&response-expires=a%0d%0ab`)
  t.equal(split.status, 400, 'an override cannot add a header')

  t.equal((await client.put('bucket', 'big', '', { 'x-cloud-meta-a': 'x'.repeat(8178) })).status, 200)
  const larger = await client.put('bucket', 'big', '', { 'x-cloud-meta-a': 'x'.repeat(8179) })
  t.match(larger, { status: 400, headers: { 'x-cloud-error-code': 'MetadataTooLarge' } })
  t.equal((await client.put('bucket', 'tag', '', { 'x-cloud-etag': 'not one' })).status, 400)
})

t.test('a body cut short leaves the old object, and no file', async (t) => {
  const data = temporaryFolder(t)
  const services = await start(data)
  t.teardown(() => services.stop())
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  const headOf = (token: string | undefined, key: string, size: number) =>
    `PUT /gateway/upload/bucket/${key} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${size}\r\n\r\n`
  const objects = join(data, 'gateway', 'objects')
  const files = () => readdirSync(objects, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
  const olds = new Map<string, Buffer>()
  for (const size of [1000, 1_000_000]) {
    const old = randomBytes(size)
    const key = `key-${size}`
    await client.put('bucket', key, old)
    const kept = files().length
    const head = headOf(client.token, key, size)
    const halfClosed = await client.raw(Buffer.concat([Buffer.from(head), Buffer.alloc(size - 1)]), true)
    t.match(halfClosed, /^HTTP\/1.1 400 [\s\S]*You did not provide the number of bytes/, 'ended early')
    await new Promise<void>((resolve) => {
      const socket = connect(services.gateway.port, '127.0.0.1', () => {
        socket.write(Buffer.concat([Buffer.from(head), Buffer.alloc(size >> 1)]), () => socket.resetAndDestroy())
      })
      socket.on('close', () => resolve())
    })
    t.ok((await client.get('bucket', key)).body.equals(old), 'the old object is there')
    await until('only the files that are kept are left', () => files().length === kept)
    olds.set(key, old)
  }
  await services.stop()

  // What is to go through is sent to a gateway that waits longer: here it could stall on a busy machine.
  const hasty = await start(data, { limits: { uploadIdleMs: 1000 } })
  t.teardown(() => hasty.stop())
  const again = await connectTo(hasty)
  const kept = files().length
  for (const [key, old] of olds) {
    const head = headOf(again.token, key, old.length)
    const stalled = await again.raw(Buffer.concat([Buffer.from(head), Buffer.alloc(old.length - 1)]))
    t.match(stalled, /^HTTP\/1.1 400 [\s\S]*timeout period/, 'stalled')
    t.ok((await again.get('bucket', key)).body.equals(old), 'the old object is there')
    await until('only the files that are kept are left', () => files().length === kept)
  }
})

t.test('refusals neither hang nor garble the connection', async (t) => {
  const client = await withBucket(t)
  const request = (target: string, more: string[], body = ''): string =>
    [`PUT ${target} HTTP/1.1`, 'Host: x', ...more, '', body].join('\r\n')
  const auth = `Authorization: Bearer ${client.token}`
  const ask = 'Expect: 100-continue'
  const big = 'Content-Length: 500000000'

  for (const [what, place, headers, status] of [
    ['no permission', 'bucket/key', [big], 403],
    ['bad token', 'bucket/key', ['Authorization: Bearer x', big], 401],
    ['no bucket', 'nothing/key', [auth, big], 404],
    ['bad key', 'bucket/%ff', [auth, big], 400],
    ['no length', 'bucket/key', [auth, 'Transfer-Encoding: chunked'], 400],
  ] as const) {
    const answer = await client.raw(request(`/gateway/upload/${place}`, [ask, ...headers]))
    t.match(answer, new RegExp(`^HTTP/1.1 ${status} `), `${what}: before the body`)
    t.equal(answer.match(/HTTP\/1.1 /g)?.length, 1, 'and once')
  }

  const small = [auth, ask, 'Content-Length: 4', 'Connection: close']
  const leave = await client.raw(request('/gateway/upload/bucket/key', small, 'body'))
  t.match(leave, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/)

  const two =
    request('/gateway/upload/nothing/key', [auth, 'Content-Length: 5'], 'GET /') +
    request('/gateway/upload/bucket/key', [auth, 'Content-Length: 3', 'Connection: close'], 'two')
  const answers = (await client.raw(two)).match(/HTTP\/1.1 \d+/g)
  t.same(answers, ['HTTP/1.1 404', 'HTTP/1.1 200'], 'a small refused body is read away')
  t.equal((await client.get('bucket', 'key')).text, 'two')

  const sent = await client.put('nothing', 'key', Buffer.alloc(3_000_000))
  t.equal(sent.status, 404, 'a large body that is being sent does not hide the answer')
  t.equal(sent.headers.connection, 'close')
})

t.test('share links', async (t) => {
  const client = await withBucket(t, { region: 'somewhere' })
  const host = new URL(client.url).host
  const share = async (object: string, expiry?: unknown): Promise<string> => {
    const { url } = await client.call('PresignedGet', { host, bucket: 'bucket', object, expiry })
    return url.slice(host.length)
  }
  for (const key of ['plain', 'a b/ü//+%?#/']) {
    await client.put('bucket', key, `shared ${key}`)
    const target = await share(key, 60)
    t.match(
      target,
      /\?X-Cloud-Algorithm=AWS4-HMAC-SHA256&X-Cloud-Credential=[^&]*%2Fsomewhere%2Fs3%2Faws4_request&X-Cloud-Date=\d+T\d+Z&X-Cloud-Expires=60&X-Cloud-SignedHeaders=host&X-Cloud-Signature=[0-9a-f]{64}$/,
    )
    t.match(await client.send(target), { status: 200, text: `shared ${key}` })
    t.match(await client.send(target, { method: 'HEAD' }), { status: 200, headers: { 'x-cloud-generation': /./ } })
    t.match(await client.send(target, { headers: { range: 'bytes=900-' } }), { status: 416, text: /InvalidRange/ })
    for (const other of [
      target.replace('/bucket/', '/bucket/x'),
      target.replace('Expires=60', 'Expires=61'),
      target.replace(/.$/, (digit: string) => (digit === '0' ? '1' : '0')),
      `${target}&response-content-type=text/html`,
    ])
      t.match(await client.send(other), { status: 403, text: /SignatureDoesNotMatch/ }, other)
    t.equal((await client.send(target, { method: 'PUT', body: 'x' })).status, 403)
    t.equal((await client.send(target, { headers: { host: 'other' } })).status, 403, 'another host')
  }
  const brief = await share('plain', 1)
  await until('the link has expired', async () => /Request has expired/.test((await client.send(brief)).text))
  t.equal((await client.send('/bucket/plain')).status, 403, 'no link')
  t.equal((await client.send(`/bucket/plain?X-Cloud-Signature=0`)).status, 400, 'half a link')
  for (const expiry of [0, 604800, 604801, undefined])
    t.match(await share('plain', expiry), /X-Cloud-Expires=604800&/, `expiry ${expiry}`)
  t.match(await client.failure('PresignedGet', { host, bucket: 'b', object: 'o', expiry: '60' }), { code: -32600 })
  t.match(await client.failure('PresignedGet', { host, bucket: '', object: 'o' }), { message: /mandatory/ })
})

t.test('policies decide what anybody may do', async (t) => {
  const client = await withBucket(t)
  const stranger = new Client(client.url, 'gateway')
  await client.put('bucket', 'public/x', 'public')
  await client.put('bucket', 'private', 'private')
  const refused = 'Authentication failed, check your access credentials'
  const outcome = (call: Promise<unknown>) => call.catch(({ message }) => message)
  const list = async (prefix: string) => {
    const { objects, writable } = await stranger.call('ListObjects', { bucketName: 'bucket', prefix })
    return [objects.length > 0, writable]
  }
  const state = async (): Promise<Record<string, unknown>> => ({
    get: (await stranger.get('bucket', 'public/x')).status,
    put: (await stranger.put('bucket', 'public/new', 'new')).status,
    list: await outcome(list('public/')),
    remove: await outcome(
      stranger.call('RemoveObject', { bucketName: 'bucket', objects: ['public/new'] }).then(Boolean),
    ),
    root: (await stranger.send('/bucket/public/x')).status,
    elsewhere: [(await stranger.get('bucket', 'private')).status, (await stranger.put('bucket', 'private', '')).status],
  })
  const set = (policy: string, prefix = 'public/') =>
    client.call('SetBucketPolicy', { bucketName: 'bucket', prefix, policy })
  const closed = { get: 403, put: 403, list: refused, remove: refused, root: 403, elsewhere: [403, 403] }
  t.same(await state(), closed)
  await set('readonly')
  t.same(await state(), { ...closed, get: 200, list: [true, false], root: 200 })
  t.equal(await outcome(list('')), refused)
  await set('writeonly')
  t.same(await state(), { ...closed, put: 200, list: [false, true], remove: true })
  await set('readwrite', 'public/*')
  t.same(await state(), { get: 200, put: 200, list: [true, true], remove: true, root: 200, elsewhere: [403, 403] })
  await set('readonly', 'other')
  t.same((await client.call('ListAllBucketPolicies', { bucketName: 'bucket' })).policies, [
    { bucket: 'bucket', prefix: 'other', policy: 'readonly' },
    { bucket: 'bucket', prefix: 'public/', policy: 'readwrite' },
  ])
  await set('none')
  t.same(await state(), closed)
  t.equal(await outcome(set('some')), 'Invalid policy type some')
  t.equal((await stranger.get('no-such-bucket', 'x')).status, 403, 'strangers do not learn what buckets there are')
  t.equal((await stranger.failure('ListObjects', { bucketName: 'no-such-bucket' })).message, refused)
})

t.test('targets reach their object as they are', async (t) => {
  const client = await withBucket(t)
  await client.put('bucket', 'a/../b', 'dots')
  const got = await client.send(`http://any.host/gateway/download/bucket/a/%2E%2e/b?token=${client.token}`)
  t.equal(got.text, 'dots', 'absolute form, nothing resolved')
  t.equal((await client.send(`/gateway/download/bucket/${encodeKey('a/../b')}`)).status, 403, 'no token')
  const bearer = await client.send('/gateway/download/bucket/a/../b', { headers: client.headers() })
  t.equal(bearer.text, 'dots', 'the bearer token will do')
  t.equal((await client.send('/gateway/download/bucket/a/../b?token=wrong')).status, 403)
})
