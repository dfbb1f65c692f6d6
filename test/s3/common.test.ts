import fc from 'fast-check'
import t from 'tap'
import { compareUtf8 } from '../../src/common/byte-order.js'
import { readAttributes } from '../../src/s3/object/attributes.js'
import { checkConditions, READ } from '../../src/s3/object/read-conditions.js'

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
