import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { rowsOf } from '../../support/content/rows.js'
import { until } from '../../support/waiting.js'
import { crashImages } from '../crash-images.js'
import { onPostgres } from '../engine.js'
import { balance, COINS, pass, payerOf, type Row, sumOfLedger, withRegistry } from './payer.js'
import { type Keys, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

/** The suite looks at a sample of the crashes; `npm run stress` at all. */
const MOST = process.env.DEALGATE_STRESS_ROUNDS === undefined ? 5 : Number.POSITIVE_INFINITY
const CONTENT = 'content '.repeat(50_000)
const AMOUNT = 400_000n
const LOCK_EPOCHS = 6 * 2880

t.setTimeout(3_600_000)

/** What was answered before a crash, and what is left of the folder. */
interface Image {
  readonly folder: string
  readonly wCid: string | undefined
  readonly hash: string | undefined
}

interface Ran {
  readonly keys: Keys
  readonly port: number
  readonly images: readonly Image[]
}

/** Uploads, pays and lets time pass until the upload has a status. The images of each step stay until `all` ends. */
async function run(t: Test, all: Test, status: string, before: (scene: PaymentScene) => Promise<void>): Promise<Ran> {
  const scene = await startPaymentScene(t, { limits: { stopMs: 100 } }, { withPlatform: true })
  const keys = newKeys()
  await withRegistry(scene, (registry) => registry.fund(keys.address, COINS))
  await before(scene)
  const client = await payerOf(scene, keys)
  let [wCid, hash]: (string | undefined)[] = []
  const work = async (look: () => void) => {
    wCid = String((await client.upload('file', CONTENT)).json.data.w_cid)
    hash = (await client.order(wCid, AMOUNT)).json.data.pay_tx_hash
    await pass(scene, client, status, status === 'Refunded' ? LOCK_EPOCHS / 10 : 40)
    look()
  }
  const images = await crashImages(all, dirname(scene.folder), work, () => ({ wCid, hash }))
  return { keys, port: scene.payment.port, images }
}

/** Starts over an image, does again what was not answered, and gives the only upload at its end. */
async function goOn(t: Test, { keys, port }: Ran, image: Image, status: string): Promise<[PaymentScene, Row]> {
  // A provider fetches the CAR from the port that its task names.
  const scene = await startPaymentScene(
    t,
    { port, limits: { stopMs: 100 } },
    { withPlatform: true, folder: image.folder },
  )
  const client = await payerOf(scene, keys)
  const list = async (): Promise<Row[]> => ((await client.get('/storage/tasks/deals')) as Row).source_file_upload
  let wCid = image.wCid
  if (wCid === undefined) {
    t.ok((await list()).length <= 1)
    wCid = String((await client.upload('file', CONTENT)).json.data.w_cid)
  }
  const paid = await client.order(wCid, AMOUNT)
  t.equal(paid.status, 200)
  if (image.hash !== undefined) t.equal(paid.json.data.pay_tx_hash, image.hash, 'the payment that was answered')
  await until(`the upload is ${status}`, async () => {
    await scene.network.control.advance(status === 'Refunded' ? LOCK_EPOCHS / 10 : 40)
    return (await list()).some((one) => one.status === status)
  })
  await sumOfLedger(t, scene)
  const [lock, ...more] = locksOf(scene)
  t.same(more, [], 'one payment')
  t.match(lock, { amount: Number(AMOUNT), is_open: 0 })
  t.equal(await balance(scene, client), COINS - BigInt(lock.unlocked), 'the rest is back')
  await until('no CAR is left', async () => {
    await scene.network.control.advance(1)
    await list()
    return ['packing', 'staging', 'cars'].every((name) => readdirSync(join(scene.folder, name)).length === 0)
  })
  return [scene, (await list())[0]]
}

function locksOf(scene: PaymentScene): Row[] {
  return rowsOf(join(scene.folder, 'payment.db'), 'SELECT amount, unlocked, refunded, is_open FROM locks')
}

/** At most so many, at equal distances, with the first and the last. */
function sample<T>(all: readonly T[], most: number): T[] {
  const step = Math.max(1, (all.length - 1) / (most - 1))
  return Array.from({ length: Math.min(all.length, most) }, (_, n) => all[Math.round(n * step)] as T)
}

/** Runs once, and then over each image. */
async function afterEachCrash(
  t: Test,
  status: string,
  before: (scene: PaymentScene) => Promise<void>,
  check: (t: Test, scene: PaymentScene, row: Row) => void,
): Promise<void> {
  const all = t
  let ran: Ran | undefined
  await t.test('without a crash', async (t) => {
    ran = await run(t, all, status, before)
    t.ok(ran.images.length > 10, `${ran.images.length} crashes`)
  })
  for (const image of sample(ran?.images ?? [], MOST)) {
    await t.test(`over the image ${basename(image.folder)}`, async (t) => {
      check(t, ...(await goOn(t, ran as Ran, image, status)))
    })
  }
}

const skip = onPostgres

t.test('a crash after any step from the upload to its deal: paid once, unlocked once', { skip }, async (t) => {
  const asUsual = async (): Promise<void> => {}
  await afterEachCrash(t, 'Success', asUsual, (t, scene, row) => {
    t.match(row.offline_deal, [{ status: 'Success' }])
    const [{ unlocked, refunded } = {} as Row] = locksOf(scene)
    t.ok(BigInt(unlocked) > 0n)
    t.equal(BigInt(unlocked) + BigInt(refunded), AMOUNT)
  })
})

t.test('a crash after any step from the upload to its refund: the balance is whole', { skip }, async (t) => {
  const noProvider = async ({ network }: PaymentScene): Promise<void> => {
    for (const { minerId } of await network.providers())
      await network.changeProvider?.(minerId, { offlineDealAvailable: false })
  }
  await afterEachCrash(t, 'Refunded', noProvider, (t, scene) => {
    t.match(locksOf(scene), [{ unlocked: 0, refunded: Number(AMOUNT) }])
  })
})
