import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { afterEachStep, CrashImages } from './crash-images.js'
import { PRIVATE, startOffline } from './offline-scene.js'

t.setTimeout(900_000)

const limits = { maxCarBytes: 50_000, stopMs: 100 }
const CARS = 2

interface Image {
  readonly folder: string
  /** The UUID that was answered; undefined while there was no answer. */
  readonly uuid: string | undefined
}

t.test('a crash after any step of an offline deal: a repeated token is one task', async (t) => {
  const scene = await startOffline(t, { limits, daemon: 'external' })
  for (let n = 0; n < CARS; n++) await scene.client.put('bucket', `object-${n}`, bytes(`object-${n}`, 40_000))
  const crashes = new CrashImages(scene.data, temporaryFolder(t))
  const images: Image[] = []
  let uuid: string | undefined
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push({ folder, uuid })
  }
  await afterEachStep(look, async () => {
    uuid = (await scene.post(PRIVATE, 'token')).data.deals.data.uuid
    await scene.show(String(uuid))
    look()
  })
  await scene.services.stop()
  t.ok(images.length > 10, `${images.length} crashes`)
  for (const [n, image] of images.entries()) await t.test(`image ${n}`, (t) => checkImage(t, image))
})

async function checkImage(t: Test, { folder, uuid }: Image): Promise<void> {
  const { post, show, services } = await startOffline(t, { limits, daemon: 'external' }, folder)
  const answer = await post(PRIVATE, 'token')
  t.match(answer, { http: 200, status: 'success' })
  const again = answer.data.deals.data.uuid
  if (uuid !== undefined) t.equal(again, uuid, 'the task that was answered')
  const { deals, task_status } = await show(again)
  t.equal(task_status, 'DealSent')
  t.equal(deals.length, CARS)
  t.same(deals.flatMap(({ objects }) => objects).sort(), ['object-0', 'object-1'])
  await services.stop()
  t.equal(count(folder, 'platform/platform.db', 'tasks'), 1, 'one task')
  t.equal(count(folder, 'platform/platform.db', 'deals'), CARS)
  t.equal(count(folder, 'network/network.db', 'deals'), CARS, 'each deal is proposed once')
  t.equal(count(folder, 'gateway/index.db', 'deals'), CARS)
  t.equal(count(folder, 'gateway/index.db', 'deal_files WHERE cid IS NOT NULL'), CARS)
  const files = readdirSync(join(folder, 'gateway', 'offline'), { recursive: true, encoding: 'utf8' })
  t.equal(files.filter((name) => /\.\w+$/.test(name)).length, CARS, 'no other file is left')
}

function count(folder: string, file: string, what: string): number {
  const db = new DatabaseSync(join(folder, file), { readOnly: true })
  try {
    return db.prepare(`SELECT count(*) AS count FROM ${what}`).get().count
  } finally {
    db.close()
  }
}
