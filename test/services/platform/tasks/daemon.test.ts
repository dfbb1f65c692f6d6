import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silentLog } from '../../../../src/services/log.js'
import { startPlatform } from '../../../../src/services/platform/platform.js'
import { bytes, md5 } from '../../../support/content/content.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { listen } from '../../../support/server/listen.js'
import { until } from '../../../support/waiting.js'
import { afterEachStep, CrashImages } from '../../crash-images.js'
import { send } from '../platform-client.js'
import { PRIVATE, PUBLIC, startTasks, type TaskScene } from './task-scene.js'

const CAR = bytes('car', 300_000)
const MD5 = md5(CAR)

async function carServer(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return listen(server)
}

const wholeCar: RequestListener = (_, response) => response.end(CAR)

function csv(rows: readonly { url: string }[]): string {
  const lines = rows.map(({ url }) => `${url},${MD5},${CAR.length}\n`)
  return `file_source_url,md5,file_size\n${lines.join('')}`
}

/** Waits until no deal of the task is on its way. */
function settled({ task }: TaskScene, uuid: string): Promise<{ status: string; note: string; file_path: string }[]> {
  return until('the provider is done', async () => {
    const { deal } = await task(uuid)
    const onTheWay = deal.some(({ status }: { status: string }) => ['Created', 'Downloading'].includes(status))
    return onTheWay ? undefined : deal
  })
}

function carsOf({ scene }: TaskScene): string[] {
  const folder = join(scene.folder, 'platform', 'cars')
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.car'))
}

t.test('a provider fetches the CAR of its deal and verifies it', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PRIVATE, csv([{ url }]))
  const [deal] = await settled(tasks, uuid)
  t.match(deal, { status: 'Downloaded', note: '', file_path: /^t01000\/\d+\.car$/ })
  t.ok(readFileSync(join(tasks.scene.folder, 'platform', 'cars', deal?.file_path ?? '')).equals(CAR))
  await tasks.scene.network.control.advance(1)
  t.match((await tasks.task(uuid)).deal, [{ status: 'ReadyForImport' }])
})

t.test('the provider of a public task begins when its bid has won', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const uuid = await tasks.post(PUBLIC, csv([{ url }]))
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
  const uuid = await tasks.post(PRIVATE, csv(urls.map((url) => ({ url }))))
  const deals = await settled(tasks, uuid)
  for (const [n, url] of urls.entries()) {
    const isWhole = url.endsWith('/whole')
    const note = isWhole ? '' : 'The CAR cannot be fetched, or is not the one that the task names.'
    t.match(deals[n], { status: isWhole ? 'Downloaded' : 'DownloadFailed', note }, url)
  }
  t.equal(carsOf(tasks).length, 1)
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
  const uuid = await tasks.post(PRIVATE, csv([{ url }]))
  await until('the fetch has begun', () => asked === 1)
  const again = await tasks.scene.restart()
  await until('the provider has the CAR', async () => {
    const { json } = await again.call('GET', `/tasks/${uuid}`, { token: tasks.client })
    return json.data.deal[0].status === 'Downloaded'
  })
  t.equal(asked, 2)
})

t.test('a crash after any step of a fetch', async (t) => {
  const url = await carServer(t, wholeCar)
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const { scene, client } = tasks
  const crashes = new CrashImages(join(scene.folder, 'platform'), temporaryFolder(t))
  const images: string[] = []
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push(folder)
  }
  let uuid = ''
  await afterEachStep(look, async () => {
    uuid = await tasks.post(PRIVATE, csv([{ url }, { url }]))
    await settled(tasks, uuid)
  })
  t.ok(images.length > 5, `${images.length} crashes`)
  for (const folder of images) {
    const options = { host: '127.0.0.1', port: 0, cars: { networks: ['127.0.0.1'] } }
    const platform = await startPlatform(folder, options, { network: scene.network }, silentLog)
    const deal = await until('the provider is done, or there is no task', async () => {
      const { status, json } = await send(platform.url, 'GET', `/tasks/${uuid}`, { token: client })
      if (status === 404) return []
      return json.data.deal.every((one: { status: string }) => one.status === 'Downloaded') && json.data.deal
    })
    for (const { file_path } of deal) t.ok(readFileSync(join(folder, 'cars', file_path)).equals(CAR))
    await platform.stop()
  }
})

t.test('an offline provider fetches nothing, and a real one does it itself', async (t) => {
  let asked = 0
  const url = await carServer(t, (request, response) => {
    asked++
    wholeCar(request, response)
  })
  const tasks = await startTasks(t, { daemon: 'embedded' })
  await tasks.scene.network.control.setFault('t01000', 'offline', true)
  const uuid = await tasks.post(PRIVATE, csv([{ url }]))
  const other = await tasks.post({ ...PRIVATE, miner_id: 't01001' }, csv([{ url }]))
  t.match(await settled(tasks, other), [{ status: 'Downloaded' }])
  t.match((await tasks.task(uuid)).deal, [{ status: 'Created' }])
  t.equal(asked, 1)
  await tasks.scene.network.control.setFault('t01000', 'offline', false)
  const again = await tasks.scene.restart({ daemon: 'external' })
  t.match((await again.call('GET', `/tasks/${uuid}`, { token: tasks.client })).json.data.deal, [{ status: 'Created' }])
})
