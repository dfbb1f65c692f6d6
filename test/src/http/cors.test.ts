import t from 'tap'
import { createLogger } from '../../../common/log.js'
import type { RequestHead } from '../../../src/api/request.js'
import type { BucketSettings } from '../../../src/api/settings.js'
import { type CorsRule, corsAnswer, readCors, withCors } from '../../../src/http/cors.js'

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

t.test('the first rule that fits decides', async (t) => {
  const rules = [
    rule({ id: 'own', allowedOrigins: ['https://*.example'], allowedMethods: ['GET', 'PUT'], allowedHeaders: ['x-*'] }),
    rule({ id: 'all', allowedMethods: ['GET'] }),
  ]
  const methods = (origin: string, method: string, ...headers: string[]) =>
    corsAnswer(rules, { origin, method, headers })?.['access-control-allow-methods']
  t.equal(methods('https://a.example', 'GET', 'X-Amz-Date'), 'GET, PUT')
  t.equal(methods('https://a.example', 'GET'), 'GET, PUT')
  t.equal(methods('https://axexample', 'GET'), 'GET', 'a dot is no wildcard')
  t.equal(methods('https://a.example', 'PUT', 'x-a', 'content-type'), undefined, 'each header must be allowed')
  t.equal(methods('http://a.example', 'PUT'), undefined)
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
