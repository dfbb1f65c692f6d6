import { lookup } from 'node:dns/promises'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silentLog } from '../../../../services/log.js'
import { catalogue } from '../../../../services/network/embedded/catalogue.js'
import { formatFil, parseFil, priceOfPiece } from '../../../../services/network/fil.js'
import type { MadeDeal, PackedCar } from '../../../../services/network/network.js'
import { blocks, lookupOf, mayFetchFrom, requireAddress } from '../../../../services/platform/daemon/addresses.js'
import { type FetchOptions, fetchCar, type WantedCar } from '../../../../services/platform/daemon/fetch-car.js'
import { startPlatform } from '../../../../services/platform/platform.js'
import { md5 } from '../../../support/content/content.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'
import { crashImages } from '../../crash-images.js'
import { onPostgres } from '../../engine.js'
import { type Asked, ask, bytesOf, content, open, packedFile } from '../../network/embedded-network.js'
import { send } from '../platform-client.js'
import { formOf, PRIVATE, PUBLIC, startTasks, type TaskScene, tasksOf } from '../tasks/task-scene.js'
import { CAR, carServer, csvOfUrls, filesOfCars, hasDeals, type ShownDeal, wholeCar } from './daemon-scene.js'

const servers = { allowed: blocks('127.0.0.1'), own: [] }
const asking: FetchOptions = { idleMs: 60_000, graceMs: 60_000, bytesPerSecond: 1000, now: () => 0, servers }
const wanted = (url: string): WantedCar => ({
  url,
  md5: null,
  size: 1000,
  most: 1000,
  reserve: () => true,
  isWanted: () => true,
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

t.test('URLs with a password are refused', async (t) => {
  const { scene, client } = await startTasks(t)
  for (const url of ['http://%zz@x/', 'http://a@x/', 'https://a:b@x/']) {
    const body = formOf(PRIVATE, csvOfUrls(url))
    t.match(await scene.call('POST', '/tasks', { body, token: client }), { status: 400 }, url)
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
  // Either of the two equal CARs finds room first.
  await until('one CAR is there', async () => {
    const states = (await tasks.task(uuid)).deal.map(({ status }: ShownDeal) => status)
    return states.sort().join() === 'DownloadFailed,Downloaded,Waiting'
  })
  t.equal(filesOfCars(tasks).length, 1)
})

/** Epochs in which a provider seals what it has imported. */
const UNTIL_ACTIVE = 252
const MINER = 't01000'

interface Scene extends TaskScene {
  readonly asked: Asked
  readonly car: PackedCar
  readonly url: string
}

async function startImports(t: Test, reference = 'one'): Promise<Scene> {
  const tasks = await startTasks(t, { daemon: 'embedded' })
  const asked = ask(reference)
  const car = await tasks.scene.network.pack({ ...asked, target: join(tasks.scene.folder, `${reference}.car`) })
  const url = await carServer(t, (_, response) => response.end(readFileSync(car.file)))
  return { ...tasks, asked, car, url }
}

function propose({ scene, car }: Scene, reference: string): Promise<MadeDeal> {
  const terms = { minerId: MINER, price: '0.5', duration: 518_400, verifiedDeal: false, fastRetrieval: true }
  return scene.network.offline.propose({ reference, terms, car })
}

/** One row per CID of a deal; '' for none. */
function csvOf({ car, url }: Scene, dealCids: readonly string[], more: Readonly<Record<string, string>> = {}): string {
  const columns = { payload_cid: car.dataCid, piece_cid: car.pieceCid, file_size: String(car.carSize), ...more }
  const rows = dealCids.map((cid) => [cid, url, md5(readFileSync(car.file)), ...Object.values(columns)].join())
  return `deal_cid,file_source_url,md5,${Object.keys(columns).join()}\n${rows.join('\n')}\n`
}

async function advance({ scene, task }: TaskScene, uuid: string, epochs: number): Promise<void> {
  await scene.network.control.advance(epochs)
  await task(uuid)
}

t.test('a provider imports the CAR of a proposal, and the deal becomes active', async (t) => {
  const s = await startImports(t)
  const { network } = s.scene
  const { dealCid, startEpoch } = await propose(s, 'one')
  const uuid = await s.post(PRIVATE, csvOf(s, [dealCid]))
  t.equal((await s.task(uuid)).task.status, 'DealSent', 'the network knows all deals of the task')
  await hasDeals(s, uuid, 'Downloaded')
  await advance(s, uuid, 1)
  await hasDeals(s, uuid, 'ReadyForImport')
  await advance(s, uuid, 1)
  await hasDeals(s, uuid, 'FileImported')
  t.match(await network.status(dealCid), { state: 'StorageDealCheckForAcceptance' })
  await advance(s, uuid, UNTIL_ACTIVE)
  await hasDeals(s, uuid, 'DealActive')
  const { task, deal, deal_complete_rate } = await s.task(uuid)
  t.match(task, { status: 'Completed' })
  t.match(deal, [{ deal_cid: dealCid, note: '' }])
  t.equal(deal_complete_rate, '100.00')
  t.ok(network.epoch() < startEpoch)
  t.ok((await bytesOf(network, dealCid, packedFile(s.asked))).equals(content('one', 3000)))
  await until('the room of the CAR is free', () => filesOfCars(s).length === 0)
})

t.test('a task without known deals: the waiting ones of its client first, then one of the provider', async (t) => {
  const s = await startImports(t)
  const waiting = await propose(s, 'one')
  const unknown = 'bafyreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
  const price = '0.0000009'
  const terms = { ...PUBLIC, min_price: price, max_price: price, duration: '600000' }
  const uuid = await s.post(terms, csvOf(s, ['', unknown]))
  await advance(s, uuid, 20)
  t.equal((await s.task(uuid)).task.status, 'Assigned')
  await hasDeals(s, uuid, 'Downloaded', 'Downloaded')
  await advance(s, uuid, 1)
  await advance(s, uuid, 1)
  const [first, second] = await hasDeals(s, uuid, 'FileImported', 'FileImported')
  t.equal((await s.task(uuid)).task.status, 'DealSent')
  t.match(first, { deal_cid: waiting.dealCid, start_epoch: waiting.startEpoch })
  const own = String(second?.deal_cid)
  t.not(own, unknown)
  const status = await s.scene.network.status(own)
  t.match(status, { terms: { minerId: MINER, duration: 600_000 }, dataCid: s.car.dataCid })
  const bid = formatFil(priceOfPiece(parseFil(price) as bigint, s.car.pieceSize))
  t.equal(status.terms.price, bid, 'the price of its bid')
  t.not(status.walletAddress, s.scene.network.wallet, 'the client of the gateway does not pay')
  await advance(s, uuid, UNTIL_ACTIVE)
  await hasDeals(s, uuid, 'DealActive', 'DealActive')
})

t.test('CARs that a provider does not import have a note, and leave no file', async (t) => {
  const s = await startImports(t)
  const { dealCid } = await propose(s, 'one')
  const other = await s.scene.network.pack({ ...ask('other'), target: join(s.scene.folder, 'other.car') })
  const uuids = [
    await s.post(PRIVATE, csvOf(s, [dealCid], { piece_cid: other.pieceCid })),
    await s.post(PRIVATE, csvOf(s, [''], { payload_cid: other.dataCid })),
  ]
  const wrong = { ...s, car: { ...other, file: s.car.file, carSize: s.car.carSize } }
  const wrongDeal = await propose(wrong, 'wrong')
  uuids.push(await s.post(PRIVATE, csvOf(s, [wrongDeal.dealCid])))
  const noCar = await carServer(t, (_, response) => response.end('no CAR'))
  uuids.push(await s.post(PRIVATE, `file_source_url,file_size\n${noCar},6\n`))
  for (const uuid of uuids) await hasDeals(s, uuid, 'Downloaded')
  await advance(s, String(uuids[0]), 1)
  await advance(s, String(uuids[0]), 1)
  const notes = [/not the piece .*task names/, /root of the CAR/, /not the piece .* of the deal/, /not a CAR/]
  for (const [n, uuid] of uuids.entries()) {
    const [deal] = await hasDeals(s, uuid, 'ImportFailed')
    t.match(deal?.note, notes[n])
    t.equal((await s.task(uuid)).task.status, 'ProgressWithFailure')
  }
  await until('no CAR is left', () => filesOfCars(s).length === 0)
})

t.test('a crash after any step of an import', { skip: onPostgres }, async (t) => {
  const s = await startImports(t)
  const { scene, client } = s
  const proposals = [await propose(s, 'one'), await propose(s, 'two')]
  const uuid = await s.post(PRIVATE, csvOf(s, [proposals[0]?.dealCid ?? '', '', '']))
  await hasDeals(s, uuid, 'Downloaded', 'Downloaded', 'Downloaded')
  const images = await crashImages(t, scene.folder, async () => {
    await advance(s, uuid, 1)
    await advance(s, uuid, 1)
    await hasDeals(s, uuid, 'FileImported', 'FileImported', 'FileImported')
    await advance(s, uuid, UNTIL_ACTIVE)
    await hasDeals(s, uuid, 'DealActive', 'DealActive', 'DealActive')
  })
  t.ok(images.length > 10, `${images.length} crashes`)
  for (const [n, { folder }] of images.entries()) {
    const network = await open(t, join(folder, 'network'), { providers: catalogue })
    const data = join(folder, 'platform')
    const platform = await startPlatform(data, { host: '127.0.0.1', port: 0 }, { network }, silentLog)
    const deals = await until(`the deals of image ${n} are active`, async () => {
      await network.control.advance(UNTIL_ACTIVE)
      const { json } = await send(platform.url, 'GET', `/tasks/${uuid}`, { token: client })
      return json.data.deal.every(({ status }: { status: string }) => status === 'DealActive') && json.data.deal
    })
    const cids = deals.map((deal: { deal_cid: string }) => deal.deal_cid)
    t.equal(new Set(cids).size, 3)
    for (const { dealCid } of proposals) t.ok(cids.includes(dealCid))
    t.equal((await network.dealTotals())[0]?.deals, 3, `image ${n}: three deals and no other`)
    await until('no CAR is left', () => !existsSync(join(data, 'cars', MINER, '1.car')))
    await platform.stop()
    await network.stop()
  }
})

const NONE = { allowed: [], own: [] }
const ALL = { allowed: blocks('0.0.0.0/0', '::/0'), own: [] }
const URL_OF_CAR = new URL('http://cars.example:9300/a.car')
const here = new Set(Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []))

t.test('addresses from which a CAR may come', async (t) => {
  const yes = ['93.184.216.34', '2606:2800:220:1::1', '::ffff:93.184.216.34']
  // Two texts of one address: that of a URL, and that of a look-up of a name.
  const no = ['169.254.169.254', '::ffff:169.254.169.254', '0.0.0.0', '::', '::7f00:1', '::127.0.0.1', 'fe80::1%eth0']
  const byOption = [
    ...['127.8.9.10', '::1', '::ffff:10.255.0.1', 'fd12:3456::1', '192.168.254.1', '172.31.254.1'],
    ...['64:ff9b::10.0.0.1', '::ffff:0:a00:1'],
  ]
  for (const address of yes) t.ok(mayFetchFrom(address, URL_OF_CAR, NONE), address)
  for (const address of no) t.notOk(mayFetchFrom(address, URL_OF_CAR, ALL), address)
  for (const address of byOption) {
    t.notOk(mayFetchFrom(address, URL_OF_CAR, NONE), address)
    t.ok(mayFetchFrom(address, URL_OF_CAR, ALL), `${address}, if it is allowed`)
  }
  for (const address of here) t.notOk(mayFetchFrom(address, URL_OF_CAR, NONE), `${address}, which is of this machine`)
  t.throws(() => blocks('10.0.0.0/33'), RangeError)
})

t.test('servers of this machine that hand out CARs', async (t) => {
  const may = (address: string, url: string, ...own: string[]) =>
    mayFetchFrom(address, new URL(url), { allowed: [], own: own.map((each) => new URL(each)) })
  t.ok(may('127.0.0.1', 'http://localhost:9300/a', 'http://127.0.0.1:9300'), 'by another name for the same address')
  t.ok(may('127.0.0.1', 'http://127.0.0.1:9300/a', 'http://0.0.0.0:9300'), 'which listens on all addresses')
  t.ok(may('127.0.0.1', 'https://s3.example/a', 'https://s3.example'), 'by the name that others use')
  t.notOk(may('127.0.0.1', 'http://127.0.0.1:9301/a', 'http://127.0.0.1:9300'), 'another port')
  t.notOk(may('127.0.0.2', 'http://127.0.0.2:9300/a', 'http://127.0.0.1:9300'), 'another address')
  t.notOk(may('127.0.0.1', 'http://evil.example/a', 'https://s3.example'), 'another name')
  t.notOk(may('127.0.0.1', 'http://s3.example/a', 'https://s3.example'), 'another port of that name')
})

t.test('literal addresses in a URL', async (t) => {
  for (const host of ['169.254.169.254', '[::ffff:a9fe:a9fe]', '0xa9fea9fe', '127.1'])
    t.throws(() => requireAddress(new URL(`http://${host}/`), NONE), /no CAR may come/, host)
  t.doesNotThrow(() => requireAddress(new URL('http://127.0.0.1/'), ALL))
  t.doesNotThrow(() => requireAddress(URL_OF_CAR, NONE), 'a name is looked up')
})

t.test('names are looked up', async (t) => {
  const [known] = await lookup('localhost', { all: true })
  const url = new URL('http://localhost:9300/')
  const found = (all: boolean) =>
    new Promise((resolve, reject) => {
      lookupOf(url, ALL)('localhost', { all }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
    })
  t.match(await found(true), [known ?? {}])
  t.equal(await found(false), known?.address)
  for (const name of ['localhost', '169.254.169.254']) {
    const refused = new Promise((resolve) => lookupOf(url, NONE)(name, { all: true }, resolve))
    t.match(await refused, { message: /no CAR may come/ }, name)
  }
})
