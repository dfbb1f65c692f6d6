import { hash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { startHanging } from '../../src/state/hanging.js'
import { postgres } from '../../src/state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { onPostgres } from '../engine.js'
import { inProcess } from './child.js'
import type { Client } from './client.js'
import { DealClient, terms } from './deal-client.js'

const skip = postgres.skip || (onPostgres ? false : 'on PostgreSQL')
const bucketName = 'bucket'
const WRITERS = 4
/** Longer than the leases of processes last, ms. */
const AWAY_MS = 11_000

t.test('PostgreSQL is killed, and its standby takes over', { skip }, async (t) => {
  const options = ['-c', 'fsync=off', '-c', 'max_connections=400']
  const primary = await postgres.start(options)
  t.teardown(() => primary.stop())
  const standby = await primary.standby()
  t.teardown(() => standby.stop())
  // The address that follows the primary.
  const way = await startHanging(t, primary.url)
  const data = temporaryFolder(t)
  const start = () => inProcess(t, data, { database: way.url, limits: { reconcileMs: 200 } })
  const processes = await Promise.all([start(), start(), start()])
  const clients = processes.map(({ client }) => client)
  const at = (n: number) => clients[n % clients.length] as Client
  const first = at(0)
  await first.call('MakeBucket', { bucketName })
  for (const client of clients) client.token = first.token

  /** Hashes of the bodies that were acknowledged last, by key. */
  const kept = new Map<string, string>()
  let over = false
  let written = 0
  const writer = async (n: number) => {
    for (let round = 0; !over; round++) {
      const key = `${n}-${round % 20}`
      const body = randomBytes(round % 2 === 0 ? 1000 : 50_000)
      // With the order of the write: one that is repeated is the same write.
      const order = { 'x-cloud-fence': String(Date.now() * 1000 + round), 'x-cloud-write-id': `${n}-${round}` }
      const put = () => at(n + round).put(bucketName, key, body, order)
      await until(`a write of ${key}`, async () => {
        const { status, headers } = await put()
        const isPassing = status === 503 && headers['retry-after'] !== undefined
        if (status !== 200 && !isPassing) t.fail(`a write is answered with ${status}`)
        return status === 200
      })
      kept.set(key, hash('sha256', body))
      written++
    }
  }
  const writers = Promise.all(Array.from({ length: WRITERS }, (_, n) => writer(n)))
  writers.catch(() => {})
  const deal = async (n: number): Promise<string | undefined> => {
    const asked = new DealClient(at(n)).send(`deal/${bucketName}/dealt`, terms, { 'x-cloud-client-token': 'token' })
    const { status, text } = await asked
    return status === 200 ? JSON.parse(text).data.dealCid : undefined
  }
  t.equal((await first.put(bucketName, 'dealt', randomBytes(100_000))).status, 200)
  await until('writes are under way', () => written > 2 * WRITERS)
  const deals = Promise.all(clients.map((_, n) => until('a deal', () => deal(n))))
  deals.catch(() => {})

  await primary.kill9()
  const before = written
  await sleep(AWAY_MS)
  await standby.promote()
  way.moveTo(standby.url)
  await until('writes go on', () => written > before + WRITERS)
  t.equal(new Set(await deals).size, 1, 'one deal for the token')
  over = true
  await writers

  for (const [key, last] of kept) {
    const { status, body } = await at(kept.size).get(bucketName, key)
    if (status !== 200 || hash('sha256', body) !== last) t.fail(`${key} is not as it was written`, { status })
  }
  t.ok(kept.size > WRITERS, `${written} writes, ${before} of them before`)
  const db = new pg.Client(standby.url)
  await db.connect()
  const { rows } = await db.query(
    'SELECT (SELECT count(*)::int FROM dealgate_network.deals) AS network, (SELECT count(*)::int FROM dealgate_gateway.deals) AS gateway',
  )
  t.same(rows, [{ network: 1, gateway: 1 }], 'made once')
  await db.end()
})
