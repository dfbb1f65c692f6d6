import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { createLogger } from '../../common/log.js'
import { legacy } from '../../services/gateway/legacy/quirks.js'
import { startServices } from '../../services/index.js'
import { createProxy } from '../../src/server/create-proxy.js'
import type { Endpoint } from '../suites/sign.js'
import { listen } from '../support/server/listen.js'
import { presigned, type Sending, send, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

const identity = { accessKeyId: 'share-tester', secretAccessKey: 'share-tester-secret' }
const CONTENT = 'what is shared'
/** A browser that follows a link runs nothing of what it leads to. */
const SAFE = { 'x-content-type-options': 'nosniff', 'content-security-policy': 'sandbox' }
const KEY = '/photos/a%20folder/%C3%A4.txt'

interface Setup extends Endpoint {
  readonly gatewayUrl: string
}

interface Variant {
  readonly quirks: typeof legacy
  readonly region: string
  readonly brand: { readonly path: string; readonly header: string }
  readonly pointsHere: boolean
}

async function setUp(t: Test, { quirks, region, brand, pointsHere }: Variant): Promise<Setup> {
  const folder = t.testdir({})
  const gateway = { host: '127.0.0.1', port: 0, quirks, region, brand }
  const services = await startServices({ data: `${folder}/services`, gateway })
  t.teardown(() => services.stop())
  const server = createServer()
  const endpoint = await listen(server, t)
  const proxy = await createProxy({
    gateway: { url: services.gateway.url, account: () => services.gateway.credentials(), brand },
    identities: [identity],
    data: `${folder}/proxy`,
    log: createLogger({ level: 'silent' }),
    shareUrl: pointsHere ? endpoint : undefined,
  })
  server.on('request', proxy)
  t.teardown(() => proxy.close())
  const keys = { accessKey: identity.accessKeyId, secretKey: identity.secretAccessKey }
  const setup = { endpoint, region: 'us-east-1', ...keys, gatewayUrl: services.gateway.url }
  const headers = { 'content-type': 'text/x-test', 'x-amz-meta-a': 'b' }
  await send(setup, { method: 'PUT', target: '/photos' })
  await send(setup, { method: 'PUT', target: KEY, headers, body: Buffer.from(CONTENT) })
  return setup
}

/** @param body in the form that curl gives it by default */
async function share(setup: Setup, query = '', body?: string, more: Partial<Sending> = {}) {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const sent = body === undefined ? {} : { body: Buffer.from(body), headers: form }
  const answer = await send(setup, { method: 'POST', target: `${KEY}?${query}x-share=`, ...sent, ...more })
  return { ...answer, body: answer.body.toString() }
}

async function linkOf(setup: Setup): Promise<string> {
  const { body } = await share(setup, '', undefined, { headers: { accept: 'application/json' } })
  return (JSON.parse(body) as { Url: string }).Url
}

async function codeOf(response: Response): Promise<string> {
  return `${response.status} ${/<Code>(\w+)/.exec(await response.text())?.[1]}`
}

const neutral = { path: 'gateway', header: 'cloud' }
const variants: Record<string, Variant> = {
  full: { quirks: [], region: '', brand: neutral, pointsHere: true },
  legacy: { quirks: legacy, region: '', brand: neutral, pointsHere: true },
  'legacy, other words': { quirks: legacy, region: '', brand: { path: 'minio', header: 'amz' }, pointsHere: true },
  'a gateway with our region': { quirks: [], region: 'us-east-1', brand: neutral, pointsHere: true },
}

for (const [name, variant] of Object.entries(variants)) {
  t.test(`links to this server: ${name}`, async (t) => {
    const setup = await setUp(t, variant)
    const link = await linkOf(setup)
    const word = variant.brand.header === 'amz' ? 'Amz' : 'Cloud'
    t.ok(link.startsWith(`${setup.endpoint}${KEY}?X-${word}-Algorithm=AWS4-HMAC-SHA256&`), link)

    const whole = await fetch(link)
    t.equal(await whole.text(), CONTENT)
    t.match(Object.fromEntries(whole.headers), { 'content-type': 'text/x-test', 'x-amz-meta-a': 'b', ...SAFE })
    const part = await fetch(link, { headers: { range: 'bytes=5-6' } })
    t.equal(await part.text(), variant.quirks === legacy ? CONTENT : 'is')
    t.equal((await fetch(link, { method: 'HEAD' })).status, 200)

    for (const forged of [
      link.replace(/Signature=./, 'Signature=X'),
      link.replace('%C3%A4.txt', 'other.txt'),
      link.replace(/Expires=3600/, 'Expires=7200'),
      `${link}&response-content-type=text%2Fhtml`,
    ])
      t.equal(await codeOf(await fetch(forged)), '403 SignatureDoesNotMatch', forged)
    t.match(await codeOf(await fetch(link.replace('127.0.0.1', 'localhost'))), /^40[03] (Auth|InvalidAccess)/, 'host')
    t.match(await codeOf(await fetch(link, { method: 'DELETE' })), /^40[03] (Auth|InvalidAccess)/, 'for reading only')

    const query = link.slice(link.indexOf('?') + 1)
    const { path } = variant.brand
    for (const inside of [
      `/${path}/download${KEY}?token=&`,
      `/photos/..%2F${path}/download${KEY}?token=&`,
      `/photos/..%5Cx?`,
    ])
      t.match(
        await codeOf(await fetch(`${setup.endpoint}${inside}${query}`)),
        /^(403 AccessDenied|404 NoSuchBucket)$/,
        inside,
      )

    for (const brand of ['Amz', 'Cloud'] as const) {
      const own = await fetch(presigned(setup, 'GET', '/photos/a folder/ä.txt', brand))
      t.equal(await own.text(), CONTENT, `presigned by us, X-${brand}-`)
    }
  })
}

t.test('links to the gateway itself', async (t) => {
  const setup = await setUp(t, { quirks: legacy, region: '', brand: neutral, pointsHere: false })
  const link = await linkOf(setup)
  t.ok(link.startsWith(`${setup.gatewayUrl}${KEY}?`), link)
  for (const method of ['GET', 'HEAD']) t.match(Object.fromEntries((await fetch(link, { method })).headers), SAFE)
  t.equal(await (await fetch(link)).text(), CONTENT)
  const here = link.replace(setup.gatewayUrl, setup.endpoint)
  t.equal(await codeOf(await fetch(here)), '400 AuthorizationQueryParametersError', 'not served where nothing says so')
})

t.test('the request for a link', async (t) => {
  const setup = await setUp(t, { quirks: [], region: '', brand: neutral, pointsHere: true })
  const expiresOf = (body: string) => Number(/X-Cloud-Expires=(\d+)/.exec(body)?.[1])
  t.match((await share(setup)).body, /<ShareLink [^>]*><Url>http:.*<\/Url><Expiry>3600<\/Expiry><\/ShareLink>/)
  t.equal(expiresOf((await share(setup, 'expiry=604800&')).body), 604_800)
  const json = await share(setup, '', '{"Expiry": 120}', { headers: { 'content-type': 'application/json' } })
  t.match(JSON.parse(json.body), { Url: /X-Cloud-Expires=120&/, Expiry: 120 }, 'answered in the form of the request')
  t.equal(expiresOf((await share(setup, '', 'expiry=77')).body), 77)
  const xml = '<ShareLinkRequest><Expiry>99</Expiry></ShareLinkRequest>'
  t.equal(expiresOf((await share(setup, '', xml)).body), 99)

  const twice = '<ShareLinkRequest><Expiry>5</Expiry><Expiry>9</Expiry></ShareLinkRequest>'
  const refused: readonly (readonly [code: string, query: string, body?: string])[] = [
    ...['0', '604801', 'x'].map((expiry) => ['InvalidArgument', `expiry=${expiry}&`] as const),
    ...['{"Expires": 60}', '<Other><Days>1</Days></Other>', '{"Expiry": 5, "expiry": 9}', twice].map(
      (body) => ['InvalidArgument', '', body] as const,
    ),
    ['InvalidRequest', '', '{'],
    ['MalformedXML', '', '<Other>'],
    ['InvalidRequest', 'expiry=5&', '{"Expiry": 5}'],
    ['InvalidArgument', 'expiry=5&expiry=9&'],
  ]
  for (const [code, query, body] of refused) t.equal((await share(setup, query, body)).code, code, `${query} ${body}`)
  t.equal((await send(setup, { method: 'POST', target: '/photos/none?x-share=' })).code, 'NoSuchKey')
  t.equal((await send(setup, { method: 'PUT', target: `${KEY}?x-share=` })).code, 'NotImplemented')
  t.equal(await codeOf(await fetch(`${setup.endpoint}${KEY}?x-share=`, { method: 'POST' })), '403 AccessDenied')
  const unsigned = await share(setup, '', 'expiry=77', { payloadHash: UNSIGNED_PAYLOAD })
  t.match(unsigned, { status: 403, code: 'AccessDenied' }, 'the signature must cover how long the link is good for')
})
