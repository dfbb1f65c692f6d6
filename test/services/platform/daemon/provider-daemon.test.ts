import t from 'tap'
import { FetchError, fetchCar } from '../../../../src/services/platform/daemon/fetch-car.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'
import { formOf, PRIVATE, startTasks } from '../tasks/task-scene.js'
import { CAR, carServer, csvOfUrls, filesOfCars, hasDeals, wholeCar } from './daemon-scene.js'

t.test('a URL that no request can be made of fails its deal and no other', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const upper = url.replace('http:', 'HTTPS:')
  const uuid = await tasks.post(PRIVATE, csvOfUrls(upper, upper, upper, url))
  await hasDeals(tasks, uuid, 'DownloadFailed', 'DownloadFailed', 'DownloadFailed', 'Downloaded')
})

t.test('URLs with a password', async (t) => {
  const { scene, client } = await startTasks(t)
  for (const url of ['http://%zz@x/', 'http://a@x/', 'https://a:b@x/']) {
    const signal = new AbortController().signal
    const car = { url, md5: null, size: 1, most: 1 }
    await t.rejects(fetchCar(car, temporaryFolder(t), 1000, signal), FetchError, url)
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
