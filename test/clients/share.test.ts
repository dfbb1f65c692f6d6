import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { type Brand, presignQuery } from '../../src/common/sigv4.js'
import { createProxy } from '../../src/server/create-proxy.js'
import { legacy } from '../../src/services/gateway/quirks.js'
import { startServices } from '../../src/services/index.js'
import { isolatedEnv } from '../support/programs/run.js'

const exec = promisify(execFile)
const identity = { accessKeyId: 'share-tester', secretAccessKey: 'share-tester-secret' }
const CONTENT = 'what is shared'

interface Setup {
  readonly endpoint: string
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
  const services = await startServices({
    data: `${folder}/services`,
    gateway: { host: '127.0.0.1', port: 0, quirks, region, brand },
  })
  t.teardown(() => services.stop())
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const proxy = await createProxy({
    gateway: { url: services.gateway.url, account: () => services.gateway.credentials(), brand },
    identities: [identity],
    data: `${folder}/proxy`,
    log: createLogger({ level: 'silent' }),
    shareUrl: pointsHere ? endpoint : undefined,
  })
  server.on('request', proxy)
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await proxy.close()
  })
  const setup = { endpoint, gatewayUrl: services.gateway.url }
  await signed(`${endpoint}/photos`, '-X', 'PUT')
  await signed(
    `${endpoint}/photos/a%20folder/%C3%A4.txt`,
    '-X',
    'PUT',
    '-H',
    'content-type: text/x-test',
    '-H',
    'x-amz-meta-a: b',
    '--data-binary',
    CONTENT,
  )
  return setup
}

/** curl, signing. Resolves to status and body. */
async function signed(url: string, ...args: string[]): Promise<{ status: number; body: string }> {
  const user = `${identity.accessKeyId}:${identity.secretAccessKey}`
  const signing = ['--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', user]
  const { stdout } = await exec('curl', ['-s', '-w', '\n%{http_code}', ...signing, ...args, url], {
    env: isolatedEnv({}),
  })
  const at = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(at + 1)), body: stdout.slice(0, at) }
}

const KEY = '/photos/a%20folder/%C3%A4.txt'

async function share({ endpoint }: Setup, query = '', ...args: string[]): Promise<{ status: number; body: string }> {
  return signed(`${endpoint}${KEY}?${query}x-share=`, '-X', 'POST', ...args)
}

async function linkOf(setup: Setup): Promise<string> {
  const { body } = await share(setup, '', '-H', 'accept: application/json')
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
    t.equal(whole.headers.get('content-type'), 'text/x-test')
    t.equal(whole.headers.get('x-amz-meta-a'), 'b')
    t.ok(whole.headers.get('x-amz-request-id'))
    const part = await fetch(link, { headers: { range: 'bytes=5-6' } })
    t.equal(await part.text(), variant.quirks === legacy ? CONTENT : 'is')
    t.equal((await fetch(link, { method: 'HEAD' })).status, 200)

    t.equal(await codeOf(await fetch(link.replace(/Signature=./, 'Signature=X'))), '403 SignatureDoesNotMatch')
    t.equal(await codeOf(await fetch(link.replace('%C3%A4.txt', 'other.txt'))), '403 SignatureDoesNotMatch')
    t.equal(await codeOf(await fetch(`${link}&response-content-type=text%2Fhtml`)), '403 SignatureDoesNotMatch')
    t.equal(await codeOf(await fetch(link.replace(/Expires=3600/, 'Expires=7200'))), '403 SignatureDoesNotMatch')
    t.match(
      await codeOf(await fetch(link.replace('127.0.0.1', 'localhost'))),
      /^40[03] (Auth|InvalidAccess)/,
      'another host',
    )
    t.match(await codeOf(await fetch(link, { method: 'DELETE' })), /^40[03] (Auth|InvalidAccess)/, 'for reading only')
    t.match(await codeOf(await fetch(link, { method: 'PUT', body: 'x' })), /^40[03] (Auth|InvalidAccess)/)

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

    for (const brand of ['Amz', 'Cloud'] as Brand[]) {
      const own = presignQuery({
        brand,
        method: 'GET',
        path: '/photos/a folder/ä.txt',
        host: new URL(setup.endpoint).host,
        ...identity,
        region: 'us-east-1',
        expires: 60,
        now: new Date(),
      })
      t.equal(await (await fetch(`${setup.endpoint}${KEY}?${own}`)).text(), CONTENT, `presigned by us, X-${brand}-`)
    }
  })
}

t.test('links to the gateway itself', async (t) => {
  const setup = await setUp(t, { quirks: legacy, region: '', brand: neutral, pointsHere: false })
  const link = await linkOf(setup)
  t.ok(link.startsWith(`${setup.gatewayUrl}${KEY}?`), link)
  t.equal(await (await fetch(link)).text(), CONTENT)
  const here = link.replace(setup.gatewayUrl, setup.endpoint)
  t.equal(await codeOf(await fetch(here)), '400 AuthorizationQueryParametersError', 'not served where nothing says so')
})

t.test('the request for a link', async (t) => {
  const setup = await setUp(t, { quirks: [], region: '', brand: neutral, pointsHere: true })
  const expiresOf = (body: string) => Number(/X-Cloud-Expires=(\d+)/.exec(body)?.[1])
  t.equal(expiresOf((await share(setup)).body), 3600)
  t.match((await share(setup)).body, /<ShareLink [^>]*><Url>http:.*<\/Url><Expiry>3600<\/Expiry><\/ShareLink>/)
  t.equal(expiresOf((await share(setup, 'expiry=1&')).body), 1)
  t.equal(expiresOf((await share(setup, 'expiry=604800&')).body), 604_800)
  const json = await share(setup, '', '-H', 'content-type: application/json', '--data-binary', '{"Expiry": 120}')
  t.match(JSON.parse(json.body), { Url: /X-Cloud-Expires=120&/, Expiry: 120 }, 'answered in the form of the request')
  t.equal(expiresOf((await share(setup, '', '--data-binary', '{"Expiry": "121"}')).body), 121)
  t.equal(expiresOf((await share(setup, '', '-d', 'expiry=77')).body), 77)
  const xml = await share(setup, '', '--data-binary', '<ShareLinkRequest><Expiry>99</Expiry></ShareLinkRequest>')
  t.equal(expiresOf(xml.body), 99)

  const refused = async (
    code: string,
    ...args: Parameters<typeof share> extends [Setup, ...infer Rest] ? Rest : never
  ) => t.match((await share(setup, ...args)).body, `<Code>${code}</Code>`, args.join(' '))
  for (const expiry of ['0', '604801', '-1', '1.5', 'x']) await refused('InvalidArgument', `expiry=${expiry}&`)
  await refused('InvalidArgument', '', '--data-binary', '{"Expiry": 604801}')
  await refused('InvalidArgument', '', '--data-binary', '{"Expires": 60}')
  await refused('InvalidRequest', '', '--data-binary', '{')
  await refused('MalformedXML', '', '--data-binary', '<Other>')
  await refused('InvalidArgument', '', '--data-binary', '<Other><Days>1</Days></Other>')
  await refused('InvalidRequest', 'expiry=5&', '--data-binary', '{"Expiry": 5}')
  for (const twice of [
    '{"Expiry": 5, "expiry": 9}',
    '<ShareLinkRequest><Expiry>5</Expiry><Expiry>9</Expiry></ShareLinkRequest>',
    'Expiry=5&Expiry=9',
  ])
    await refused('InvalidArgument', '', '--data-binary', twice)
  await refused('InvalidArgument', 'expiry=5&expiry=9&')
  t.match((await signed(`${setup.endpoint}/photos/none?x-share=`, '-X', 'POST')).body, 'NoSuchKey')
  t.match(
    (await signed(`${setup.endpoint}${KEY}?x-share=`, '-X', 'PUT')).body,
    'NotImplemented',
    'no PUT of the object',
  )
  t.equal(await codeOf(await fetch(`${setup.endpoint}${KEY}?x-share=`, { method: 'POST' })), '403 AccessDenied')
  const unsigned = await share(setup, '', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', '-d', 'expiry=77')
  t.match(unsigned, { status: 403, body: /AccessDenied/ }, 'the signature must cover how long the link is good for')
  const query = presignQuery({
    brand: 'Amz',
    method: 'POST',
    path: '/photos/a folder/ä.txt',
    query: [['x-share', '']],
    host: new URL(setup.endpoint).host,
    ...identity,
    region: 'us-east-1',
    expires: 60,
    now: new Date(),
  })
  t.equal(
    await codeOf(await fetch(`${setup.endpoint}${KEY}?${query}`, { method: 'POST' })),
    '403 AccessDenied',
    'presigned',
  )
})

t.test('an address that cannot be', async (t) => {
  for (const shareUrl of ['http://a.test/path', 'ftp://a.test', 'http://u:p@a.test', 'http://a.test/?q'])
    await t.rejects(
      createProxy({
        gateway: { url: 'http://127.0.0.1:1', account: { accessKey: 'abc', secretKey: 'abcdefgh' } },
        identities: [],
        data: t.testdirName,
        shareUrl,
      }),
      TypeError,
    )
})
