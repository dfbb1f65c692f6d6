import { createClient } from '@keyv/redis'
import t from 'tap'
import { redis } from './servers.js'
import { startSeveral } from './several-proxies.js'

/**
 * Locks that a store has forgotten keep no proxy out: the gateway then decides by itself, in the transaction that
 * stores the object (docs/consistency.md).
 */

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 12)
const RACERS = 8

t.test('two proxies whose store is emptied again and again', { skip: redis.skip }, async (t) => {
  const store = await redis.start()
  t.teardown(() => store.stop())
  const client = createClient({ url: store.url })
  await client.connect()
  t.teardown(() => client.close())
  const several = await startSeveral(t, store.url)
  const proxies = [await several.start('one'), await several.start('two')] as const
  t.equal((await proxies[0].send('PUT', '/bucket')).status, 200)

  for (let round = 0; round < ROUNDS; round++) {
    const path = `/bucket/${round}`
    let racing = true
    const emptied = (async () => {
      while (racing)
        await client.sendCommand([
          'EVAL',
          "for _, k in ipairs(redis.call('KEYS', 'dealgate-lock:*')) do redis.call('DEL', k) end",
          '0',
        ])
    })()
    const race = async (headers: Record<string, string>, what: string) => {
      // Another body each time: an ETag that is there again would be met twice.
      const bodies = Array.from({ length: RACERS }, (_, i) => `${what} by ${i}`)
      const answers = await Promise.all(
        bodies.map((body, i) => proxies[i % 2 === 0 ? 0 : 1].send('PUT', path, { body, headers })),
      )
      const winners = bodies.filter((_, i) => answers[i]?.status === 200)
      t.equal(winners.length, 1, `${what}: one has won`)
      for (const { status } of answers) if (![200, 412, 503].includes(status)) t.fail(`${what}: ${status}`)
      t.equal((await proxies[0].send('GET', path)).body, winners[0], `${what}: and it is there`)
    }
    await race({ 'if-none-match': '*' }, `created ${round}`)
    const { etag = '' } = (await proxies[1].send('HEAD', path)).headers as Record<string, string>
    await race({ 'if-match': etag }, `replaced ${round}`)
    racing = false
    await emptied
  }
})
