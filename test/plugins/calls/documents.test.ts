import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import { parseDocument } from '../../../src/common/xml.js'
import { xmlDocument } from '../../../src/plugins/calls/format.js'
import { fromJson } from '../../../src/plugins/calls/read-body.js'
import { fromText } from '../../../src/plugins/calls/read-text.js'
import { shapeOf } from '../../../src/plugins/calls/shape.js'

const folder = z.strictObject({
  Name: z.string(),
  get Inner() {
    return z.array(folder).optional()
  },
})

const schema = z.strictObject({
  Name: z.string(),
  Size: z.number().optional(),
  Fast: z.boolean().default(false),
  Kind: z.enum(['online', 'offline']).optional(),
  Level: z.union([z.literal(0), z.literal(1)]).optional(),
  Price: z.union([z.string(), z.number()]).optional(),
  Won: z.string().nullable(),
  Tags: z.array(z.string()).optional().meta({ element: 'Tag' }),
  Words: z.array(z.string()),
  Grid: z.array(z.array(z.number())).optional(),
  Terms: z.strictObject({ MinerId: z.string(), Duration: z.number() }).optional(),
  Entries: z.array(z.strictObject({ Id: z.number(), Notes: z.array(z.string()) })),
  Links: z.record(z.string(), z.string()).optional(),
  Counts: z.record(z.string(), z.strictObject({ N: z.number() })).optional(),
  Folder: folder.optional(),
})
type Sample = z.output<typeof schema>
const shape = shapeOf(schema, 'input')

const fromXml = async (xml: string) => schema.parse(fromText(shape, (await parseDocument(Buffer.from(xml))).node))

/** Text that XML can hold; white space alone is none to its parser. */
const text = fc
  .string({ unit: 'grapheme' })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that XML cannot hold
  .filter((value) => /^[^\0-\x1f\x7f-\x9f\u2028\ufffe\uffff\ud800-\udfff]*$/u.test(value))
  .filter((value) => value === '' || value.trim() !== '')
const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
)
/** `__proto__` is refused. */
const name = fc
  .oneof(text, fc.constantFrom('Entry', 'constructor', 'xmlns', 'a b', '1', 'Name'))
  .filter((value) => value !== '__proto__')

const folders: fc.Arbitrary<z.output<typeof folder>> = fc.letrec((tie) => ({
  folder: fc.record(
    { Name: text, Inner: fc.array(tie('folder'), { minLength: 1, maxLength: 3 }) },
    { requiredKeys: ['Name'] },
  ),
})).folder as fc.Arbitrary<z.output<typeof folder>>

const documents = fc.record(
  {
    Name: text,
    Size: number,
    Fast: fc.boolean(),
    Kind: fc.constantFrom('online' as const, 'offline' as const),
    Level: fc.constantFrom(0 as const, 1 as const),
    Price: text,
    Won: fc.option(text),
    Tags: fc.array(text),
    Words: fc.array(text),
    Grid: fc.array(fc.array(number), { minLength: 1 }),
    Terms: fc.record({ MinerId: text, Duration: number }),
    Entries: fc.array(fc.record({ Id: fc.integer(), Notes: fc.array(text) })),
    Links: fc.dictionary(name, text),
    Counts: fc.dictionary(name, fc.record({ N: fc.integer() })),
    Folder: folders,
  },
  { requiredKeys: ['Name', 'Fast', 'Won', 'Words', 'Entries'] },
)

t.test('what is written is read back, in either form', async (t) => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      const plain = JSON.parse(JSON.stringify(document)) as Sample
      const wanted = schema.parse(plain)
      assert.deepEqual(schema.parse(fromJson(shape, plain)), wanted)
      assert.deepEqual(await fromXml(xmlDocument('Root', 'test', shape, plain)), wanted)
    }),
    { numRuns: 300 },
  )
  t.pass()
})

t.test('names are the same however they are written', (t) => {
  const spelled = fc.constantFrom(
    (given: string) => given.toLowerCase(),
    (given: string) => given.replace(/(?<=[a-z])(?=[A-Z])/g, '_'),
    (given: string) => given.replace(/(?<=[a-z])(?=[A-Z])/g, '-').toUpperCase(),
  )
  fc.assert(
    fc.property(documents, spelled, (document, spell) => {
      const { Links: _, Counts: __, ...plain } = JSON.parse(JSON.stringify(document)) as Sample
      const other = Object.fromEntries(Object.entries(plain).map(([key, value]) => [spell(key), value]))
      assert.deepEqual(fromJson(shape, other), fromJson(shape, plain))
    }),
    { numRuns: 50 },
  )
  t.pass()
  t.end()
})

t.test('anything at all is read or refused', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (value) => {
      try {
        schema.parse(fromJson(shape, value))
      } catch (error) {
        assert.match((error as Error).name, /^(S3Error|ZodError)$/)
      }
      const xml = xmlDocument('Root', 'test', { kind: 'any', nullable: true }, { Value: value })
      try {
        await fromXml(xml)
      } catch (error) {
        assert.match((error as Error).name, /^(S3Error|ZodError)$/)
      }
    }),
    { numRuns: 200 },
  )
  t.pass()
})

t.test('values of no known form', (t) => {
  const any = { kind: 'any', nullable: true } as const
  const value = {
    Ids: [1, 2],
    Map: { 'a b': 'c', Entry: 1 },
    Nested: [[1], [2, 3]],
    Nothing: null,
    Yes: true,
    Odd: '<&>',
  }
  const markup =
    '<Ids>1</Ids><Ids>2</Ids><Map><Entry><Name>a b</Name><Value>c</Value></Entry><Entry><Name>Entry</Name><Value>1</Value></Entry></Map>' +
    '<Nested><member>1</member></Nested><Nested><member>2</member><member>3</member></Nested><Yes>true</Yes><Odd>&lt;&amp;&gt;</Odd>'
  t.equal(
    xmlDocument('R', 'p', any, value),
    `<?xml version="1.0" encoding="UTF-8"?>\n<R xmlns="urn:dealgate:p:1">${markup}</R>`,
  )
  t.end()
})

t.test('shapes', (t) => {
  const kinds = (type: z.ZodType) => {
    const { kind, nullable } = shapeOf(type, 'input')
    return nullable ? `${kind} or null` : kind
  }
  t.equal(kinds(z.string().transform(Number)), 'text', 'what goes in')
  t.equal(kinds(z.coerce.number()), 'number')
  t.equal(kinds(z.stringbool()), 'text')
  t.equal(kinds(z.number().nullish()), 'number or null')
  t.equal(kinds(z.union([z.boolean(), z.string()])), 'scalar')
  t.equal(kinds(z.enum(['a'])), 'text')
  t.equal(kinds(z.literal([1, null])), 'number or null')
  t.equal(kinds(z.unknown()), 'any or null')
  t.equal(kinds(z.union([z.string(), z.array(z.string())])), 'any')
  const either = z.discriminatedUnion('Kind', [
    z.strictObject({ Kind: z.literal('a'), N: z.number() }),
    z.strictObject({ Kind: z.literal('b'), B: z.boolean() }),
  ])
  t.same(fromJson(shapeOf(either, 'input'), { kind: 'a', n: '1', b: 'true' }), { Kind: 'a', N: 1, B: true })
  const both = z.intersection(z.object({ A: z.number() }), z.object({ B: z.number() }))
  t.same(fromJson(shapeOf(both, 'input'), { a: '1', b: '2' }), { A: 1, B: 2 })
  t.throws(
    () => shapeOf(z.object({ MinerId: z.string(), Miner_ID: z.string() }), 'input'),
    /have the same name, apart from/,
  )
  t.end()
})

t.test('an error repeats only the beginning of a name that is no member', async (t) => {
  const name = '['.repeat(100_000)
  const refused = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return JSON.stringify(error).length + (error as Error).message.length
    }
    return Number.POSITIVE_INFINITY
  }
  t.ok(refused(() => fromJson(shape, { [name]: 1 })) < 2000)
})
