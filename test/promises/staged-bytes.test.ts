import t from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { startInProcess } from '../support/server/in-process.js'
import { type Answer, answerTo, open, send, sendHead, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

const BUCKET = 'staged'
const limits = { maxStagedBytes: 200_000, maxStagedBytesPerClient: 120_000 }
const identities = ['one', 'two'].map((name) => ({ accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` }))
const full = { status: 503, code: 'SlowDown', headers: { 'retry-after': /^\d+$/ } }

t.test('parts on disk have bounds, for each key and for all, also after a restart', async (t) => {
  const server = await startInProcess(t, 'full', { identities, limits })
  const as = (name: string): Endpoint => ({
    ...{ endpoint: server.endpoint, region: 'us-east-1' },
    ...{ accessKey: `${name}-key`, secretKey: `${name}-secret` },
  })
  t.equal((await send(as('one'), { method: 'PUT', target: `/${BUCKET}` })).status, 200)

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
  t.match(await put('one', 'a', first, 3, 20_000), full, 'the key has too much')

  await t.test('a part is refused by its length, before any of it was sent', async (t) => {
    const target = partOf('a', first, 3)
    const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
    const begun = await sendHead(as('one'), 'PUT', target, { ...headers, 'content-length': '20000' })
    t.match(await begun.answer, full)
    begun.request.destroy()
  })

  await t.test('a part without a length is refused when it has grown too large, and leaves nothing', async (t) => {
    const grow = (bytes: number): Promise<Answer> => {
      const target = partOf('a', first, 4)
      const { headers } = sign(as('one'), { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
      const request = open(as('one'), 'PUT', target, { ...headers, 'transfer-encoding': 'chunked' })
      const answer = answerTo(request)
      request.end(Buffer.alloc(bytes))
      return answer
    }
    for (let i = 0; i < 3; i++) t.match(await grow(30_000), full)
    const small = await grow(9_000)
    t.equal(small.status, 200, small.body.toString())
  })

  const second = await create('two', 'b')
  t.equal((await put('two', 'b', second, 1, 70_000)).status, 200)
  t.match(await put('two', 'b', second, 2, 20_000), full, 'all together have too much, though the key has room')

  await server.restart()
  t.match(await put('one', 'a', first, 3, 20_000), full, 'what was there before the start counts')
  t.match(await put('two', 'b', second, 2, 20_000), full)
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
  t.match(await put('two', 'c', third, 2, 20_000), full)

  await server.restart({ uploadExpiryMs: 1 })
  await until('the sweep has given the bytes back', async () => {
    // One that is begun before the sweep looks is swept itself.
    const { status, code } = await put('two', 'd', await create('two', 'd'), 1, 110_000)
    if (status !== 200) t.match(code, /^(SlowDown|NoSuchUpload)$/)
    return status === 200
  })
})
