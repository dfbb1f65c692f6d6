import fc from 'fast-check'
import t from 'tap'
import type { StoredObject } from '../../src/api/store.js'
import { compareUtf8 } from '../../src/common/byte-order.js'
import { listsEtag } from '../../src/common/etags.js'
import { pageSize, wholeNumber } from '../../src/common/query.js'
import { resolveRange } from '../../src/gateway/objects/download-body.js'
import { refuseDemands } from '../../src/plugins/refuse-keys.js'
import { decodeToken, encodeToken, urlEncoded } from '../../src/s3/bucket/list-objects.js'
import { requireBucketName } from '../../src/s3/bucket/owner.js'
import { readAttributes } from '../../src/s3/object/attributes.js'
import { checkConditions, parseRange, READ } from '../../src/s3/object/read-conditions.js'
import { writePrecondition } from '../../src/s3/object/write-conditions.js'

t.test('compareUtf8: the order of the bytes, also beyond the BMP', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 6 }).filter((s) => s.isWellFormed())
  fc.assert(
    fc.property(
      text,
      text,
      (a, b) => Math.sign(compareUtf8(a, b)) === Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))),
    ),
    { numRuns: 3000 },
  )
})

t.test('parseRange and resolveRange', async (t) => {
  const at = (header: string, size: number) => {
    const range = parseRange(header)
    return range && resolveRange(range, size)
  }
  t.same(at('bytes=0-0', 10), { first: 0, last: 0 })
  t.same(at('bytes=2-', 10), { first: 2, last: 9 })
  t.same(at('bytes=-3', 10), { first: 7, last: 9 })
  t.same(at('bytes=-30', 10), { first: 0, last: 9 })
  t.same(at('bytes=5-500', 10), { first: 5, last: 9 })
  t.same(at(' Bytes = 1 - 2 ', 10), { first: 1, last: 2 })
  for (const whole of ['bytes=', 'bytes=-', 'bytes=3-2', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b', ''])
    t.equal(parseRange(whole), undefined, whole)
  for (const outside of ['bytes=10-', 'bytes=10-20', 'bytes=-0'])
    t.throws(() => at(outside, 10), { code: 'InvalidRange', fields: { ActualObjectSize: 10 } }, outside)
  t.throws(() => at('bytes=0-', 0), { code: 'InvalidRange' })
  t.throws(() => at('bytes=-5', 0), { code: 'InvalidRange' })
})

const object = { etag: 'abc', lastModified: '2024-05-01T10:00:00.999999999Z' }
const same = 'Wed, 01 May 2024 10:00:00 GMT'
const before = 'Wed, 01 May 2024 09:59:59 GMT'

t.test('checkConditions: precedence of RFC 9110', async (t) => {
  const check = (headers: Record<string, string>) => checkConditions(headers, object, READ)
  t.equal(check({}), 'ok')
  t.equal(check({ 'if-match': '"abc"' }), 'ok')
  t.equal(check({ 'if-match': 'abc' }), 'ok')
  t.equal(check({ 'if-match': '*' }), 'ok')
  t.equal(check({ 'if-match': '"x", "abc"' }), 'ok')
  t.throws(() => check({ 'if-match': '"x"' }), { code: 'PreconditionFailed' })
  t.equal(check({ 'if-none-match': '"abc"' }), 'unchanged')
  t.equal(check({ 'if-none-match': 'W/"abc"' }), 'unchanged')
  t.equal(check({ 'if-none-match': '"x"' }), 'ok')
  t.equal(check({ 'if-modified-since': same }), 'unchanged')
  t.equal(check({ 'if-modified-since': before }), 'ok')
  t.equal(check({ 'if-unmodified-since': same }), 'ok')
  t.throws(() => check({ 'if-unmodified-since': before }), { code: 'PreconditionFailed' })
  t.equal(check({ 'if-match': '"abc"', 'if-unmodified-since': before }), 'ok', 'If-Match wins')
  t.equal(check({ 'if-none-match': '"x"', 'if-modified-since': same }), 'ok', 'If-None-Match wins')
  t.equal(check({ 'if-modified-since': 'yesterday' }), 'ok', 'an unreadable date is no condition')
})

t.test('writePrecondition', async (t) => {
  const current = object as StoredObject
  t.equal(writePrecondition({}), undefined)
  t.throws(() => writePrecondition({ 'if-none-match': '"abc"' }), { code: 'NotImplemented' })
  t.throws(() => writePrecondition({ 'if-none-match': '*' })?.(current), { code: 'PreconditionFailed' })
  t.doesNotThrow(() => writePrecondition({ 'if-none-match': '*' })?.(undefined))
  t.throws(() => writePrecondition({ 'if-match': '"abc"' })?.(undefined), { code: 'NoSuchKey' })
  t.throws(() => writePrecondition({ 'if-match': '"x"' })?.(current), { code: 'PreconditionFailed' })
  t.doesNotThrow(() => writePrecondition({ 'if-match': '"abc"' })?.(current))
})

t.test('readAttributes: aws-chunked is not stored, metadata is bounded', async (t) => {
  const rules = {
    server: { storageClassLabels: 'keep' as const },
    limits: { maxMetadataBytes: 2048 },
    plugins: { outputMetadata: (name: string) => name === 'told' },
  }
  const read = readAttributes(
    {
      'content-encoding': 'aws-chunked, gzip',
      'cache-control': 'no-cache',
      'x-amz-meta-a': '1',
      'content-type': 'a/b',
    },
    rules,
  )
  t.same(read, {
    contentType: 'a/b',
    headers: { 'content-encoding': 'gzip', 'cache-control': 'no-cache' },
    metadata: { a: '1' },
  })
  t.same(readAttributes({ 'content-encoding': 'aws-chunked' }, rules).headers, {})
  t.same(readAttributes({ 'x-amz-meta-told': 'x'.repeat(4096), 'x-amz-meta-kept': 'y' }, rules).metadata, { kept: 'y' })
  t.throws(() => readAttributes({ 'x-amz-meta-a': 'x'.repeat(2048) }, rules), { code: 'MetadataTooLarge' })
})

t.test('refuseDemands: what cannot be honoured is named', async (t) => {
  for (const name of [
    'x-amz-server-side-encryption',
    'x-amz-server-side-encryption-customer-key',
    'x-amz-object-lock-mode',
    'x-amz-object-lock-legal-hold',
    'x-amz-website-redirect-location',
    'x-amz-tagging',
    'x-amz-grant-read',
  ]) {
    t.throws(() => refuseDemands({ [name]: 'x' }), { code: 'NotImplemented', fields: { Header: name } }, name)
  }
  t.throws(() => refuseDemands({ 'x-amz-acl': 'public-read' }), { code: 'NotImplemented' })
  t.doesNotThrow(() =>
    refuseDemands({ 'x-amz-acl': 'private', 'x-amz-storage-class': 'STANDARD', 'x-amz-meta-a': 'b' }),
  )
})

t.test('tokens: opaque, and only our own are taken', async (t) => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, unit: 'grapheme' }),
      (after) => decodeToken(encodeToken(after), 'x') === after,
    ),
  )
  for (const bad of ['', '1', 'x', '1!!!!', `0${encodeToken('a').slice(1)}`, `${encodeToken('a')}=`])
    t.throws(() => decodeToken(bad, 'x'), { code: 'InvalidArgument' }, bad)
})

t.test('numbers, etags, bucket names, url encoding', async (t) => {
  t.equal(pageSize('max-keys', undefined), 1000)
  t.equal(pageSize('max-keys', '5000'), 1000)
  t.equal(pageSize('max-keys', '0'), 0)
  for (const bad of ['-1', 'a', '1.5', '99999999999'])
    t.throws(() => pageSize('max-keys', bad), { code: 'InvalidArgument' }, bad)
  t.throws(() => wholeNumber('partNumber', '10001', { fallback: 1, min: 1, max: 10_000 }), { code: 'InvalidArgument' })
  t.ok(listsEtag('W/"a" , "b"', 'b'))
  t.notOk(listsEtag('"ab"', 'b'))
  for (const good of ['abc', 'a-b.c', '0ab', 'a'.repeat(63)]) t.doesNotThrow(() => requireBucketName(good), good)
  for (const bad of ['ab', 'Abc', 'a_b', '-ab', 'ab-', 'a..b', '1.2.3.4', 'a'.repeat(64), 'a b'])
    t.throws(() => requireBucketName(bad), { code: 'InvalidBucketName' }, bad)
  t.equal(urlEncoded('a b+c/d%é\u{1F600}'), 'a%20b%2Bc/d%25%C3%A9%F0%9F%98%80')
})
