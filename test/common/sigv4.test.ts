import fc from 'fast-check'
import t from 'tap'
import {
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  formatTimestamp,
  presignQuery,
  timingSafeEqualHex,
  uriEncode,
} from '../../src/common/sigv4.js'
import { example } from '../support/sign/sign-head.js'

t.test("AWS's vector: presigned GET", async (t) => {
  const request = {
    brand: 'Amz',
    method: 'GET',
    path: '/test.txt',
    host: 'examplebucket.s3.amazonaws.com',
    accessKeyId: example.accessKeyId,
    secretAccessKey: example.secretAccessKey,
    region: 'us-east-1',
    expires: 86400,
    now: new Date(example.time),
  } as const
  const query = new URLSearchParams(presignQuery(request))
  t.equal(query.get('X-Amz-Signature'), 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
  t.equal(query.get('X-Amz-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request')
  const cloud = new URLSearchParams(presignQuery({ ...request, brand: 'Cloud', region: '' }))
  t.equal(cloud.get('X-Cloud-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524//s3/aws4_request')
  t.notOk(cloud.has('X-Amz-Date'))
})

t.test('encoding', async (t) => {
  t.equal(uriEncode("a b/c~d'(é😀)*!"), 'a%20b%2Fc~d%27%28%C3%A9%F0%9F%98%80%29%2A%21')
  t.equal(uriEncode('a b/c', true), 'a%20b/c')
  t.equal(canonicalPath(''), '/')
  t.equal(canonicalPath('//a/../b/./'), '//a/../b/./')
  t.equal(canonicalPath('/%e2%82%AC+%41%2f!'), '/%E2%82%AC%2BA/%21')
  t.equal(canonicalPath('/\u00e9'), '/%E9', 'a bare byte beyond ASCII')
  t.equal(canonicalPath('/100%/%zz'), '/100%25/%25zz')
})

t.test('any text survives: what is encoded once is its own canonical form', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const encoded = uriEncode(text, true)
      return decodeURIComponent(encoded) === text && (text === '' || canonicalPath(encoded) === encoded)
    }),
  )
})

t.test('the canonical query', async (t) => {
  t.equal(canonicalQuery('b&a=2&a=1&A=&c=%7e'), 'A=&a=1&a=2&b=&c=~')
  t.equal(canonicalQuery('acl'), canonicalQuery('acl='))
  t.equal(canonicalQuery('&&a=x+y&'), 'a=x%20y')
  t.equal(canonicalQuery('k=a=b'), 'k=a%3Db')
  t.equal(canonicalQuery('a-b=1&a=1'), 'a=1&a-b=1', 'by name first, not by the joined text')
  t.equal(
    canonicalQuery('%61=1&s=2', (name) => name === 's'),
    'a=1',
  )
})

t.test('headers: repeats are joined, runs of spaces are one', async (t) => {
  const canonical = canonicalRequest({
    method: 'GET',
    path: '/',
    query: '',
    headers: [
      ['X-A', '  one   two '],
      ['x-a', 'three'],
      ['Unsigned', 'x'],
    ],
    signedHeaders: 'x-a',
    payloadHash: 'P',
  })
  t.equal(canonical, 'GET\n/\n\nx-a:one two,three\n\nx-a\nP')
})

t.test('times and comparison', async (t) => {
  t.equal(formatTimestamp(new Date('2026-11-21T08:05:09.999Z')), '20261121T080509Z')
  t.ok(timingSafeEqualHex('ab', 'ab'))
  t.notOk(timingSafeEqualHex('ab', 'ac'))
  t.notOk(timingSafeEqualHex('ab', 'abc'), 'unequal lengths are no exception')
  t.notOk(timingSafeEqualHex('é', 'ab'))
})
