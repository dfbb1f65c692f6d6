import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { type Addressing, addressing } from '../../../src/http/addressing.js'
import { createReader } from '../../../src/http/read-request.js'
import { defaultLimits } from '../../../src/server/limits.js'

function read(host: string | undefined, url: string, hosts: Addressing, more: Record<string, unknown> = {}) {
  const { headers, ...rest } = more as { headers?: Record<string, string> }
  const incoming = {
    method: 'GET',
    url,
    headers: { ...(host !== undefined && { host }), ...headers },
    rawHeaders: [],
    socket: { remoteAddress: '127.0.0.1' },
    ...rest,
  } as unknown as IncomingMessage
  return createReader(hosts, defaultLimits).read(incoming, 'ID')
}

const domains = addressing({ domains: ['S3.Example.com.', 'example.com', 'localhost'] })

t.test('where the bucket stands', async (t) => {
  const cases: [host: string | undefined, url: string, bucket: string | undefined, key: string | undefined][] = [
    ['s3.example.com', '/photos/a', 'photos', 'a'],
    ['photos.s3.example.com', '/a/b', 'photos', 'a/b'],
    ['photos.s3.example.com', '/', 'photos', undefined],
    ['photos.s3.example.com:9000', '/a', 'photos', 'a'],
    ['Photos.S3.EXAMPLE.com.', '/A', 'photos', 'A'],
    ['my.dotted.bucket.s3.example.com', '/a', 'my.dotted.bucket', 'a'],
    ['photos.localhost:1', '/a', 'photos', 'a'],
    ['s3.example.com:9000', '/', undefined, undefined],
    ['photos.s3.example.org', '/bucket/a', 'bucket', 'a'],
    ['notlocalhost', '/bucket/a', 'bucket', 'a'],
    ['[::1]:9000', '/bucket/a', 'bucket', 'a'],
    [undefined, '/bucket/a', 'bucket', 'a'],
    ['photos.s3.example.com', '/-/live', 'photos', '-/live'],
    ['s3.example.com', '/-/live', undefined, undefined],
    ['photos.s3.example.com', '/photos/a', 'photos', 'photos/a'],
    ['photos.s3.example.com', '/%C3%A9?x=y', 'photos', 'é'],
    ['photos.s3.example.com', 'http://other.s3.example.com/a', 'photos', 'a'],
  ]
  for (const [host, url, bucket, key] of cases) {
    const head = read(host, url, domains)
    const resource = bucket === undefined ? 'service' : key === undefined ? 'bucket' : 'object'
    t.match(head, { bucket, key, resource }, `${host} ${url}`)
    if (bucket === undefined) t.equal(head.bucket, undefined)
  }
  t.match(read('photos.s3.example.com', '/bucket/a', addressing({})), { bucket: 'bucket', key: 'a' }, 'no domains')
  t.throws(() => read('.s3.example.com', '/a', domains), { code: 'InvalidBucketName' })
  t.throws(() => read('photos.s3.example.com', `/${'a'.repeat(1025)}`, domains), { code: 'KeyTooLongError' })
  const longest = 'ä'.repeat(512)
  t.match(read('photos.s3.example.com', `/${encodeURI(longest)}`, domains), { key: longest }, '1024 bytes are a key')
  const mounted = { originalUrl: '/mount/a?b', baseUrl: '/mount' }
  t.match(read('photos.s3.example.com', '/a?b', domains, mounted), { bucket: 'photos', key: 'a', rawPath: '/mount/a' })
  for (const domain of ['127.0.0.1', '[::1]', 's3.example.com:9000', 'a_b', '', '-a.example'])
    t.throws(() => addressing({ domains: [domain] }), TypeError, domain)
})
t.test('a path names a bucket and a key, decoded once and not cleaned', async (t) => {
  const cases: [target: string, bucket: string, key: string | undefined][] = [
    ['/photos/', 'photos', undefined],
    ['/photos//a', 'photos', '/a'],
    ['/photos/../x', 'photos', '../x'],
    ['/photos/a%2Fb%252F', 'photos', 'a/b%2F'],
    ['/Old_Bucket.us/x', 'Old_Bucket.us', 'x'],
  ]
  for (const [target, bucket, key] of cases) t.match(read('localhost', target, addressing({})), { bucket, key }, target)
})

t.test('what no bucket can be called is refused before anybody is asked about it', async (t) => {
  for (const target of ['/a%2Fb/x', '/../x', '/%2e%2e/x', '//x', '/%00abc', '/ab', '/%E2%82%AC%E2%82%AC/x'])
    t.throws(() => read('localhost', target, addressing({})), { code: 'InvalidBucketName' }, target)
  t.throws(
    () => read('localhost', '/ab', addressing({})),
    { message: /3 to 63 lower-case letters/ },
    'the message says what is allowed',
  )
  t.throws(() => read('a/b.example.com', '/x', domains), {
    code: 'InvalidBucketName',
  })
})

t.test('what is wrong with a domain', async (t) => {
  for (const [domain, message] of [
    ['s3.example.com:9000', /^s3\.example\.com:9000 must be a host name alone, without a port/],
    ['127.0.0.1', /^127\.0\.0\.1 is an IP address, below which no bucket can be a host/],
    ['127.0.0.1:9000', /is an IP address/],
    ['[::1]:9000', /is an IP address/],
  ] as const)
    t.throws(() => addressing({ domains: [domain] }), { message }, domain)
})
