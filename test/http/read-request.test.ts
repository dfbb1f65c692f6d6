import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { type Addressing, addressing } from '../../src/http/addressing.js'
import { readRequest } from '../../src/http/read-request.js'
import { defaultLimits } from '../../src/server/limits.js'

function read(target: string, host = 'localhost', by: Addressing = addressing({})) {
  const incoming = { method: 'GET', url: target, headers: { host }, rawHeaders: ['Host', host], socket: {} }
  // No socket is needed to read a head.
  return readRequest(incoming as unknown as IncomingMessage, 'ID', { limits: defaultLimits, addressing: by })
}

t.test('a path names a bucket and a key, decoded once and not cleaned', async (t) => {
  const cases: [target: string, bucket: string, key: string | undefined][] = [
    ['/photos', 'photos', undefined],
    ['/photos/', 'photos', undefined],
    ['/photos//a', 'photos', '/a'],
    ['/photos/../x', 'photos', '../x'],
    ['/photos/a%2Fb%252F', 'photos', 'a/b%2F'],
    ['/Old_Bucket.us/x', 'Old_Bucket.us', 'x'],
  ]
  for (const [target, bucket, key] of cases) t.match(read(target), { bucket, key }, target)
})

t.test('what no bucket can be called is refused before anybody is asked about it', async (t) => {
  for (const target of [
    '/a%2Fb/x',
    '/photos%2Fx',
    '/../x',
    '/%2e%2e/x',
    '//x',
    '/%00abc',
    '/a%20b',
    '/ab',
    '/%E2%82%AC%E2%82%AC/x',
  ])
    t.throws(() => read(target), { code: 'InvalidBucketName' }, target)
  t.throws(() => read('/ab'), { message: /3 to 63 lower-case letters/ }, 'the message says what is allowed')
  t.throws(() => read('/x', 'a/b.example.com', addressing({ domains: ['example.com'] })), { code: 'InvalidBucketName' })
})
