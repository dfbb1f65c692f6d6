import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { openState } from '../../src/state/open-state.js'
import { createBucketSettings } from '../../src/state/records/bucket-settings.js'
import { temporaryFolder } from '../support/content/folders.js'
import { creationTimesOf } from '../support/gateway/creation-times.js'
import { until } from '../support/waiting.js'
import { postgres, redis } from './servers.js'

const log = createLogger({ level: 'silent' })
const tags = (value: string) => [{ key: 'team', value }]

async function hears(t: Test, value: string, get: () => Promise<unknown>): Promise<void> {
  await until(`the other proxy sees ${value}`, async () => JSON.stringify(await get()).includes(`"${value}"`))
  t.pass(`the other proxy sees ${value}`)
}

for (const kind of [redis, postgres]) {
  t.test(`changes of settings are told to the other proxies: ${kind.name}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    const folder = temporaryFolder(t)
    const here = await openState({ data: `${folder}/here`, url: server.url, log })
    t.teardown(() => here.close())
    const there = await openState({ data: `${folder}/there`, url: server.url, log })
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
  })
}
