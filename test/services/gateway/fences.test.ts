import { once } from 'node:events'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { Clock, rfc3339 } from '../../../services/clock.js'
import type { BucketRow } from '../../../services/gateway/store/buckets.js'
import { Fences } from '../../../services/gateway/store/fences.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type Client, connectTo, fence, start, startGateway } from './client.js'
import { openIndex } from './open-index.js'

/**
 * The embedded gateway carries out the writes to one key in the order of their fences, whenever they arrive:
 * docs/consistency.md.
 */

const bucketName = 'bucket'

async function gateway(t: Test): Promise<Client> {
  const client = await startGateway(t)
  await client.call('MakeBucket', { bucketName })
  return client
}

interface Order {
  readonly fence: number
  readonly writeId: string
  readonly expectedGeneration?: string
}

const put = (client: Client, key: string, body: string, order: Order) =>
  client.put(bucketName, key, body, {
    'x-cloud-fence': String(order.fence),
    'x-cloud-write-id': order.writeId,
    ...(order.expectedGeneration !== undefined && { 'x-cloud-expected-generation': order.expectedGeneration }),
  })
const remove = (client: Client, key: string, order: Order) =>
  client.call('RemoveObject', { bucketName, objects: [key], ...order })
const text = async (client: Client, key: string) => {
  const { status, text } = await client.get(bucketName, key)
  return status === 200 ? text : status
}

t.test('a write that comes after a later one changes nothing', async (t) => {
  const client = await gateway(t)
  const [first, second, third, fourth] = [fence(), fence(), fence(), fence()]
  for (const size of [10, 100_000]) {
    const key = `key-${size}`
    const body = (name: string) => name.padEnd(size, '.')
    const kept = await put(client, key, body('second'), { fence: second, writeId: 'w2' })
    t.equal(kept.status, 200)
    t.equal((await client.head(bucketName, key)).headers['x-cloud-write-id'], 'w2')

    const late = await put(client, key, body('first'), { fence: first, writeId: 'w1' })
    t.match(late, {
      status: 409,
      headers: { 'x-cloud-error-code': 'WriteOvertaken', 'x-cloud-fence': String(second) },
    })
    t.equal((await put(client, key, body('other'), { fence: second, writeId: 'other' })).status, 409, 'an equal one')
    t.match(await client.failure('RemoveObject', { bucketName, objects: [key], fence: first, writeId: 'r1' }), {
      data: { code: 'WriteOvertaken', fence: second },
    })
    t.equal(await text(client, key), body('second'))

    const again = await put(client, key, body('second'), { fence: second, writeId: 'w2' })
    t.equal(again.status, 200, 'the same write once more is known')
    t.equal(again.headers['x-cloud-generation'], kept.headers['x-cloud-generation'], 'and stores nothing again')

    await remove(client, key, { fence: third, writeId: 'r3' })
    await remove(client, key, { fence: third, writeId: 'r3' })
    t.equal((await put(client, key, body('second'), { fence: second, writeId: 'w2' })).status, 409, 'no resurrection')
    t.equal(await text(client, key), 404)
    t.equal((await put(client, key, body('fourth'), { fence: fourth, writeId: 'w4' })).status, 200)
    t.match(await client.failure('RemoveObject', { bucketName, objects: [key], fence: third, writeId: 'r3' }), {
      data: { code: 'WriteOvertaken' },
    })
    t.equal(await text(client, key), body('fourth'), 'a removal that arrives twice does not undo what came between')
  }
  await remove(client, 'absent', { fence: second, writeId: 'r' })
  t.equal((await put(client, 'absent', 'x', { fence: first, writeId: 'w' })).status, 409, 'removed before it was there')
})

t.test('an expectation is checked when the write takes effect', async (t) => {
  const client = await gateway(t)
  const order = (expectedGeneration: string) => ({ fence: fence(), writeId: `w${fence()}`, expectedGeneration })
  const made = await put(client, 'k', 'made', order('none'))
  t.equal(made.status, 200)
  const generation = String(made.headers['x-cloud-generation'])
  t.match(await put(client, 'k', 'again', order('none')), {
    status: 412,
    headers: { 'x-cloud-error-code': 'OtherGeneration' },
  })
  t.equal((await put(client, 'k', 'wrong', order('0123'))).status, 412)
  t.equal((await put(client, 'k', 'right', order(generation))).status, 200)
  t.equal((await put(client, 'k', 'late', order(generation))).status, 412)
  t.match(await client.failure('RemoveObject', { bucketName, objects: ['k'], ...order(generation) }), {
    data: { code: 'OtherGeneration' },
  })
  t.equal(await text(client, 'k'), 'right')
})

t.test('a client that knows nothing of fences writes last, and keeps out what was sent before', async (t) => {
  const client = await gateway(t)
  const old = Date.now() * 1000 - 1e6
  await client.put(bucketName, 'plain', 'plain')
  t.equal((await put(client, 'plain', 'old', { fence: old, writeId: 'w' })).status, 409)
  const high = fence()
  await put(client, 'plain', 'fenced', { fence: high, writeId: 'w' })
  await client.put(bucketName, 'plain', 'plain')
  t.equal((await put(client, 'plain', 'fenced', { fence: high, writeId: 'w' })).status, 409)
  await client.call('RemoveObject', { bucketName, objects: ['plain'] })
  t.equal((await put(client, 'plain', 'old', { fence: high + 1, writeId: 'w' })).status, 409)
  t.equal(await text(client, 'plain'), 404)

  await client.call('DeleteBucket', { bucketName })
  await client.call('MakeBucket', { bucketName })
  t.equal((await put(client, 'k', 'old', { fence: old, writeId: 'w' })).status, 409, 'nor does a bucket made again')
})

t.test('an order that is told late', async (t) => {
  const client = await gateway(t)
  const size = 200_000
  /** Sends all but the last byte, and returns how to go on. */
  const begin = async (key: string, writeId: string) => {
    const upload = request(`${client.url}/gateway/upload/${bucketName}/${key}`, {
      method: 'PUT',
      headers: {
        ...client.headers(),
        'content-length': size,
        'x-cloud-fence': 'late',
        'x-cloud-write-id': writeId,
      },
    })
    upload.write('x'.repeat(size - 1))
    return async () => {
      upload.end('x')
      const [answer] = await once(upload, 'response')
      answer.resume()
      return answer.statusCode
    }
  }
  const tell = (key: string, order: Order) =>
    client.call('FenceUpload', { bucketName, objectName: key, ...order }).then(
      () => undefined,
      (error) => error,
    )

  const [first, second] = [fence(), fence()]
  const finish = await begin('k', 'first')
  t.equal(await tell('k', { fence: first, writeId: 'first' }), undefined)
  t.equal((await put(client, 'k', 'second', { fence: second, writeId: 'second' })).status, 200)
  t.equal(await finish(), 409, 'overtaken after it was told')
  t.equal(await text(client, 'k'), 'second')

  const other = await begin('k', 'third')
  t.match(await tell('k', { fence: first, writeId: 'third' }), { data: { code: 'WriteOvertaken', fence: second } })
  t.match(await tell('k', { fence: fence(), writeId: 'third', expectedGeneration: '' }), {
    data: { code: 'OtherGeneration' },
  })
  t.equal(await other(), 503, 'without an order it is not stored')
  t.equal(await text(client, 'k'), 'second')

  const last = await begin('k', 'fourth')
  t.equal(await tell('k', { fence: fence(), writeId: 'fourth' }), undefined)
  t.equal(await last(), 200)
  t.equal((await client.head(bucketName, 'k')).headers['x-cloud-write-id'], 'fourth')
  t.equal(await tell('k', { fence: fence(), writeId: 'fifth' }), undefined, 'before the head has come')
  const early = await begin('k', 'fifth')
  t.equal(await early(), 200)
  t.equal(await tell('other', { fence: fence(), writeId: 'sixth' }), undefined)
  const elsewhere = await begin('k', 'sixth')
  t.equal(await elsewhere(), 503, 'a report of another key')
})

t.test('one write id for two different writes', async (t) => {
  const client = await gateway(t)
  const reused = { code: 'IdempotencyParameterMismatch' }
  const refusedUpload = { status: 409, headers: { 'x-cloud-error-code': reused.code } }
  for (const size of [10, 100_000]) {
    const body = (name: string) => name.padEnd(size, '.')
    const order = { fence: fence(), writeId: `w${size}` }
    const key = `key-${size}`
    t.equal((await put(client, key, body('first'), order)).status, 200)
    t.match(await client.failure('RemoveObject', { bucketName, objects: [key], ...order }), { data: reused })
    t.match(await put(client, key, body('other'), order), refusedUpload, 'an upload of other bytes')
    t.match(await put(client, key, 'shorter', order), refusedUpload, 'or of fewer')
    t.equal((await put(client, key, body('first'), order)).status, 200, 'the same upload is known')
    t.equal(await text(client, key), body('first'), 'nothing was changed')

    const removal = { fence: fence(), writeId: `r${size}` }
    await remove(client, key, removal)
    t.match(await put(client, key, body('first'), removal), refusedUpload, 'an upload in the place of a removal')
    t.match(await client.failure('FenceUpload', { bucketName, objectName: key, ...removal }), { data: reused })
    await remove(client, key, removal)
    t.equal(await text(client, key), 404)
    t.equal((await put(client, key, body('next'), { fence: fence(), writeId: 'next' })).status, 200)
  }
})

t.test('orders that make no sense', async (t) => {
  const client = await gateway(t)
  for (const [number, writeId] of [
    ['0', 'w'],
    ['1.5', 'w'],
    ['soon', 'w'],
    [String(2 ** 52 + 1), 'w'],
    ['5', ''],
    ['5', 'a b'],
    ['late', ''],
  ] as const) {
    const answer = await client.put(bucketName, 'k', 'x', { 'x-cloud-fence': number, 'x-cloud-write-id': writeId })
    t.equal(answer.status, 400, `${number} ${writeId}`)
  }
  for (const order of [
    { fence: 0, writeId: 'w' },
    { fence: 5 },
    { fence: 5, writeId: 'w'.repeat(129) },
    { fence: fence(), writeId: 'w', objects: ['a', 'b'] },
  ]) {
    const refused = await client.failure('RemoveObject', { bucketName, objects: ['k'], ...order })
    t.match(refused, { data: { code: 'InvalidArgument' } }, JSON.stringify(order))
  }
  t.same(await client.names(bucketName), [])
})

t.test('a complete body whose sender has gone is not stored', async (t) => {
  const client = await gateway(t)
  for (const size of [10, 100_000]) {
    const key = `gone-${size}`
    const head = { ...client.headers(), host: 'x', 'content-length': size }
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
    const upload = `PUT /gateway/upload/${bucketName}/${key} HTTP/1.1\r\n${lines.join('')}\r\n${'x'.repeat(size)}`
    await client.raw(upload, true)
    // The next write shares the queue with it, and is behind it.
    await client.put(bucketName, 'behind', 'x'.repeat(size))
    t.equal(await text(client, key), 404, `${size} bytes`)
  }
})

t.test('fences outlive a restart', async (t) => {
  const data = temporaryFolder(t)
  const high = fence()
  const before = await start(data)
  const client = await connectTo(before)
  await client.call('MakeBucket', { bucketName })
  await put(client, 'kept', 'kept', { fence: high, writeId: 'w' })
  await put(client, 'removed', 'x', { fence: high, writeId: 'w' })
  await remove(client, 'removed', { fence: high + 1, writeId: 'r' })
  await before.stop()

  const again = await start(data)
  const next = await connectTo(again)
  for (const key of ['kept', 'removed'])
    t.equal((await put(next, key, 'late', { fence: high - 1, writeId: 'late' })).status, 409, key)
  await again.stop()
})

t.test('what is kept of removed keys is bounded, and forgets nothing that matters', async (t) => {
  const db = await openIndex(t)
  const clock = new Clock()
  const created = rfc3339(1_000_000_000_000_000_000n)
  const [bucket, other] = await db.transaction(async ({ buckets }) => {
    await buckets.add('b', created, 1)
    await buckets.add('c', created, 2)
    return [(await buckets.find('b')) as BucketRow, (await buckets.find('c')) as BucketRow] as const
  })
  const fences = new Fences(clock, 500)
  const base = 2e15
  const rememberAll = (bucket: BucketRow, base: number) =>
    db.transaction(async (tables) => {
      for (let i = 1; i <= 3000; i++) {
        await fences.remember(tables, bucket, Buffer.from(`k${i}`), { fence: base + i, writeId: 'w', answer: null })
      }
    })
  const ofRemoved = (key: string) => fences.ofRemoved(db.read, bucket, Buffer.from(key))
  await rememberAll(bucket, base)
  let kept = 0
  for (let i = 1; i <= 3000; i++) if (await db.read.removed.find(bucket.id, Buffer.from(`k${i}`))) kept++
  t.equal(kept, 500)
  t.same(await ofRemoved('k3000'), { fence: base + 3000, writeId: 'w', answer: null })
  const forgotten = await ofRemoved('k7')
  t.ok(forgotten.fence >= base + 7, 'a forgotten key is below the floor')
  t.throws(() => fences.admit({ fence: base + 6, writeId: 'old' }, forgotten, undefined), { message: /later write/ })
  await rememberAll(other, 2 * base)
  t.ok((await ofRemoved('new')).fence < base + 3000, 'accounts refuse no writes of each other')
  t.same(await ofRemoved('k3000'), { fence: base + 3000, writeId: 'w', answer: null })
})
