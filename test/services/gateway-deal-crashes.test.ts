import { randomBytes, randomInt } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { md5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { until } from '../support/waiting.js'
import { DealClient, type Envelope, UNTIL_ACTIVE } from './deal-client.js'
import { inProcess } from './gateway-child.js'

/**
 * One moment after the other is in gateway-crash-points; here many things happen at once, and a process really dies.
 * The suite runs a sample; `npm run stress` runs more.
 */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 3)
/** Of objects in the index and in files. */
const SIZES = [300, 150_000]
const LONGEST_ROUND_MS = process.env.DEALGATE_STRESS_ROUNDS ? 1500 : 700

t.setTimeout(900_000 + ROUNDS * 30_000)

interface Known {
  readonly key: string
  readonly size: number
  /** MD5 of what it may hold: one, but while an upload is not answered. */
  readonly possible: Set<string>
}

interface Order {
  readonly token: string
  /** Undefined: the bucket. */
  readonly key: string | undefined
  /** Of the answer, if there was one. */
  dealCid?: string
}

t.test('kill -9 in deals, evictions and retrievals: nothing lost, nothing twice, nothing left over', async (t) => {
  const data = temporaryFolder(t)
  const objects: Known[] = Array.from({ length: 6 }, (_, index) => {
    return { key: `folder/${index}`, size: SIZES[index % 2] ?? 0, possible: new Set() }
  })
  const orders: Order[] = []
  const seen = { evicted: 0, broughtBack: 0, unanswered: 0 }

  for (let round = 0; round < ROUNDS; round++) {
    const { child, client: gateway } = await inProcess(t, data)
    const client = new DealClient(gateway)
    if (round === 0) {
      await gateway.call('MakeBucket', { bucketName: 'bucket' })
      for (const object of objects) await upload(client, object)
    }
    for (const order of orders.filter(({ dealCid }) => dealCid === undefined)) await place(client, order)
    await client.advance(UNTIL_ACTIVE)

    const exited = new Promise((resolve) => child.once('exit', resolve))
    const work = objects.map(async (object) => {
      try {
        for (;;) await oneStep(client, object, orders, seen)
      } catch {
        // The process is gone.
      }
    })
    await delay(randomInt(LONGEST_ROUND_MS))
    child.kill('SIGKILL')
    await Promise.all([...work, exited])
    seen.unanswered += orders.filter(({ dealCid }) => dealCid === undefined).length
  }

  const { child, client: gateway } = await inProcess(t, data)
  const client = new DealClient(gateway)
  for (const order of orders) {
    const { dealCid } = order
    await place(client, order)
    if (dealCid !== undefined) t.equal(order.dealCid, dealCid, 'the token has the deal that was answered')
  }
  for (const { key, possible } of objects) {
    t.match(await client.retrieve('bucket', key), { status: 'success' })
    const { status, body, headers } = await gateway.get('bucket', key)
    t.equal(status, 200)
    t.ok(possible.has(md5(body)), `${key} has the bytes it was given`)
    t.equal(headers.etag, `"${md5(body)}"`)
    t.same(await cidsOf(client.retrieve('bucket', key)), ordered(orders, key), 'each order is one deal')
  }
  t.same(await cidsOf(client.history('bucket')), ordered(orders, undefined))

  const { objects: listed } = await gateway.call('ListObjects', { bucketName: 'bucket', delimiter: '' })
  const inFiles = listed.filter(({ size }: { size: number }) => size > 32 * 1024)
  await until(
    'only the files of objects are left',
    () => names(join(data, 'gateway', 'objects')).length === inFiles.length,
  )
  t.equal(
    await client.used(),
    listed.reduce((sum: number, { size }: { size: number }) => sum + size, 0),
  )
  child.kill('SIGKILL')
  t.equal(count(join(data, 'gateway', 'index.db'), 'bodies'), listed.length - inFiles.length)
  t.equal(count(join(data, 'gateway', 'index.db'), 'deals WHERE record IS NULL'), 0)
  t.equal(count(join(data, 'gateway', 'index.db'), 'deal_files WHERE cid IS NULL'), 0)
  t.equal(count(join(data, 'network', 'network.db'), 'deals'), orders.length, 'the network has no others')
  t.comment({ ...seen, orders: orders.length })
})

async function oneStep(
  client: DealClient,
  object: Known,
  orders: Order[],
  seen: { evicted: number; broughtBack: number },
): Promise<void> {
  const { key } = object
  const kind = randomInt(10)
  if (kind < 3) {
    const order: Order = { token: randomBytes(8).toString('hex'), key: randomInt(6) === 0 ? undefined : key }
    orders.push(order)
    await place(client, order)
    await client.advance(UNTIL_ACTIVE)
  } else if (kind < 6) {
    const { headers } = await client.gateway.head('bucket', key)
    const { status } = await client.evict('bucket', key, String(headers['x-cloud-generation']))
    if (status === 'success') seen.evicted++
  } else if (kind < 9) {
    const { message } = await client.retrieve('bucket', key)
    if (message === 'The object has been brought back.') seen.broughtBack++
  } else {
    await upload(client, object)
  }
}

async function upload(client: DealClient, { key, size, possible }: Known): Promise<void> {
  const body = randomBytes(size)
  possible.add(md5(body))
  await client.put('bucket', key, body)
  possible.clear()
  possible.add(md5(body))
}

async function place(client: DealClient, order: Order): Promise<void> {
  const { token, key } = order
  const { status, data, message } =
    key === undefined ? await client.deals('bucket', {}, token) : await client.deal('bucket', key, {}, token)
  if (status !== 'success') throw new Error(message)
  order.dealCid = data.dealCid
}

async function cidsOf(history: Promise<Envelope>): Promise<string[]> {
  const { data } = await history
  return data.deals.map((deal: { data: { dealCid: string } }) => deal.data.dealCid).sort()
}

function ordered(orders: readonly Order[], key: string | undefined): (string | undefined)[] {
  return orders
    .filter((order) => order.key === key)
    .map(({ dealCid }) => dealCid)
    .sort()
}

function names(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
}

function count(file: string, what: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return db.prepare(`SELECT count(*) AS count FROM ${what}`).get().count
  } finally {
    db.close()
  }
}
