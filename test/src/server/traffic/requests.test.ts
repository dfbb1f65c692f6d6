import { get } from 'node:http'
import t, { type Test } from 'tap'
import { createPassthrough } from '../../../../cli/passthrough/passthrough.js'
import type { TrafficBounds } from '../../../../src/server/traffic/gate.js'
import type { Endpoint } from '../../../suites/sign.js'
import { sdkFor } from '../../../support/programs/sdk.js'
import { startDealgate } from '../../../support/server/dealgate.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { type Answer, answerTo, open, send, sendHead, sign, UNSIGNED_PAYLOAD } from '../../../support/sign/send.js'

/** Refusals of clients that ask too much, over HTTP. */

const NAMES = ['one', 'two'] as const
const SELDOM = { perSecond: 0.01, burst: 2 }
const SLOW_DOWN = { status: 503, code: 'SlowDown', headers: { 'retry-after': /^[1-9]\d*$/ } }

async function start(t: Test, traffic: TrafficBounds, more = {}) {
  const identities = NAMES.map((name) => ({ accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` }))
  const server = await startInProcess(t, 'full', { identities, traffic, ...more })
  const as = (name: (typeof NAMES)[number]): Endpoint => ({
    endpoint: server.endpoint,
    region: 'us-east-1',
    accessKey: `${name}-key`,
    secretKey: `${name}-secret`,
  })
  const list = (name: (typeof NAMES)[number], headers = {}) =>
    send(as(name), { method: 'GET', target: '/', unsignedHeaders: headers })
  const scrape = async () => String((await send(as('one'), { method: 'GET', target: '/-/metrics' })).body)
  return { ...server, as, list, scrape }
}

async function status(url: string, headers = {}, localAddress = '127.0.0.1'): Promise<number> {
  return (await answerTo(get(url, { headers, localAddress, agent: false }))).status
}

t.test('requests of one key', async (t) => {
  const { list, as, endpoint } = await start(t, { perKey: { requests: SELDOM } })
  t.match([await list('one'), await list('one')], [{ status: 200 }, { status: 200 }])
  t.match(await list('one'), { ...SLOW_DOWN, message: /requests per second with your access key/ })
  t.match(await list('two'), { status: 200 }, 'another key is not concerned')

  const forged = { ...as('two'), secretKey: 'wrong-secret' }
  for (let i = 0; i < 4; i++)
    t.equal((await send(forged, { method: 'GET', target: '/' })).code, 'SignatureDoesNotMatch')
  t.match(await list('two'), { status: 200 }, 'a wrong signature does not count for the key')

  const target = '/bucket/key'
  const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const put = await sendHead({ endpoint }, 'PUT', target, { ...headers, 'content-length': '100000' })
  t.equal(put.continued, false, 'the body is not asked for')
  t.match(await put.answer, SLOW_DOWN)
  put.request.destroy()
})

t.test('requests of one address, and probes of this machine', async (t) => {
  const bounds = { perAddress: { requests: SELDOM }, total: { requests: { perSecond: 0.01, burst: 3 } } }
  const { list, endpoint } = await start(t, bounds, { passthrough: createPassthrough })
  t.match([await list('one'), await list('two')], [{ status: 200 }, { status: 200 }])
  t.match(await list('two'), { ...SLOW_DOWN, message: /from your network address/ })
  t.equal(await status(`${endpoint}/bucket/key`), 503, 'not signed')
  t.equal(await status(`${endpoint}/gateway/login`), 503, 'a path of the gateway')
  t.equal(await status(`${endpoint}/`, {}, '127.0.0.2'), 403, 'what is refused takes nothing from other clients')
  for (let i = 0; i < 3; i++) {
    t.equal(await status(`${endpoint}/-/live`), 200)
    t.equal(await status(`${endpoint}/-/ready`), 200)
  }
})

t.test('addresses that trusted proxies name', async (t) => {
  const { list, endpoint } = await start(t, { perAddress: { requests: SELDOM } }, { trustedProxies: ['127.0.0.1'] })
  const from = (address: string) => list('one', { 'x-forwarded-for': address })
  const answers: Answer[] = []
  for (let i = 0; i < 3; i++) answers.push(await from('192.0.2.1'))
  t.match(answers, [{ status: 200 }, { status: 200 }, SLOW_DOWN])
  t.match(await from('192.0.2.2'), { status: 200 })
  t.equal(await status(`${endpoint}/-/live`, { 'x-forwarded-for': '192.0.2.1' }), 503, 'no probe of this machine')
})
t.test('bytes', async (t) => {
  const { as } = await start(t, { perKey: { bytes: { perSecond: 10, burst: 5000 } } })
  const put = (key: string, length: number) =>
    send(as('one'), { method: 'PUT', target: `/bucket${key}`, body: Buffer.alloc(length) })
  t.equal((await put('', 0)).status, 200)
  t.equal((await put('/large', 100_000)).status, 200, 'a request that has begun is completed')
  t.match(await put('/small', 1), { ...SLOW_DOWN, message: /bytes per second/ })
  t.equal((await send(as('two'), { method: 'GET', target: '/bucket/large' })).body.length, 100_000)
  t.match(await send(as('two'), { method: 'GET', target: '/' }), SLOW_DOWN, 'answers count, too')
})

t.test('requests in progress', async (t) => {
  const { as, list, endpoint } = await start(t, { total: { concurrency: 1 } })
  t.equal((await send(as('one'), { method: 'PUT', target: '/bucket' })).status, 200)
  const target = '/bucket/key'
  const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const put = await sendHead({ endpoint }, 'PUT', target, { ...headers, 'content-length': '1' })
  t.ok(put.continued)
  t.match(await list('two'), { ...SLOW_DOWN, message: /at the same time from all clients/ })
  put.request.end('x')
  t.match(await put.answer, { status: 200 })
  t.match(await list('two'), { status: 200 })
})

t.test('bytes that are declared and never come do not count', async (t) => {
  const total = { bytes: { perSecond: 1000, burst: 100_000 } }
  const { list, endpoint, scrape } = await start(t, { total, perAddress: total }, { passthrough: createPassthrough })
  const declared = { 'content-length': '9000000000000000' }
  for (const [method, path] of [
    ['POST', '/gateway/webrpc'],
    ['GET', '/gateway/login'],
    ['GET', '/bucket/key'],
    ['PUT', '/bucket/key'],
  ] as const) {
    const asked = open({ endpoint } as Endpoint, method, path, declared)
    const answered = answerTo(asked).catch(() => {})
    asked.flushHeaders()
    if (path !== '/gateway/webrpc') await answered
    const closed = new Promise((resolve) => asked.once('close', resolve))
    asked.destroy()
    await closed
  }
  for (let i = 0; i < 20; i++) t.match(await list('one'), { status: 200 })
  t.notMatch(await scrape(), /^dealgate_request_bytes_total.* 9/m)
})
t.test('clients wait and succeed', async (t) => {
  const server = await startDealgate(t, { args: ['--request-rate-per-key', '2/1'] })
  const s3 = sdkFor(t, server, { maxAttempts: 3 })
  const attempts: number[] = []
  for (let i = 0; i < 2; i++) attempts.push((await s3.listBuckets()).$metadata.attempts ?? 0)
  t.ok(Math.max(...attempts) > 1, 'the SDK has retried')
})
