import t from 'tap'
import { postgres, redis } from '../state/servers.js'
import { startSeveral } from '../state/several-proxies.js'

// Many writers of one key at several proxies.

const WRITERS = 48
const ROUNDS = 10

/** Most writes of others that may end while one waits, as a multiple of the writers: far above what is fair. */
const UNFAIR = 6

for (const kind of [redis, postgres]) {
  t.test(kind.name, { skip: kind.skip, timeout: 300_000 }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const several = await startSeveral(t, server.url)
    const proxies = await Promise.all(
      ['one', 'two', 'three'].map((name) => several.start(name, { limits: { keyWaitMs: 60_000 } })),
    )
    const [one] = proxies
    await one?.send('PUT', '/hot')
    let ended = 0
    const waits: number[] = []
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let round = 0; round < ROUNDS; round++) {
          const before = ended
          const answer = await proxies[writer % proxies.length]?.send('PUT', '/hot/key', { body: `${writer}/${round}` })
          waits.push(ended++ - before)
          if (answer?.status !== 200) t.fail(`${answer?.status} ${answer?.code}`)
        }
      }),
    )
    waits.sort((a, b) => a - b)
    const [p50, p99] = [0.5, 0.99].map((share) => waits[Math.floor(waits.length * share)] ?? 0)
    t.comment(`${WRITERS} writers: while a write waits, ${p50} others end (p50), ${p99} (p99)`)
    t.ok((p99 ?? 0) < WRITERS * UNFAIR, 'no writer waits while the others write again and again')
    t.match(
      (await one?.send('GET', '/hot/key'))?.body,
      new RegExp(`^\\d+/${ROUNDS - 1}$`),
      'a last write of a writer is there',
    )
  })
}
