import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import { formatOf, readDocument } from '../../src/extension/read-document.js'
import { shapeOf } from '../../src/extension/shape.js'
import { writeJson, writeXml } from '../../src/extension/write-document.js'

const schema = z.strictObject({
  Name: z.string(),
  Size: z.number().optional(),
  Fast: z.boolean().default(false),
  Kind: z.enum(['online', 'offline']).optional(),
  Tags: z.array(z.string()).optional(),
  Terms: z.strictObject({ MinerId: z.string(), Duration: z.number() }).optional(),
  Entries: z.array(z.strictObject({ Id: z.number(), Notes: z.array(z.string()).optional() })).optional(),
})
const shape = shapeOf(schema)
const read = async (text: string, format: 'json' | 'xml' | 'form', aliases = {}) =>
  schema.parse({ ...(await readDocument(Buffer.from(text), format, shape, aliases)) })

/** Text that XML can hold, ends of line as a parser leaves them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly those that it cannot
const text = fc
  .string({ unit: 'grapheme' })
  .filter((value) => /^[^\0-\x1f\x7f\ufffe\uffff\ud800-\udfff]*$/u.test(value))
const documents = fc.record(
  {
    Name: text,
    Size: fc.integer(),
    Fast: fc.boolean(),
    Kind: fc.constantFrom('online' as const, 'offline' as const),
    Tags: fc.array(text, { minLength: 1 }).filter((tags) => tags.length > 1 || tags[0]?.trim() !== ''),
    Terms: fc.record({ MinerId: text, Duration: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    Entries: fc.array(fc.record({ Id: fc.integer() }), { minLength: 1 }),
  },
  { requiredKeys: ['Name', 'Fast'] },
)

t.test('what was written is read back, in either format', async (t) => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      const same = JSON.stringify(schema.parse(document))
      t.equal(JSON.stringify(await read(writeJson(document), 'json')), same)
      t.equal(JSON.stringify(await read(writeXml('Root', 'urn:x', document), 'xml')), same)
    }),
    { numRuns: 200 },
  )
})

t.test('names without case, underscores and hyphens, and other names', async (t) => {
  const wanted = { Name: 'n', Fast: true, Tags: ['a', 'b'], Size: 3 }
  t.same(await read('{"NAME":"n","f_a_s_t":"true","Tag":["a","b"],"size":"3"}', 'json', { Tag: 'Tags' }), wanted)
  t.same(await read('name=n&fast=1&tags=a&tags=b&Size=3', 'form'), wanted)
  t.same(
    await read('<R><name>n</name><Fast>TRUE</Fast><Tags><Tag>a</Tag><Tag>b</Tag></Tags><Size>3</Size></R>', 'xml'),
    wanted,
  )
  await t.rejects(read('{"Name":"a","name":"b"}', 'json'), {
    code: 'InvalidArgument',
    fields: { ArgumentName: 'Name' },
  })
  t.same(await read('{"Name":"a","name":"a"}', 'json'), { Name: 'a', Fast: false })
})

t.test('what does not fit is left for the schema to name', async (t) => {
  for (const [body, format] of [
    ['{"Name":"n","Foo":1}', 'json'],
    ['Name=n&Foo=1', 'form'],
    ['<R><Name>n</Name><Foo/></R>', 'xml'],
    ['{"Name":"n","Size":"many"}', 'json'],
    ['{"Name":["n"]}', 'json'],
    ['<R><Name>n</Name><Name>m</Name></R>', 'xml'],
    ['{"__proto__":{"Name":"n"}}', 'json'],
    ['{"Name":"n","constructor":1}', 'json'],
  ] as const)
    await t.rejects(read(body, format), { name: 'ZodError' }, body)
  for (const body of ['[1]', '1', 'null']) await t.rejects(read(body, 'json'), { code: 'InvalidRequest' }, body)
  await t.rejects(read('{', 'json'), { code: 'InvalidRequest' })
  await t.rejects(read('<R>', 'xml'), { code: 'MalformedXML' })
  await t.rejects(read('<!DOCTYPE R [<!ENTITY a "b">]><R><Name>&a;</Name></R>', 'xml'), { code: 'MalformedXML' })
  t.same(await readDocument(Buffer.from(' \n'), 'json', shape), {})
})

t.test('the format is what the type says, or what the body looks like', async (t) => {
  const of = (type: string | undefined, body: string) => formatOf(type, Buffer.from(body))
  t.equal(of('application/json; charset=utf-8', '<'), 'json')
  t.equal(of('text/xml', '{'), 'xml')
  t.equal(of('application/vnd.x+json', ''), 'json')
  t.equal(of('application/x-www-form-urlencoded', ' {"a":1}'), 'json')
  t.equal(of(undefined, '\n<a/>'), 'xml')
  t.equal(of('application/x-www-form-urlencoded', 'a=b'), 'form')
})
