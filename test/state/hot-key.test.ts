import t from 'tap'
import { postgres, redis } from './servers.js'
import { startSeveral } from './several-proxies.js'

// Many writers of one key at several proxies.

const WRITERS = 48
const ROUNDS = 4

/**
 * Time that each write may take, as a multiple of that of one writer alone, times the writers: far above what is fair.
 */
const UNFAIR = 4

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
    const alone: number[] = []
    for (let i = 0; i < 20; i++) {
      const began = performance.now()
      await one?.send('PUT', '/hot/key', { body: `${i}` })
      alone.push(performance.now() - began)
    }
    const usual = alone.sort((a, b) => a - b)[10] ?? 0
    const times: number[] = []
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let round = 0; round < ROUNDS; round++) {
          const began = performance.now()
          const answer = await proxies[writer % proxies.length]?.send('PUT', '/hot/key', { body: `${writer}/${round}` })
          times.push(performance.now() - began)
          if (answer?.status !== 200) t.fail(`${answer?.status} ${answer?.code}`)
        }
      }),
    )
    times.sort((a, b) => a - b)
    const [p50, p99] = [0.5, 0.99].map((share) => Math.round(times[Math.floor(times.length * share)] ?? 0))
    const bound = Math.round(WRITERS * usual * UNFAIR)
    t.comment(`${usual.toFixed(1)} ms alone, ${WRITERS} writers: p50 ${p50} ms, p99 ${p99} ms, bound ${bound} ms`)
    t.ok((p99 ?? 0) < bound, 'no writer waits for much longer than all others together write')
    t.match((await one?.send('GET', '/hot/key'))?.body, /^\d+\/3$/, 'a last write of a writer is there')
  })
}
