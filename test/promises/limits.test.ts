import t, { type Test } from 'tap'
import type { Limits } from '../../src/api/limits.js'
import { defaultLimits } from '../../src/server/limits.js'
import type { Endpoint } from '../suites/sign.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { startInProcess } from '../support/server/in-process.js'
import { exchange, headText } from '../support/sign/raw.js'
import { answerTo, type Begun, open, send, sendHead, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** What clients may have under way at once, and how slowly. */

const BUCKET = 'limits'
const BODY = Buffer.from('hello')

async function start(t: Test, limits: Partial<Limits>) {
  const identities = ['one', 'two', 'three'].map((name) => ({
    accessKeyId: `${name}-key`,
    secretAccessKey: `${name}-secret`,
  }))
  const { endpoint, gateway } = await startInProcess(t, 'full', { identities, limits: { ...defaultLimits, ...limits } })
  const as = (name: string): Endpoint => ({
    endpoint,
    region: 'us-east-1',
    accessKey: `${name}-key`,
    secretKey: `${name}-secret`,
  })
  t.equal((await send(as('one'), { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const user = new GatewayUser({ url: gateway.url, ...gateway.account })
  await user.login()
  await user.call('web.SetBucketPolicy', { bucketName: BUCKET, prefix: 'open/', policy: 'readwrite' })
  return { as, anonymous: { endpoint } as Endpoint }
}

/** Begins an upload and waits until the server asks for its body, or answers without. */
function begin(who: Endpoint, key: string): Promise<Begun> {
  const target = targetOf(BUCKET, key)
  const signed =
    who.accessKey === undefined ? {} : sign(who, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD }).headers
  return sendHead(who, 'PUT', target, { ...signed, 'content-length': String(BODY.length) })
}

async function finish({ request, answer }: Begun): Promise<number> {
  request.end(BODY)
  return (await answer).status
}

t.test('bodies at once, of one client and of all', async (t) => {
  const { as, anonymous } = await start(t, { maxBodies: 4, maxBodiesPerClient: 2 })
  const refused = async (who: Endpoint, why: string) => {
    const begun = await begin(who, 'open/x')
    const { status, code, headers } = await begun.answer
    begun.request.destroy()
    t.match({ status, code, headers }, { status: 503, code: 'SlowDown', headers: { 'retry-after': /^\d+$/ } }, why)
    t.equal(begun.continued, false, `${why}: the body is not asked for`)
  }
  const first = await begin(as('one'), 'a')
  const second = await begin(as('one'), 'b')
  await refused(as('one'), 'a third of the same key')
  const other = await begin(as('two'), 'c')
  t.same([first.continued, second.continued, other.continued], [true, true, true])
  t.equal(await finish(first), 200)
  const third = await begin(as('one'), 'd')
  t.equal(third.continued, true, 'there is room again')
  const fourth = await begin(as('two'), 'e')
  await refused(as('three'), 'a fifth of all')
  for (const begun of [second, other, third, fourth]) t.equal(await finish(begun), 200)

  const unsigned = [await begin(anonymous, 'open/f'), await begin(anonymous, 'open/g')]
  await refused(anonymous, 'more than half without a signature')
  const signed = [await begin(as('one'), 'h'), await begin(as('two'), 'i')]
  for (const begun of [...unsigned, ...signed]) t.equal(await finish(begun), 200)
  const gone = await begin(as('one'), 'j')
  gone.request.destroy()
  // What a client that went away held is free once the server has noticed.
  for (let i = 0; i < 100; i++) {
    const again = await begin(as('one'), 'k')
    t.equal(await finish(again), 200)
  }
})

t.test('bytes of bodies without a length on disk', async (t) => {
  const { as } = await start(t, { maxSpoolBytes: 150_000, maxSpoolBytesPerClient: 100_000 })
  const put = (who: Endpoint, size: number) => {
    const target = targetOf(BUCKET, 'spooled')
    const { headers } = sign(who, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
    const request = open(who, 'PUT', target, { ...headers, 'transfer-encoding': 'chunked' })
    const answer = answerTo(request)
    request.end(Buffer.alloc(size))
    return answer
  }
  for (let i = 0; i < 3; i++) {
    t.equal((await put(as('one'), 90_000)).status, 200, 'what was taken is given back')
    t.match(await put(as('one'), 110_000), { status: 503, code: 'SlowDown', headers: { 'retry-after': /^\d+$/ } })
  }
  t.equal(
    (await send(as('one'), { method: 'HEAD', target: targetOf(BUCKET, 'spooled') })).headers['content-length'],
    '90000',
  )
})

for (const [what, pauseMs] of [
  ['trickles', 50],
  ['stalls', undefined],
] as const)
  t.test(`a body that ${what}`, async (t) => {
    const { as } = await start(t, { bodyIdleMs: 1000, minBodyRate: pauseMs === undefined ? 0 : 1000 })
    const target = targetOf(BUCKET, 'slow')
    const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
    let trickle: NodeJS.Timeout | undefined
    const { text } = await exchange(as('one'), (socket) => {
      socket.write(`${headText('PUT', target, { ...headers, 'content-length': '1000000' })}x`)
      if (pauseMs !== undefined) trickle = setInterval(() => socket.write('x'), pauseMs)
    })
    clearInterval(trickle)
    t.match(text, /^HTTP\/1.1 400 .*<Code>RequestTimeout<\/Code>/s)
  })
