import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { RequestHead } from '../../src/api/request.js'
import type { BucketSettings } from '../../src/api/settings.js'
import { createLogger } from '../../src/common/log.js'
import { type CorsRule, corsAnswer, corsDocument, readCors, withCors } from '../../src/http/cors.js'

const rule = (more: Partial<CorsRule>): CorsRule => ({
  allowedMethods: ['GET'],
  allowedOrigins: ['*'],
  allowedHeaders: [],
  exposeHeaders: [],
  ...more,
})

t.test('the document', async (t) => {
  const read = (rules: string) => readCors(Buffer.from(`<CORSConfiguration>${rules}</CORSConfiguration>`))
  const good = '<AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>'
  const one = (more: string) => read(`<CORSRule>${good}${more}</CORSRule>`)
  t.same(await one(''), [rule({})])
  t.same(
    await one(
      '<AllowedHeader>x-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>0</MaxAgeSeconds><ID>a</ID>',
    ),
    [rule({ id: 'a', allowedHeaders: ['x-*'], exposeHeaders: ['ETag'], maxAgeSeconds: 0 })],
  )
  const refused: [string, string][] = [
    ['', 'MalformedXML'],
    ['<CORSRule/>', 'MalformedXML'],
    ['<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>', 'MalformedXML'],
    ['<CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin/></CORSRule>', 'MalformedXML'],
    ['<CORSRule><AllowedMethod>OPTIONS</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule>', 'InvalidRequest'],
    ['<CORSRule><AllowedMethod>get</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule>', 'InvalidRequest'],
    [
      '<CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>http://*.a.*</AllowedOrigin></CORSRule>',
      'InvalidRequest',
    ],
    [`<CORSRule>${good}</CORSRule>`.repeat(101), 'InvalidRequest'],
  ]
  for (const [rules, code] of refused) await t.rejects(read(rules), { code }, rules.slice(0, 120))
  for (const [more, code] of [
    ['<AllowedHeader>x-*-*</AllowedHeader>', 'InvalidRequest'],
    ['<AllowedHeader>a b</AllowedHeader>', 'InvalidRequest'],
    ['<ExposeHeader>x-*</ExposeHeader>', 'InvalidRequest'],
    ['<ExposeHeader>a\nb</ExposeHeader>', 'InvalidRequest'],
    ['<MaxAgeSeconds>-1</MaxAgeSeconds>', 'MalformedXML'],
    ['<MaxAgeSeconds>1</MaxAgeSeconds><MaxAgeSeconds>1</MaxAgeSeconds>', 'MalformedXML'],
    [`<ID>${'x'.repeat(256)}</ID>`, 'MalformedXML'],
    ['<Colour>red</Colour>', 'MalformedXML'],
  ] as const)
    await t.rejects(one(more), { code }, more.slice(0, 60))
  t.equal((await read(`<CORSRule>${good}</CORSRule>`.repeat(100))).length, 100)
})

const name = fc.stringMatching(/^[a-z][a-z-]{0,8}$/)
const origin = fc.stringMatching(/^https?:\/\/[a-z.]{1,12}(:[0-9]{2,4})?$/)
const starred = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.option(fc.nat(20)))
    .map(([value, at]) => (at === null ? value : `${value.slice(0, at)}*${value.slice(at)}`))
const anyRule = fc.record(
  {
    id: fc.stringMatching(/^[a-z&<>"]{1,9}$/),
    allowedMethods: fc.array(fc.constantFrom('GET', 'PUT', 'HEAD', 'POST', 'DELETE'), { minLength: 1, maxLength: 3 }),
    allowedOrigins: fc.array(starred(origin), { minLength: 1, maxLength: 3 }),
    allowedHeaders: fc.array(starred(name), { maxLength: 3 }),
    exposeHeaders: fc.array(name, { maxLength: 3 }),
    maxAgeSeconds: fc.nat(100_000),
  },
  { requiredKeys: ['allowedMethods', 'allowedOrigins', 'allowedHeaders', 'exposeHeaders'], noNullPrototype: true },
)

t.test('rules that are written are read again', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRule, { minLength: 1, maxLength: 4 }), async (rules) => {
      deepEqual(await readCors(Buffer.from(corsDocument(rules))), rules)
    }),
    { numRuns: 100 },
  )
})

t.test('the first rule that fits decides, as regular expressions would have it', async () => {
  const expression = (pattern: string, flags = '') =>
    new RegExp(
      `^${pattern
        .split('*')
        .map((part) => part.replace(/[.+?^${}()|[\]\\/-]/g, '\\$&'))
        .join('.*')}$`,
      flags,
    )
  fc.assert(
    fc.property(
      fc.array(anyRule, { maxLength: 4 }),
      origin,
      fc.constantFrom('GET', 'PUT'),
      fc.array(name, { maxLength: 2 }),
      (rules, asked, method, headers) => {
        const expected = rules.find(
          ({ allowedOrigins, allowedMethods, allowedHeaders }) =>
            allowedOrigins.some((pattern) => expression(pattern).test(asked)) &&
            allowedMethods.includes(method as 'GET') &&
            headers.every((header) => allowedHeaders.some((pattern) => expression(pattern, 'i').test(header))),
        )
        const answer = corsAnswer(rules, { origin: asked, method, headers })
        deepEqual(answer?.['access-control-allow-methods'], expected?.allowedMethods.join(', '))
      },
    ),
    { numRuns: 1000 },
  )
})

t.test('a response says on what it depends, and a failure does not change the answer', async (t) => {
  let reads = 0
  let failing = false
  const settings = {
    async get() {
      reads++
      if (failing) throw new Error('no state')
      return [rule({})]
    },
  } as unknown as BucketSettings
  const add = withCors({ settings, log: createLogger({ level: 'silent' }), outputMetadata: (name) => name === 'cid' })
  const head = (headers: object, more = {}) => ({ headers, method: 'GET', bucket: 'b', ...more }) as RequestHead
  const reply = { status: 404, headers: { etag: 'x' } }
  t.equal(await add(head({ origin: 'http://a' }, { bucket: undefined }), reply), reply)
  t.equal(await add(head({}, { method: 'OPTIONS' }), reply), reply)
  t.equal(reads, 0)
  const plain = await add(head({}), reply)
  t.match(plain.headers, { etag: 'x', vary: /^Origin/ }, 'a cached answer serves no request of another origin')
  t.notOk('access-control-allow-origin' in plain.headers, 'and a request without an origin gets nothing else')
  t.match(await add(head({ origin: 'http://a' }), reply), {
    status: 404,
    headers: { etag: 'x', 'access-control-allow-origin': '*' },
  })
  t.match(await add(head({ origin: 'http://a' }, { method: 'PUT' }), reply), {
    headers: { 'access-control-allow-origin': undefined, vary: /Origin/ },
  })
  const asked = { origin: 'http://a', 'access-control-request-method': 'GET' }
  const byMethod = await add(head(asked, { method: 'PUT' }), reply)
  t.match(byMethod, { headers: { 'access-control-allow-origin': '*' } }, 'the method that is asked about counts')
  const beyond = { status: 200, headers: { 'x-dealgate-job-id': 'j', 'x-amz-meta-cid': 'c', 'x-amz-meta-own': 'o' } }
  const exposed =
    'ETag, x-amz-request-id, x-amz-restore, x-amz-storage-class, x-dealgate-job-id, x-dealgate-next-continuation-token, x-amz-meta-cid'
  const shown = await add(head({ origin: 'http://a' }), beyond)
  t.match(shown, { headers: { 'access-control-expose-headers': exposed } }, 'what is told beyond S3 can be read')
  failing = true
  t.equal(await add(head({ origin: 'http://a' }), reply), reply)
})
