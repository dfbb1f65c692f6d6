import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { listen } from '../../../support/server/listen.js'
import { until } from '../../../support/waiting.js'
import { CAR, carServer, csvOfUrls, filesOfCars, wholeCar } from '../daemon/daemon-scene.js'
import { PRIVATE, PUBLIC, startTasks, type TaskScene } from './task-scene.js'

/** Waits until no deal of the task is on its way. */
function settled({ task }: TaskScene, uuid: string): Promise<{ status: string; note: string; file_path: string }[]> {
  return until('the provider is done', async () => {
    const { deal } = await task(uuid)
    const onTheWay = deal.some(({ status }: { status: string }) => ['Created', 'Downloading'].includes(status))
    return onTheWay ? undefined : deal
  })
}

t.test('a provider fetches the CAR of its deal and verifies it', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url))
  const [deal] = await settled(tasks, uuid)
  t.match(deal, { status: 'Downloaded', note: '', file_path: /^t01000\/\d+\.car$/ })
  t.ok(readFileSync(join(tasks.scene.folder, 'platform', 'cars', deal?.file_path ?? '')).equals(CAR))
  await tasks.scene.network.control.advance(1)
  t.match((await tasks.task(uuid)).deal, [{ status: 'ReadyForImport' }])
})

t.test('the provider of a public task begins when its bid has won', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PUBLIC, csvOfUrls(url))
  await tasks.scene.network.control.advance(19)
  t.match((await tasks.task(uuid)).deal, [{ status: 'Created' }])
  await tasks.scene.network.control.advance(1)
  t.match(await settled(tasks, uuid), [{ status: 'Downloaded' }])
})

t.test('failures have a note, and leave no file', async (t) => {
  const url = await carServer(t, ({ url }, response) => {
    if (url === '/missing') response.writeHead(404).end('no')
    else if (url === '/moved') response.writeHead(302, { location: '/' }).end()
    else if (url === '/other') response.end(Buffer.alloc(CAR.length))
    else if (url === '/short') response.end(CAR.subarray(1))
    else if (url === '/endless') {
      const more = (): void => {
        while (!response.destroyed && response.write(CAR));
      }
      response.on('drain', more)
      more()
    } else if (url === '/cut') {
      response.writeHead(200, { 'content-length': CAR.length })
      response.write(CAR.subarray(0, 1000), () => response.destroy())
    } else response.end(CAR)
  })
  const gone = createServer()
  const closed = await listen(gone)
  await new Promise((resolve) => gone.close(resolve))
  const paths = ['/missing', '/moved', '/other', '/short', '/endless', '/cut', '/whole']
  const urls = [closed, ...paths.map((path) => url + path)]
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PRIVATE, csvOfUrls(...urls))
  const deals = await settled(tasks, uuid)
  for (const [n, url] of urls.entries()) {
    const isWhole = url.endsWith('/whole')
    const note = isWhole ? '' : 'The CAR cannot be fetched, or is not the one that the task names.'
    t.match(deals[n], { status: isWhole ? 'Downloaded' : 'DownloadFailed', note }, url)
  }
  t.equal(filesOfCars(tasks).length, 1)
  t.match((await tasks.task(uuid)).task, { status: 'ProgressWithFailure' })
})

t.test('a fetch that the end of the platform cuts off begins again', async (t) => {
  let asked = 0
  const url = await carServer(t, (_, response) => {
    asked++
    if (asked > 1) return response.end(CAR)
    response.writeHead(200, { 'content-length': CAR.length })
    return response.write(CAR.subarray(0, 1000))
  })
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url))
  await until('the fetch has begun', () => asked === 1)
  const again = await tasks.scene.restart()
  await until('the provider has the CAR', async () => {
    const { json } = await again.call('GET', `/tasks/${uuid}`, { token: tasks.client })
    return json.data.deal[0].status === 'Downloaded'
  })
  t.equal(asked, 2)
})

t.test('an offline provider fetches nothing, and a real one does it itself', async (t) => {
  let asked = 0
  const url = await carServer(t, (request, response) => {
    asked++
    wholeCar(request, response)
  })
  const tasks = await startTasks(t, { daemon: 'embedded' })
  await tasks.scene.network.control.setFault('t01000', 'offline', true)
  const uuid = await tasks.post(PRIVATE, csvOfUrls(url))
  const other = await tasks.post({ ...PRIVATE, miner_id: 't01001' }, csvOfUrls(url))
  t.match(await settled(tasks, other), [{ status: 'Downloaded' }])
  t.match((await tasks.task(uuid)).deal, [{ status: 'Created' }])
  t.equal(asked, 1)
  await tasks.scene.network.control.setFault('t01000', 'offline', false)
  const again = await tasks.scene.restart({ daemon: 'external' })
  t.match((await again.call('GET', `/tasks/${uuid}`, { token: tasks.client })).json.data.deal, [{ status: 'Created' }])
})
