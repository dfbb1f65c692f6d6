import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase, Writer } from '../../../src/services/database.js'
import { silentLog } from '../../../src/services/log.js'
import { type DealStatus, type Network, NetworkError } from '../../../src/services/network/network.js'
import { ContentTable } from '../../../src/services/payment/contents/content-table.js'
import { CarTable } from '../../../src/services/payment/dealing/car-folder.js'
import { DealTable } from '../../../src/services/payment/dealing/deal-table.js'
import { type Dealer, Dealing, type DealingDeps } from '../../../src/services/payment/dealing/dealing.js'
import { PackedUploads } from '../../../src/services/payment/dealing/packed-uploads.js'
import { EmbeddedPayments, type Payments } from '../../../src/services/payment/embedded-payments.js'
import { Progress } from '../../../src/services/payment/scheduler.js'
import { migrate } from '../../../src/services/payment/store.js'
import { UploadTable } from '../../../src/services/payment/uploads/upload-table.js'
import { temporaryFolder } from '../../support/content/folders.js'

const WALLET = `0x${'a'.repeat(40)}`
const LOCKED = 1_000_000n
const NOW = 1_000

interface Scene {
  readonly cars: CarTable
  readonly payments: EmbeddedPayments
  /** Deals that the dealer tells for a task, by its number among the CARs. */
  readonly told: (string | Error)[]
  /** Called before each payment of a provider. */
  beforeUnlock: (wCid: string) => void
  /** Stores and pays an upload of so many bytes for so many days. */
  pay(wCid: string, size: number, days: number): Promise<void>
  status(wCid: string): string | undefined
  run(): Promise<void>
}

/** Dealing over its own tables, with CARs, a dealer and a network of the test. A CAR has the CID `car <n>`, from 1. */
async function sceneOf(t: Test): Promise<Scene> {
  const db = openDatabase(join(temporaryFolder(t), 'payment.db'), '', migrate)
  const writer = new Writer(db)
  t.teardown(() => {
    writer.close()
    db.close()
  })
  const [uploads, contents, progress] = [new UploadTable(db), new ContentTable(db), new Progress(db)]
  const payments = new EmbeddedPayments(db, writer, 'test')
  const cars = new CarTable(db)
  const told: Scene['told'] = []
  let made = 0
  const tasks: string[] = []
  const folder = {
    async make(task: string) {
      tasks.push(task)
      return { payloadCid: `car ${++made}`, size: 1000, md5: '' }
    },
    async remove() {},
  }
  const dealer: Dealer = {
    post: async () => true,
    async progress(task) {
      const one = told[tasks.indexOf(task)]
      if (one instanceof Error) throw one
      return { dealCids: one === undefined ? [] : [one], failedBy: undefined }
    },
  }
  const guarded: Payments = {
    inUnits: (amount) => amount,
    find: (wCid) => payments.find(wCid),
    refused: () => [],
    async unlock(wCid, ...more) {
      scene.beforeUnlock(wCid)
      return payments.unlock(wCid, ...more)
    },
    refund: (...args) => payments.refund(...args),
  }
  const dealing = new Dealing({
    dealer,
    cars,
    folder: folder as unknown as DealingDeps['folder'],
    uploads: new PackedUploads(db),
    deals: new DealTable(db),
    contents: {} as DealingDeps['contents'],
    payments: guarded,
    network: { epoch: () => 1, status: async (cid: string) => statusOf(cid) } as unknown as Network,
    writer,
    log: silentLog,
    seconds: () => NOW,
    urlOf: (task) => task,
  })
  const scene: Scene = {
    cars,
    payments,
    told,
    beforeUnlock: () => {},
    async pay(wCid, size, days) {
      await writer.run(() => {
        const content = contents.add({ cid: `content ${wCid}`, size, kind: 'file', carSize: size }, [])
        const terms = {
          fileName: wCid,
          fileSize: size,
          fileType: 0 as const,
          duration: days,
          price: 1,
          created: NOW,
          createdEpoch: 1,
          isFree: 0 as const,
          idempotencyKey: null,
        }
        uploads.add({ wCid, wallet: WALLET, content: content.id, ...terms })
      })
      await payments.fund(WALLET, LOCKED, wCid, NOW)
      await payments.pay({ wCid, wallet: WALLET, amount: LOCKED, paidAt: NOW, deadline: 2 * NOW, deadlineEpoch: 10 })
      await writer.run(() => progress.markPaid(wCid))
    },
    status: (wCid) => uploads.findByWCid(wCid)?.status,
    run: () => dealing.run(new AbortController().signal),
  }
  return scene
}

/** An active deal; `<CID of a CAR>/<anything>` names it. It costs 100,000 millionths of a stable coin in all. */
function statusOf(dealCid: string): DealStatus {
  const terms = { minerId: 't01000', price: '0.0000001', duration: 200_000, verifiedDeal: false, fastRetrieval: true }
  return {
    reference: dealCid,
    terms,
    walletAddress: '',
    dataCid: dealCid.split('/')[0] ?? '',
    pieceCid: 'piece',
    pieceSize: 1024,
    carSize: 1000,
    dealCid,
    startEpoch: 0,
    endEpoch: 200_000,
    timeStamp: 1,
    state: 'StorageDealActive',
    message: '',
    epoch: 1,
  }
}

t.test('a crash between two payments for a deal does not make the second one larger', async (t) => {
  const scene = await sceneOf(t)
  await scene.pay('one', 300, 200)
  await scene.pay('two', 100, 200)
  scene.told.push('car 1/deal')
  scene.beforeUnlock = (wCid) => {
    if (wCid === 'two') throw new Error('the power fails')
  }
  await t.rejects(scene.run())
  t.same([scene.status('one'), scene.status('two')], ['Success', 'TaskCreated'])
  scene.beforeUnlock = () => {}
  await scene.run()
  t.same([scene.status('one'), scene.status('two')], ['Success', 'Success'])
  const [one, two] = ['one', 'two'].map((wCid) => scene.payments.find(wCid)?.unlocked)
  t.same([one, two], [75_000n, 25_000n])
  t.same(scene.payments.sums(), { balances: 0n, entries: 0n })
})

t.test('a deal for other content is not paid', async (t) => {
  const scene = await sceneOf(t)
  await scene.pay('one', 300, 200)
  scene.told.push('car of another/deal')
  await scene.run()
  t.equal(scene.status('one'), 'TaskCreated')
  t.match(scene.payments.find('one'), { unlocked: 0n, isOpen: true })
  scene.told[0] = 'car 1/deal'
  await scene.run()
  t.equal(scene.status('one'), 'Success')
})

t.test('a CAR whose deal cannot be found does not hold up the next one', async (t) => {
  const scene = await sceneOf(t)
  await scene.pay('one', 300, 200)
  await scene.pay('two', 100, 201)
  scene.told.push(new NetworkError('NoSuchDeal', 'There is no such deal.'), 'car 2/deal')
  await t.rejects(scene.run(), AggregateError)
  t.same([scene.status('one'), scene.status('two')], ['TaskCreated', 'Success'])
  t.equal(scene.cars.open().length, 1)
})
