import t, { type Test } from 'tap'
import type { Limits } from '../../src/api/limits.js'
import { defaultLimits } from '../../src/server/limits.js'
import type { Endpoint } from '../suites/sign.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { startInProcess } from '../support/server/in-process.js'
import { exchange, headText } from '../support/sign/raw.js'
import {
  type Answer,
  answerTo,
  type Begun,
  open,
  send,
  sendHead,
  sign,
  targetOf,
  UNSIGNED_PAYLOAD,
} from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/** What clients may have under way and on disk at once, and how slowly. */

const BUCKET = 'limits'
const BODY = Buffer.from('hello')
/** The answer beyond a limit. */
const FULL = { status: 503, code: 'SlowDown', headers: { 'retry-after': /^\d+$/ } }

async function start(t: Test, limits: Partial<Limits>) {
  const identities = ['one', 'two', 'three'].map((name) => {
    return { accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` }
  })
  const server = await startInProcess(t, 'full', { identities, limits: { ...defaultLimits, ...limits } })
  const { endpoint, gateway } = server
  const as = (name: string): Endpoint => {
    return { endpoint, region: 'us-east-1', accessKey: `${name}-key`, secretKey: `${name}-secret` }
  }
  t.equal((await send(as('one'), { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const user = new GatewayUser({ url: gateway.url, ...gateway.account })
  await user.login()
  await user.call('web.SetBucketPolicy', { bucketName: BUCKET, prefix: 'open/', policy: 'readwrite' })
  return { server, as, anonymous: { endpoint } as Endpoint }
}

/** Sends a body without a length. */
function putChunked(who: Endpoint, target: string, size: number): Promise<Answer> {
  const { headers } = sign(who, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  const request = open(who, 'PUT', target, { ...headers, 'transfer-encoding': 'chunked' })
  const answer = answerTo(request)
  request.end(Buffer.alloc(size))
  return answer
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
    t.match({ status, code, headers }, FULL, why)
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
  const target = targetOf(BUCKET, 'spooled')
  for (let i = 0; i < 3; i++) {
    t.equal((await putChunked(as('one'), target, 90_000)).status, 200, 'what was taken is given back')
    t.match(await putChunked(as('one'), target, 110_000), FULL)
  }
  t.equal((await send(as('one'), { method: 'HEAD', target })).headers['content-length'], '90000')
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

t.test('parts on disk have bounds, for each key and for all, also after a restart', async (t) => {
  const { server, as } = await start(t, { maxStagedBytes: 200_000, maxStagedBytesPerClient: 120_000 })
  async function create(name: string, key: string): Promise<string> {
    const { body } = await send(as(name), { method: 'POST', target: `${targetOf(BUCKET, key)}?uploads=` })
    return /<UploadId>([^<]+)</.exec(body.toString())?.[1] ?? ''
  }
  const partOf = (key: string, id: string, part: number) => `${targetOf(BUCKET, key)}?partNumber=${part}&uploadId=${id}`
  const put = (name: string, key: string, id: string, part: number, bytes: number) =>
    send(as(name), { method: 'PUT', target: partOf(key, id, part), body: Buffer.alloc(bytes) })

  const first = await create('one', 'a')
  t.equal((await put('one', 'a', first, 1, 60_000)).status, 200)
  t.equal((await put('one', 'a', first, 1, 50_000)).status, 200, 'a part that is replaced is given back')
  t.equal((await put('one', 'a', first, 2, 60_000)).status, 200)
  t.match(await put('one', 'a', first, 3, 20_000), FULL, 'the key has too much')

  await t.test('a part is refused by its length, before any of it was sent', async (t) => {
    const target = partOf('a', first, 3)
    const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
    const begun = await sendHead(as('one'), 'PUT', target, { ...headers, 'content-length': '20000' })
    t.match(await begun.answer, FULL)
    begun.request.destroy()
  })

  await t.test('a part without a length is refused when it has grown too large, and leaves nothing', async (t) => {
    const grow = (bytes: number) => putChunked(as('one'), partOf('a', first, 4), bytes)
    for (let i = 0; i < 3; i++) t.match(await grow(30_000), FULL)
    const small = await grow(9_000)
    t.equal(small.status, 200, small.body.toString())
  })

  const second = await create('two', 'b')
  t.equal((await put('two', 'b', second, 1, 70_000)).status, 200)
  t.match(await put('two', 'b', second, 2, 20_000), FULL, 'all together have too much, though the key has room')

  await server.restart()
  t.match(await put('one', 'a', first, 3, 20_000), FULL, 'what was there before the start counts')
  t.match(await put('two', 'b', second, 2, 20_000), FULL)
  const listed = await send(as('one'), { method: 'GET', target: `${targetOf(BUCKET, 'a')}?uploadId=${first}` })
  t.match(listed.body.toString(), /<PartNumber>1<.*<PartNumber>2<.*<PartNumber>4</s, 'and nothing of it is lost')

  const abort = { method: 'DELETE', target: `${targetOf(BUCKET, 'a')}?uploadId=${first}` } as const
  t.equal((await send(as('one'), abort)).status, 204)
  t.equal((await put('two', 'b', second, 2, 20_000)).status, 200, 'an upload that is aborted gives its bytes back')

  const { headers } = await send(as('two'), {
    method: 'PUT',
    target: partOf('b', second, 2),
    body: Buffer.alloc(10_000),
  })
  const etag = headers.etag
  const parts = `<Part><PartNumber>2</PartNumber><ETag>${etag}</ETag></Part>`
  const completed = await send(as('two'), {
    method: 'POST',
    target: `${targetOf(BUCKET, 'b')}?uploadId=${second}`,
    body: Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`),
  })
  t.equal(completed.status, 200, completed.body.toString())
  const third = await create('two', 'c')
  t.equal((await put('two', 'c', third, 1, 110_000)).status, 200, 'and so does one that is completed')
  t.match(await put('two', 'c', third, 2, 20_000), FULL)

  await server.restart({ uploadExpiryMs: 1 })
  await until('the sweep has given the bytes back', async () => {
    // One that is begun before the sweep looks is swept itself.
    const { status, code } = await put('two', 'd', await create('two', 'd'), 1, 110_000)
    if (status !== 200) t.match(code, /^(SlowDown|NoSuchUpload)$/)
    return status === 200
  })
})
