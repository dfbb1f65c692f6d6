import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silentLog } from '../../../../src/services/log.js'
import { catalogue } from '../../../../src/services/network/embedded/catalogue.js'
import { formatFil, parseFil, priceOfPiece } from '../../../../src/services/network/fil.js'
import type { MadeDeal, PackedCar } from '../../../../src/services/network/network.js'
import { startPlatform } from '../../../../src/services/platform/platform.js'
import { md5 } from '../../../support/content/content.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'
import { afterEachStep, CrashImages } from '../../crash-images.js'
import { type Asked, ask, bytesOf, content, open, packedFile } from '../../network/embedded-network.js'
import { send } from '../platform-client.js'
import { PRIVATE, PUBLIC, startTasks, type TaskScene } from '../tasks/task-scene.js'
import { carServer, filesOfCars, hasDeals } from './daemon-scene.js'

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
  t.equal((await s.task(uuid)).task.status, 'DealSent')
  await advance(s, uuid, 1)
  await hasDeals(s, uuid, 'FileImported')
  t.match(await network.status(dealCid), { state: 'StorageDealCheckForAcceptance' })
  await advance(s, uuid, UNTIL_ACTIVE - 1)
  await hasDeals(s, uuid, 'FileImported')
  await advance(s, uuid, 1)
  await hasDeals(s, uuid, 'DealActive')
  const { task, deal, deal_complete_rate } = await s.task(uuid)
  t.match(task, { status: 'Completed' })
  t.match(deal, [{ deal_cid: dealCid, note: '' }])
  t.equal(deal_complete_rate, '100.00')
  t.equal((await network.status(dealCid)).state, 'StorageDealActive')
  t.ok(network.epoch() < startEpoch)
  t.ok((await bytesOf(network, dealCid, packedFile(s.asked))).equals(content('one', 3000)))
  await until('the room of the CAR is free', () => filesOfCars(s).length === 0)
})

t.test('a task without known deals: the waiting ones of its client first, then one of the provider', async (t) => {
  const s = await startImports(t)
  const waiting = await propose(s, 'one')
  const unknown = 'bafyreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
  const uuid = await s.post({ ...PUBLIC, max_price: '0.0000005', duration: '600000' }, csvOf(s, ['', unknown]))
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
  t.not(status.walletAddress, s.scene.network.wallet, 'the client of the gateway does not pay')
  await advance(s, uuid, UNTIL_ACTIVE)
  await hasDeals(s, uuid, 'DealActive', 'DealActive')
  t.equal((await s.task(uuid)).task.status, 'Completed')
})

t.test('a provider stores a CAR at the price of its bid', async (t) => {
  const s = await startImports(t)
  const price = '0.0000009'
  const uuid = await s.post({ ...PUBLIC, min_price: price, max_price: price, duration: '600000' }, csvOf(s, ['']))
  await advance(s, uuid, 20)
  await hasDeals(s, uuid, 'Downloaded')
  await advance(s, uuid, 1)
  await advance(s, uuid, 1)
  const [deal] = await hasDeals(s, uuid, 'FileImported')
  const { terms } = await s.scene.network.status(String(deal?.deal_cid))
  t.equal(terms.price, formatFil(priceOfPiece(parseFil(price) as bigint, s.car.pieceSize)))
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

t.test('a provider that goes offline half-way goes on when it is back', async (t) => {
  const s = await startImports(t)
  const { dealCid } = await propose(s, 'one')
  const uuid = await s.post(PRIVATE, csvOf(s, [dealCid]))
  await hasDeals(s, uuid, 'Downloaded')
  await advance(s, uuid, 1)
  await s.scene.network.control.setFault(MINER, 'offline', true)
  await advance(s, uuid, 1)
  await hasDeals(s, uuid, 'FileImporting')
  await s.scene.network.control.setFault(MINER, 'offline', false)
  await until('the provider goes on', async () => {
    await advance(s, uuid, 1)
    return (await s.task(uuid)).deal[0].status === 'FileImported'
  })
})

t.test('a crash after any step of an import', async (t) => {
  const s = await startImports(t)
  const { scene, client } = s
  const proposals = [await propose(s, 'one'), await propose(s, 'two')]
  const crashes = new CrashImages(scene.folder, temporaryFolder(t))
  const images: string[] = []
  const uuid = await s.post(PRIVATE, csvOf(s, [proposals[0]?.dealCid ?? '', '', '']))
  await hasDeals(s, uuid, 'Downloaded', 'Downloaded', 'Downloaded')
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push(folder)
  }
  await afterEachStep(look, async () => {
    await advance(s, uuid, 1)
    await advance(s, uuid, 1)
    await hasDeals(s, uuid, 'FileImported', 'FileImported', 'FileImported')
    await advance(s, uuid, UNTIL_ACTIVE)
    await hasDeals(s, uuid, 'DealActive', 'DealActive', 'DealActive')
  })
  t.ok(images.length > 10, `${images.length} crashes`)
  for (const [n, folder] of images.entries()) {
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
    t.equal(network.dealTotals()[0]?.deals, 3, `image ${n}: three deals and no other`)
    await until('no CAR is left', () => !existsSync(join(data, 'cars', MINER, '1.car')))
    await platform.stop()
    await network.stop()
  }
})
