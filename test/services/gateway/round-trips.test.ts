import pg from 'pg'
import t from 'tap'
import { emptyDatabase, onPostgres } from '../engine.js'
import { startGateway } from './client.js'

/**
 * Counts how often something waits for PostgreSQL: what is sent while an answer is awaited on the same connection takes
 * no round trip of its own. Work in the background, for leases, is not counted.
 */
function countRoundTrips(t: { teardown(run: () => void): void }): () => number {
  let count = 0
  const waiting = new WeakMap<object, number>()
  const { query } = pg.Client.prototype
  t.teardown(() => {
    pg.Client.prototype.query = query
  })
  const counted = function (this: pg.Client, ...given: unknown[]): unknown {
    const [asked] = given as [string | { readonly text: string }]
    const answered = (query as (...given: unknown[]) => unknown).apply(this, given)
    const text = typeof asked === 'string' ? asked : asked.text
    if (/\blease\b/.test(text)) return answered
    // A pool gives it a connection that waits for nothing.
    if (!(answered instanceof Promise)) {
      count++
      return answered
    }
    const before = waiting.get(this) ?? 0
    if (before === 0) count++
    waiting.set(this, before + 1)
    const ended = () => void waiting.set(this, (waiting.get(this) ?? 1) - 1)
    answered.then(ended, ended)
    return answered
  }
  pg.Client.prototype.query = counted as typeof query
  return () => count
}

t.test('round trips of a write', { skip: onPostgres ? false : 'on PostgreSQL' }, async (t) => {
  const roundTrips = countRoundTrips(t)
  const client = await startGateway(t, { database: await emptyDatabase() })
  const bucketName = 'bucket'
  await client.call('MakeBucket', { bucketName })
  let writes = 0
  /** The least of some times: other work may go on meanwhile. */
  const least = async (key: (n: number) => string, body: string): Promise<number> => {
    const all: number[] = []
    for (let n = 0; n < 10; n++) {
      writes++
      const order = { 'x-cloud-fence': String(Date.now() * 1000 + writes), 'x-cloud-write-id': `w${writes}` }
      const before = roundTrips()
      const { status } = await client.put(bucketName, key(n), body, order)
      if (status !== 200) t.fail(`a write is answered with ${status}`)
      all.push(roundTrips() - before)
    }
    return Math.min(...all)
  }
  const large = 'x'.repeat(100_000)
  const counts = {
    'a small object': await least((n) => `small-${n}`, 'x'),
    overwritten: await least(() => 'small', 'x'),
    'a large object': await least((n) => `large-${n}`, large),
    'overwritten, too': await least(() => 'large', large),
  }
  for (const [what, count] of Object.entries(counts)) t.ok(count > 0 && count <= 8, `${what}: ${count}`)
})
