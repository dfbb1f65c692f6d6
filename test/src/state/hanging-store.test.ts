import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { contentMd5 } from '../../support/content/content.js'
import type { TextAnswer } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { startHanging } from './hanging.js'
import { postgres, redis } from './servers.js'
import { startSeveral } from './several-proxies.js'

// What becomes of requests while the database of the state takes connections and commands and says nothing.

/** How long the store may take, ms: times below are multiples of it, which a busy machine must not exceed by itself. */
const STATE_TIMEOUT_MS = 2000
for (const kind of [redis, postgres]) {
  t.test(kind.name, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const between = await startHanging(t, server.url)
    const several = await startSeveral(t, between.url)
    const proxy = await several.start('one', { stateTimeoutMs: STATE_TIMEOUT_MS })
    t.equal((await proxy.send('PUT', '/bucket')).status, 200)
    t.equal((await proxy.send('PUT', '/bucket/k', { body: 'before' })).status, 200)
    t.equal((await fetch(`${proxy.endpoint}/-/ready`)).status, 200)

    between.hang()
    const deletion = '<Delete><Object><Key>k</Key></Object></Delete>'
    const ask = [
      () => proxy.send('PUT', '/bucket/k', { body: 'while it hangs' }),
      () => proxy.send('GET', '/bucket/k'),
      () => proxy.send('DELETE', '/bucket/k'),
      () => proxy.send('POST', '/bucket/k', { query: { uploads: '' } }),
      () => proxy.send('GET', '/bucket', { query: { tagging: '' } }),
      () => proxy.send('POST', '/bucket', { query: { delete: '' }, headers: contentMd5(deletion), body: deletion }),
    ]
    const unavailable = ({ status, body }: TextAnswer) =>
      t.ok(status === 503 || body.includes('ServiceUnavailable'), body)
    const begun = performance.now()
    for (const answer of await Promise.all(ask.map((one) => one()))) unavailable(answer)
    const took = performance.now() - begun
    // Each makes several calls to the store.
    t.ok(took < 8 * STATE_TIMEOUT_MS, `one deadline for all of a request: ${Math.round(took)} ms`)

    const before = performance.now()
    for (let round = 0; round < 3; round++) for (const one of ask) unavailable(await one())
    const later = performance.now() - before
    t.ok(later < 8 * STATE_TIMEOUT_MS, `18 requests, one after the other, are refused at once: ${Math.round(later)} ms`)
    t.equal((await fetch(`${proxy.endpoint}/-/ready`)).status, 503)
    t.ok(
      proxy.lines.some(({ msg, level }) => level >= 50 && msg.includes('state store does not answer')),
      'the log says so',
    )

    // Long enough for connections that lead nowhere to be given up and made anew, in vain.
    await sleep(3 * STATE_TIMEOUT_MS)
    between.go()
    await until('it is ready again', async () => (await fetch(`${proxy.endpoint}/-/ready`)).status === 200)
    // A lease whose call was lost is held until it runs out; until then writers of its key are answered SlowDown.
    await until('it stores again', async () => {
      const { status, body } = await proxy.send('PUT', '/bucket/k', { body: 'after' })
      if (status !== 200) t.match(body, /<Code>SlowDown<|<Code>ServiceUnavailable</)
      return status === 200
    })
    t.equal((await proxy.send('GET', '/bucket/k')).body, 'after')

    between.hang()
    t.equal((await proxy.send('GET', '/bucket/k')).status, 503)
    const closing = performance.now()
    await proxy.close()
    t.ok(performance.now() - closing < 20 * STATE_TIMEOUT_MS, 'it can be stopped while the store hangs')
    between.go()
  })
}
