import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  BUCKET_TAGS,
  checkTags,
  OBJECT_TAGS,
  readTagging,
  taggingDocument,
  taggingOfCopy,
  taggingOfHeader,
} from '../../../src/s3/tagging/tags.js'

const many = (count: number) => Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: 'v' }))

t.test('rules of tags', async (t) => {
  const check = (key: string, value = '') => checkTags([{ key, value }], OBJECT_TAGS)
  for (const good of ['a', 'Ünï cödé', 'a+b-c=d.e_f:g/h@i', '文字', 'x'.repeat(128), 'xaws:', '𝒳'.repeat(64)])
    t.doesNotThrow(() => check(good, good), good)
  t.doesNotThrow(() => check('a', 'x'.repeat(256)))
  for (const bad of ['', 'x'.repeat(129), '𝒳'.repeat(65), 'a!', 'a&b', 'a\nb', '<', 'aws:x', 'AWS:x', '\ud800'])
    t.throws(() => check(bad), { code: 'InvalidTag' }, JSON.stringify(bad))
  for (const bad of ['x'.repeat(257), 'a;b', 'a\0']) t.throws(() => check('a', bad), { code: 'InvalidTag' })
  t.throws(() => checkTags([...many(1), ...many(1)], OBJECT_TAGS), {
    code: 'InvalidTag',
    message: 'Cannot provide multiple Tags with the same key',
  })
  t.doesNotThrow(() => checkTags(many(10), OBJECT_TAGS))
  t.throws(() => checkTags(many(11), OBJECT_TAGS), {
    code: 'BadRequest',
    message: 'Object tags cannot be greater than 10',
  })
  t.doesNotThrow(() => checkTags(many(50), BUCKET_TAGS))
  t.throws(() => checkTags(many(51), BUCKET_TAGS), { code: 'BadRequest' })
})

t.test('the document', async (t) => {
  const read = (text: string) => readTagging(Buffer.from(text), OBJECT_TAGS)
  t.same(await read('<Tagging><TagSet/></Tagging>'), [])
  t.same(
    await read(
      '<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet><Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>',
    ),
    [{ key: 'a', value: '' }],
  )
  for (const bad of [
    '',
    '<Tagging/>',
    '<Tagging><TagSet/><TagSet/></Tagging>',
    '<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>',
    '<Tagging><TagSet><Tag><Value>a</Value></Tag></TagSet></Tagging>',
    '<TagSet/>',
    '<Tagging><TagSet><tag><Key>a</Key><Value/></tag></TagSet></Tagging>',
    '<Tagging><TagSet><Tag><Key>a</Key><Key>b</Key><Value/></Tag></TagSet></Tagging>',
    '<Tagging><TagSet><Tag><Key>a</Key><Value/><Color/></Tag></TagSet></Tagging>',
    '<Tagging><TagSet/><Tag><Key>a</Key><Value/></Tag></Tagging>',
    '<!DOCTYPE x [<!ENTITY e "e">]><Tagging><TagSet/></Tagging>',
  ])
    await t.rejects(read(bad), { code: 'MalformedXML' }, bad)
})

const word = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019 +-=._:/@äß文'), minLength: 1, maxLength: 40 })
  .filter((text) => !/^aws:/i.test(text))
const tagSet = fc.uniqueArray(
  fc.record({ key: word, value: fc.oneof(word, fc.constant('')) }, { noNullPrototype: true }),
  {
    maxLength: 10,
    selector: ({ key }) => key,
  },
)

t.test('what is written is read again', async () => {
  await fc.assert(
    fc.asyncProperty(tagSet, async (tags) => {
      const again = await readTagging(Buffer.from(taggingDocument(tags)), OBJECT_TAGS)
      deepEqual(again, tags)
      const header = tags.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join('&')
      deepEqual(taggingOfHeader({ 'x-amz-tagging': header }) ?? [], tags)
      const form = new URLSearchParams(tags.map(({ key, value }): [string, string] => [key, value])).toString()
      deepEqual(taggingOfHeader({ 'x-amz-tagging': form }) ?? [], tags)
    }),
    { numRuns: 100 },
  )
})

t.test('headers', async (t) => {
  t.equal(taggingOfHeader({}), undefined)
  t.equal(taggingOfHeader({ 'x-amz-tagging': '' }), undefined)
  t.same(taggingOfHeader({ 'x-amz-tagging': 'a&b=&c=1%202' }), [
    { key: 'a', value: '' },
    { key: 'b', value: '' },
    { key: 'c', value: '1 2' },
  ])
  for (const bad of ['a=1&a=2', 'a=%', 'a=%ff'])
    t.throws(() => taggingOfHeader({ 'x-amz-tagging': bad }), { code: 'InvalidArgument' }, bad)
  t.throws(() => taggingOfHeader({ 'x-amz-tagging': '=1' }), { code: 'InvalidTag' })

  const source = [{ key: 'a', value: '1' }]
  t.equal(taggingOfCopy({}, source), source)
  t.equal(taggingOfCopy({ 'x-amz-tagging-directive': 'COPY' }, source), source)
  t.equal(taggingOfCopy({ 'x-amz-tagging-directive': 'REPLACE' }, source), undefined)
  t.same(taggingOfCopy({ 'x-amz-tagging-directive': 'REPLACE', 'x-amz-tagging': 'b=2' }, source), [
    { key: 'b', value: '2' },
  ])
  t.throws(() => taggingOfCopy({ 'x-amz-tagging': 'b=2' }, source), { code: 'InvalidArgument' })
  t.throws(() => taggingOfCopy({ 'x-amz-tagging-directive': 'copy' }, source), { code: 'InvalidArgument' })
})
