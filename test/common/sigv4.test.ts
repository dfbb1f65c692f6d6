import fc from 'fast-check'
import t from 'tap'
import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  credentialScope,
  EMPTY_SHA256,
  formatTimestamp,
  presignQuery,
  signature,
  signingKey,
  stringToSign,
  timingSafeEqualHex,
  uriEncode,
} from '../../src/common/sigv4.js'
import { example } from '../support/sign/sign-head.js'

const scope = credentialScope('20130524', 'us-east-1', 's3')
const key = signingKey(example.secretAccessKey, '20130524', 'us-east-1', 's3')
const host: [string, string] = ['Host', 'examplebucket.s3.amazonaws.com']
const date: [string, string] = ['x-amz-date', example.timestamp]

// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, "Examples: Signature calculations"
const vectors = [
  {
    name: 'GET object with Range',
    method: 'GET',
    path: '/test.txt',
    query: '',
    headers: [host, date, ['range', 'bytes=0-9'], ['x-amz-content-sha256', EMPTY_SHA256]],
    signedHeaders: 'host;range;x-amz-content-sha256;x-amz-date',
    payloadHash: EMPTY_SHA256,
    signature: 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  },
  {
    name: 'PUT object',
    method: 'PUT',
    path: '/test$file.text',
    query: '',
    headers: [
      host,
      date,
      ['Date', 'Fri, 24 May 2013 00:00:00 GMT'],
      ['x-amz-storage-class', 'REDUCED_REDUNDANCY'],
      ['x-amz-content-sha256', '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072'],
    ],
    signedHeaders: 'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
    payloadHash: '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
    signature: '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  },
  {
    name: 'GET bucket lifecycle',
    method: 'GET',
    path: '/',
    query: 'lifecycle',
    headers: [host, date, ['x-amz-content-sha256', EMPTY_SHA256]],
    signedHeaders: 'host;x-amz-content-sha256;x-amz-date',
    payloadHash: EMPTY_SHA256,
    signature: 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  },
  {
    name: 'GET bucket (list objects)',
    method: 'GET',
    path: '/',
    query: 'max-keys=2&prefix=J',
    headers: [host, date, ['x-amz-content-sha256', EMPTY_SHA256]],
    signedHeaders: 'host;x-amz-content-sha256;x-amz-date',
    payloadHash: EMPTY_SHA256,
    signature: '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  },
] as const

for (const vector of vectors) {
  t.test(`AWS's vector: ${vector.name}`, async (t) => {
    const canonical = canonicalRequest({
      ...vector,
      path: canonicalPath(vector.path),
      query: canonicalQuery(vector.query),
    })
    t.equal(signature(key, stringToSign(ALGORITHM, example.timestamp, scope, canonical)), vector.signature)
  })
}

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
