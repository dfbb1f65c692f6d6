import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silentLog } from '../../../../services/log.js'
import { startPlatform } from '../../../../services/platform/platform.js'
import { countRows } from '../../../support/content/rows.js'
import { until } from '../../../support/waiting.js'
import { crashImages } from '../../crash-images.js'
import { onPostgres } from '../../engine.js'
import { CAR, carServer, csvOfUrls, filesOfCars, wholeCar } from '../daemon/daemon-scene.js'
import { send } from '../platform-client.js'
import { formOf, PRIVATE, PUBLIC, startTasks, type TaskScene, URL_OF_CAR } from './task-scene.js'

t.setTimeout(300_000)

/** Waits until no deal of the task is on its way. */
function settled({ task }: TaskScene, uuid: string): Promise<{ status: string; note: string; file_path: string }[]> {
  return until('the provider is done', async () => {
    const { deal } = await task(uuid)
    const onTheWay = deal.some(({ status }: { status: string }) => ['Created', 'Downloading'].includes(status))
    return onTheWay ? undefined : deal
  })
}

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
  const paths = ['/missing', '/moved', '/other', '/short', '/endless', '/cut', '/whole']
  const urls = [url.replace('http:', 'HTTPS:'), ...paths.map((path) => url + path)]
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

const DEALS = 3000

/** Long enough that its deals are added in several transactions. */
function csvFor(uuid: string): string {
  const padding = 'x'.repeat(40)
  const rows = Array.from({ length: DEALS }, (_, n) => `${uuid},${URL_OF_CAR}?${n}-${padding}\n`)
  return `uuid,file_source_url\n${rows.join('')}`
}

/** What the client of a platform knows when that crashes. */
interface Known {
  readonly step: string
  /** The last status of each task, by UUID; undefined while the request is not answered. */
  readonly answered: ReadonlyMap<string, string | undefined>
  /** States that the deal which is written may have: that of the last answer, and that of the request in progress. */
  readonly deal: readonly string[]
}

type Image = Known & { readonly folder: string }

const OWN = 'aaaaaaaa-0000-4000-8000-000000000000'
const OPEN = 'bbbbbbbb-0000-4000-8000-000000000000'
const forms: Readonly<Record<string, Readonly<Record<string, string>>>> = { [OWN]: PRIVATE, [OPEN]: PUBLIC }

const skip = onPostgres

t.test('a crash after any step of a task or a bid does nothing twice and nothing by half', { skip }, async (t) => {
  const tasks = await startTasks(t)
  const images = await record(t, tasks)
  t.ok(images.length > 10)
  for (const [n, image] of images.entries()) await t.test(`${n}: ${image.step}`, (t) => checkImage(t, tasks, image))
})

async function record(t: Test, { scene, client, provider }: TaskScene): Promise<Image[]> {
  const data = join(scene.folder, 'platform')
  const answered = new Map<string, string | undefined>()
  let deal: Known['deal'] = ['Created']
  let step = ''
  const post = async (uuid: string): Promise<void> => {
    answered.set(uuid, undefined)
    const body = formOf(forms[uuid] ?? {}, csvFor(uuid))
    t.equal((await scene.call('POST', '/tasks', { body, token: client })).status, 200)
    answered.set(uuid, uuid === OWN ? 'Assigned' : 'Created')
  }
  const pass = async (epochs: number): Promise<void> => {
    await scene.network.control.advance(epochs)
    const { json } = await scene.call('GET', `/tasks/${OPEN}`, { token: client })
    answered.set(OPEN, json.data.task.status)
  }
  const write = async (status: string): Promise<void> => {
    const { json } = await scene.call('GET', '/offline_deals/t01000?limit=1', { token: provider })
    const path = `/my_miner/deals/${json.data.deal[0].id}`
    deal = [...deal, status]
    t.equal((await scene.call('PUT', path, { body: new URLSearchParams({ status }), token: provider })).status, 200)
    deal = [status]
    answered.set(OWN, status.endsWith('Failed') ? 'ProgressWithFailure' : 'Assigned')
  }
  const mailed = (count: number): Promise<unknown> =>
    until('the mail is sent', () => pending(data) === 0 && mails(data) === count)
  const steps: readonly [string, () => Promise<unknown>][] = [
    ['a private task', () => post(OWN)],
    ['its mail', () => mailed(1)],
    ['a public task', () => post(OPEN)],
    ['bids', () => pass(2)],
    ['the decision', () => pass(18)],
    ['its mail', () => mailed(2)],
    ['a deal', () => write('DownloadFailed')],
    ['the deal again', () => write('Downloaded')],
  ]
  const work = async () => {
    for (const [name, run] of steps) {
      step = name
      await run()
    }
  }
  return crashImages(t, data, work, () => ({ step, answered: new Map(answered), deal }))
}

async function checkImage(t: Test, { scene, client, provider }: TaskScene, image: Image): Promise<void> {
  const { folder, answered } = image
  const platform = await startPlatform(
    folder,
    { host: '127.0.0.1', port: 0, daemon: 'external' },
    { network: scene.network },
    silentLog,
  )
  try {
    const call: typeof scene.call = (method, path, more) => send(platform.url, method, path, more)
    t.equal(count(folder, 'tasks WHERE posted = 0'), 0, 'no draft is left')
    for (const uuid of [OWN, OPEN]) {
      const before = await call('GET', `/tasks/${uuid}`, { token: client })
      const known = answered.get(uuid)
      if (known !== undefined) t.equal(before.status, 200, 'what was answered is there')
      if (before.status === 200) t.equal(before.json.data.total_deal_count, DEALS, 'a task has all of its deals')
      const again = await call('POST', '/tasks', { body: formOf(forms[uuid] ?? {}, csvFor(uuid)), token: client })
      t.match(again, { status: 200, json: { data: { uuid } } }, 'a repeated request is the same task')
    }
    t.match((await call('GET', '/tasks', { token: client })).json, { total_items: 2 })
    t.equal(count(folder, 'deals'), 2 * DEALS)
    // The clock has gone on, so that everything due has moved for tasks of the image; new ones wait.
    const { json } = await call('GET', `/tasks/${OPEN}`, { token: client })
    const { bid, task } = json.data
    t.equal(new Set(bid.map(({ username }: { username: string }) => username)).size, bid.length, 'one bid per provider')
    const won = bid.filter(({ status }: { status: string }) => status === 'Won')
    t.equal(won.length, task.status === 'Assigned' ? 1 : 0)
    if (answered.get(OPEN) === 'Assigned') t.equal(task.status, 'Assigned', 'a decision that was answered stays')
    if (task.status === 'Assigned') t.equal(won[0].username, task.miner_id)
    const { json: deals } = await call('GET', '/offline_deals/t01000?limit=1', { token: provider })
    const own = await call('GET', `/tasks/${OWN}`, { token: client })
    t.ok(image.deal.includes(deals.data.deal[0].status), `what was written of a deal is there: ${image.deal}`)
    const failed = deals.data.deal[0].status === 'DownloadFailed'
    t.equal(own.json.data.task.status, failed ? 'ProgressWithFailure' : 'Assigned', 'the task is as its deals are')
    const assigned = task.status === 'Assigned' ? 2 : 1
    await until('all mails are sent', () => pending(folder) === 0)
    t.equal(mails(folder), assigned, 'one mail per assignment')
    t.equal(count(folder, 'mails'), assigned)
  } finally {
    await platform.stop()
  }
}

const pending = (folder: string): number => count(folder, "mails WHERE state = 'pending'")

function mails(folder: string): number {
  const outbox = join(folder, 'outbox')
  if (!existsSync(outbox)) return 0
  const names = readdirSync(outbox).filter((name) => name.endsWith('.eml'))
  return names.filter((name) => readFileSync(join(outbox, name), 'utf8').includes('\r\n\r\n')).length
}

function count(folder: string, what: string): number {
  return countRows(join(folder, 'platform.db'), what)
}
