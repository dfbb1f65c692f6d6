import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { until } from '../../support/waiting.js'
import { startHanging } from '../state/hanging.js'
import { postgres, redis } from '../state/servers.js'
import { startSeveral } from '../state/several-proxies.js'

// A proxy stores a body, and its record is held up on the way to the state store until another proxy has stored the
// key.

for (const kind of [redis, postgres]) {
  for (const mode of ['full', 'legacy'] as const) {
    t.test(`${kind.name}, ${mode}: a record that arrives late replaces nothing`, { skip: kind.skip }, async (t) => {
      const server = await kind.start()
      t.teardown(() => server.stop())
      const way = await startHanging(t, server.url)
      const several = await startSeveral(t, server.url, mode)
      const a = await several.start('a', { stateUrl: way.url, lockLeaseMs: 1000, stateTimeoutMs: 500 })
      const b = await several.start('b', { lockLeaseMs: 1000 })
      t.equal((await b.send('PUT', '/photos')).status, 200)

      const passOn = way.holdAt('by-a-late')
      const late = await a.send('PUT', '/photos/k', {
        body: 'of a',
        headers: { 'x-amz-tagging': 'who=by-a-late', 'x-amz-meta-who': 'a', 'x-amz-checksum-crc32': 'oWr6tw==' },
      })
      t.equal(late.status, 503, late.body)
      const headers = { 'x-amz-tagging': 'who=b', 'x-amz-meta-who': 'b' }
      await until('the lease of a has expired', async () => {
        return (await b.send('PUT', '/photos/k', { body: 'the one of b', headers })).status === 200
      })
      passOn()
      // The record has arrived when the connection that carried it has been answered; a later one of b shows nothing.
      await sleep(500)
      t.match((await b.send('GET', '/photos/k', { query: { tagging: '' } })).body, '<Value>b</Value>')
      const got = await b.send('GET', '/photos/k')
      t.equal(got.body, 'the one of b')
      t.equal(got.headers['x-amz-meta-who'], 'b')
      t.equal(got.headers.etag, '"3dbdfb8578bb47c51e5f9fc35d79ecd6"')
    })
  }
}
