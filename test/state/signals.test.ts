import { createClient } from '@keyv/redis'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { openState } from '../../src/state/open-state.js'
import { createBucketSettings } from '../../src/state/records/bucket-settings.js'
import { temporaryFolder } from '../support/content/folders.js'
import { creationTimesOf } from '../support/gateway/creation-times.js'
import { until } from '../support/waiting.js'
import { startHanging } from './hanging.js'
import { postgres, redis } from './servers.js'

const log = createLogger({ level: 'silent' })
const tags = (value: string) => [{ key: 'team', value }]

/** Where the first subscription is cut. */
const SUBSCRIBES = { redis: 'subscribe', postgres: 'LISTEN' }

/** Ends the connections that wait for signals. */
const cuts = {
  async redis(url: string) {
    const client = createClient({ url })
    await client.connect()
    await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await client.close()
  },
  async postgres(url: string) {
    const client = new pg.Client(url)
    await client.connect()
    const listens = "query LIKE 'LISTEN%' OR query = 'SELECT 1'"
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (${listens})`,
    )
    await client.end()
  },
}

async function hears(t: Test, value: string, get: () => Promise<unknown>): Promise<void> {
  await until(`the other proxy sees ${value}`, async () => JSON.stringify(await get()).includes(`"${value}"`))
  t.pass(`the other proxy sees ${value}`)
}

for (const kind of [redis, postgres]) {
  t.test(`changes of settings are told to the other proxies: ${kind.name}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const between = await startHanging(t, server.url)
    const folder = temporaryFolder(t)
    const here = await openState({ data: `${folder}/here`, url: server.url, log })
    t.teardown(() => here.close())
    between.cutAt(SUBSCRIBES[kind.name])
    const there = await openState({ data: `${folder}/there`, url: between.url, log, timeoutMs: 500 })
    t.teardown(() => there.close())
    const writer = createBucketSettings(here, creationTimesOf())
    // Its time stands still, so that nothing remembered grows old: only a signal makes it read again.
    const reader = createBucketSettings(there, creationTimesOf(), () => 0)
    const get = () => reader.get('photos', 'tagging').catch(() => 'fails')

    // Until the subscription is there, and with it the end of all that is remembered.
    await writer.set('photos', 'tagging', tags('first'))
    await hears(t, 'first', get)
    for (const value of ['second', 'third']) {
      await writer.set('photos', 'tagging', tags(value))
      await hears(t, value, get)
    }

    await cuts[kind.name](server.url)
    await writer.set('photos', 'tagging', tags('while it was cut'))
    await hears(t, 'while it was cut', get)
    await writer.set('photos', 'tagging', tags('after'))
    await hears(t, 'after', get)

    between.hang()
    await writer.set('photos', 'tagging', tags('while it hung'))
    between.go()
    await hears(t, 'while it hung', get)
  })
}
