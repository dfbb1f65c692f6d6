import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { blocks } from '../../../../src/services/platform/daemon/addresses.js'
import {
  type Asking,
  FetchError,
  fetchCar,
  type WantedCar,
} from '../../../../src/services/platform/daemon/fetch-car.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'
import { formOf, PRIVATE, startTasks, tasksOf } from '../tasks/task-scene.js'
import { CAR, carServer, csvOfUrls, filesOfCars, hasDeals, wholeCar } from './daemon-scene.js'

const servers = { allowed: blocks('127.0.0.1'), own: [] }
const asking: Asking = { idleMs: 60_000, graceMs: 60_000, bytesPerSecond: 1000, now: () => 0, servers }

function wanted(url: string): WantedCar {
  return { url, md5: null, size: 1000, most: 1000, reserve: () => true }
}

t.test('a URL that no request can be made of fails its deal and no other', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const upper = url.replace('http:', 'HTTPS:')
  const uuid = await tasks.post(PRIVATE, csvOfUrls(upper, upper, upper, url))
  await hasDeals(tasks, uuid, 'DownloadFailed', 'DownloadFailed', 'DownloadFailed', 'Downloaded')
})

t.test('a URL causes no request to another server of this machine, and its outcome does not tell of one', async (t) => {
  let requests = 0
  const url = await carServer(t, (_, response) => {
    requests++
    response.end(CAR)
  })
  const closed = 'http://127.0.0.1:9/'
  const tasks = await startTasks(t, { daemon: 'embedded', cars: { networks: [] } })
  const elsewhere = url.replace('127.0.0.1', 'localhost')
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url, elsewhere, closed))
  const deals = await hasDeals(tasks, uuid, 'DownloadFailed', 'DownloadFailed', 'DownloadFailed')
  t.equal(requests, 0)
  t.equal(deals[0]?.note, deals[2]?.note, 'a server that listens and one that does not look alike')
})

t.test('URLs with a password', async (t) => {
  const { scene, client } = await startTasks(t)
  for (const url of ['http://%zz@x/', 'http://a@x/', 'https://a:b@x/']) {
    const signal = new AbortController().signal
    await t.rejects(fetchCar(wanted(url), join(temporaryFolder(t), 'a.car'), asking, signal), FetchError, url)
    const body = formOf(PRIVATE, csvOfUrls(url))
    t.match(await scene.call('POST', '/tasks', { body, token: client }), { status: 400 }, 'is refused')
  }
})

t.test('what the owner writes during a fetch stays', async (t) => {
  const held: (() => void)[] = []
  const url = await carServer(t, (_, response) => {
    response.writeHead(200, { 'content-length': CAR.length })
    response.write(CAR.subarray(0, -1))
    held.push(() => response.end(CAR.subarray(-1)))
  })
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url))
  await until('the fetch has begun', () => held.length === 1 && filesOfCars(tasks).length === 1)
  const [deal] = (await tasks.task(uuid)).deal
  t.match(await tasks.put(`/my_miner/deals/${deal.id}`, { status: 'DealActive' }), { status: 200 })
  held[0]?.()
  const status = async (): Promise<string> => (await tasks.task(uuid)).deal[0].status
  await until('the fetch is over', async () => filesOfCars(tasks).length === 0 || (await status()) !== 'DealActive')
  t.match(await tasks.task(uuid), { deal: [{ status: 'DealActive' }], task: { status: 'Completed' } })
})

t.test('a server that is too slow on average', async (t) => {
  let now = 0
  const url = await carServer(t, (_, response) => {
    const drip = (): void => {
      now += 30_000
      response.write('.', () => !response.destroyed && setImmediate(drip))
    }
    drip()
  })
  const folder = temporaryFolder(t)
  const signal = new AbortController().signal
  const fetching = fetchCar(wanted(url), join(folder, 'a.car'), { ...asking, now: () => now }, signal)
  await t.rejects(fetching, { name: 'FetchError', message: /less than 1000 bytes per second/ })
  t.same(readdirSync(folder), [], 'leaves no file')
})

t.test('a server that sends a head without an end', async (t) => {
  const url = await carServer(t, (_, response) => {
    const more = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 1)
    response.on('close', () => clearInterval(more))
  })
  const signal = new AbortController().signal
  const target = join(temporaryFolder(t), 'a.car')
  await t.rejects(fetchCar(wanted(url), target, { ...asking, idleMs: 100 }, signal), { name: 'FetchError' })
})

t.test('slow servers of one user hold up no other user', async (t) => {
  let held = 0
  const slow = await carServer(t, (_, response) => {
    held++
    response.writeHead(200, { 'content-length': CAR.length })
    response.write(CAR.subarray(1))
  })
  const fast = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  await tasks.post(PRIVATE, csvOfUrls(...new Array<string>(6).fill(slow)))
  await until('the first fetches have begun', () => held === 2)
  const other = tasksOf(tasks.scene, tasks.provider, await tasks.scene.addUser('other@example.com'))
  const uuid = await other.post(PRIVATE, csvOfUrls(fast, fast, fast))
  await hasDeals(other, uuid, 'Downloaded', 'Downloaded', 'Downloaded')
  t.equal(held, 2)
})

t.test('CARs beyond the room wait, and make room when they are imported', async (t) => {
  const url = await carServer(t, ({ url }, response) => {
    if (url === '/unknown') response.write(CAR)
    response.end(url === '/unknown' ? '' : CAR)
  })
  const tasks = await startTasks(t, { daemon: 'embedded', cars: { mostBytes: 2.5 * CAR.length } })
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url, url, url))
  const deals = await hasDeals(tasks, uuid, 'Downloaded', 'Downloaded', 'Created')
  const second = await tasks.post(PRIVATE, `file_source_url\n${url}/unknown\n`)
  // The first task keeps its turn; a look at the disk after a restart finds the same.
  const again = await tasks.scene.restart()
  const later = tasksOf(again, tasks.provider, tasks.client)
  t.equal(filesOfCars(later).length, 2)
  t.match(await later.put(`/my_miner/deals/${deals[0]?.id}`, { status: 'DealActive' }), { status: 200 })
  t.match(await later.put(`/my_miner/deals/${deals[1]?.id}`, { status: 'ImportFailed' }), { status: 200 })
  const third = await later.post(PRIVATE, csvOfUrls(url))
  await hasDeals(later, uuid, 'DealActive', 'ImportFailed', 'Downloaded')
  await hasDeals(later, second, 'DownloadFailed')
  await hasDeals(later, third, 'Downloaded')
  t.equal(filesOfCars(later).length, 2)
})

t.test('a CAR that never finds room, and one whose size the server names', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded', cars: { mostBytes: 1.5 * CAR.length } })
  const uuid = await tasks.post(PRIVATE, `file_source_url,file_size\n${url},${2 * CAR.length}\n${url},\n${url},\n`)
  await hasDeals(tasks, uuid, 'DownloadFailed', 'Downloaded', 'Waiting')
  t.equal(filesOfCars(tasks).length, 1)
})

t.test('the note of a failure says nothing of the server', async (t) => {
  const url = await carServer(t, ({ url }, response) => {
    if (url === '/short') response.end('short')
    else response.writeHead(404).end()
  })
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const urls = [`${url}/missing`, `${url}/short`, 'http://169.254.169.254/', 'http://127.0.0.1:1/']
  const uuid = await tasks.post(PRIVATE, csvOfUrls(...urls))
  const deals = await hasDeals(tasks, uuid, ...urls.map(() => 'DownloadFailed'))
  t.same(new Set(deals.map(({ note }) => note)).size, 1)
})
