import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pLimit from 'p-limit'
import t, { type Test } from 'tap'
import { paymentOrderText } from '../../../src/services/payment/billing.js'
import { openWalletBook } from '../../../src/services/payment/store.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { ManyDeaths } from '../../support/server/many-deaths.js'
import { until } from '../../support/waiting.js'
import { afterEachStep, CrashImages } from '../crash-images.js'
import { type Answer, type Call, send } from '../platform/platform-client.js'
import { balance, COINS, pass, payerOf, type Row, sumOfLedger, withBook } from './payer.js'
import { type Keys, logIn, NETWORK, newKeys, nonceFor, type PaymentScene, startPaymentScene } from './payment-client.js'

/** The suite looks at a sample of the crashes; `npm run stress` at all. */
const MOST = process.env.DEALGATE_STRESS_ROUNDS === undefined ? 5 : Number.POSITIVE_INFINITY

const CONTENT = 'content '.repeat(50_000)

const AMOUNT = 400_000n

const LOCK_EPOCHS = 6 * 2880

interface Image {
  readonly folder: string
  /** What was answered before the crash. */
  readonly wCid: string | undefined
  readonly hash: string | undefined
}

interface Ran {
  readonly keys: Keys
  readonly port: number
  readonly images: readonly Image[]
}

/** Uploads, pays and lets the time pass until the upload has a status, with an image in `target` after each step. */
async function run(
  t: Test,
  target: string,
  status: string,
  before: (scene: PaymentScene) => Promise<void>,
): Promise<Ran> {
  const scene = await startPaymentScene(t, { limits: { stopMs: 100 } }, { withPlatform: true })
  const keys = newKeys()
  await withBook(scene, (book) => book.fund(keys.address, COINS))
  await before(scene)
  const client = await payerOf(scene, keys)
  const crashes = new CrashImages(dirname(scene.folder), target)
  const images: Image[] = []
  let [wCid, hash]: (string | undefined)[] = []
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push({ folder, wCid, hash })
  }
  await afterEachStep(look, async () => {
    wCid = String((await client.upload('file', CONTENT)).json.data.w_cid)
    hash = (await client.order(wCid, AMOUNT)).json.data.pay_tx_hash
    await pass(scene, client, status, status === 'Refunded' ? LOCK_EPOCHS / 10 : 40)
    look()
  })
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
    const left = await list()
    t.ok(left.length <= 1)
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
  const db = new DatabaseSync(join(scene.folder, 'payment.db'), { readOnly: true })
  try {
    return db.prepare('SELECT amount, unlocked, refunded, is_open FROM locks').all()
  } finally {
    db.close()
  }
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
  const target = temporaryFolder(t)
  let ran: Ran | undefined
  await t.test('without a crash', async (t) => {
    ran = await run(t, target, status, before)
    t.ok(ran.images.length > 10, `${ran.images.length} crashes`)
  })
  for (const image of sample(ran?.images ?? [], MOST)) {
    await t.test(`over the image ${basename(image.folder)}`, async (t) => {
      check(t, ...(await goOn(t, ran as Ran, image, status)))
    })
  }
}

t.test('a crash after any step from the upload to its deal: paid once, unlocked once', async (t) => {
  await afterEachCrash(
    t,
    'Success',
    async () => {},
    (t, scene, row) => {
      t.match(row.offline_deal, [{ status: 'Success' }])
      const [{ unlocked, refunded } = {} as Row] = locksOf(scene)
      t.ok(BigInt(unlocked) > 0n)
      t.equal(BigInt(unlocked) + BigInt(refunded), AMOUNT)
    },
  )
})

t.test('a crash after any step from the upload to its refund: the balance is whole', async (t) => {
  const noProvider = async ({ network }: PaymentScene): Promise<void> => {
    for (const { minerId } of await network.providers()) {
      await network.changeProvider?.(minerId, { offlineDealAvailable: false })
    }
  }
  await afterEachCrash(t, 'Refunded', noProvider, (t, scene) => {
    t.match(locksOf(scene), [{ unlocked: 0, refunded: Number(AMOUNT) }])
  })
})

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)

t.setTimeout(3_600_000 + ROUNDS * 60_000)

/** `npm run stress` has more of them as well. */
const PAYERS = process.env.DEALGATE_STRESS_ROUNDS ? 64 : 24

const FUNDS = 10n ** 12n

const PAID = 1000n

/** Uploads that arrive at the same time. */
const AT_ONCE = 8

interface Payer {
  readonly keys: Keys
  readonly token: string
}

t.test(`${PAYERS} payers, killed at ${ROUNDS} random moments: each upload is paid once`, async (t) => {
  const server = await startDealgate(t)
  const call = (method: string, path: string, more?: Call) => send(server.payment, method, `/api/v1${path}`, more)
  const wallets = Array.from({ length: PAYERS }, () => newKeys())
  const book = openWalletBook(join(server.data, 'services'))
  t.teardown(() => book.close())
  for (const { address } of wallets) await book.fund(address, FUNDS)
  const payers: Payer[] = []
  for (const keys of wallets) {
    const nonce = await nonceFor((method, path, more) => send(server.payment, method, path, more), keys)
    const { json } = await logIn((method, path, more) => send(server.payment, method, path, more), keys, nonce)
    payers.push({ keys, token: json.data.jwt_token })
  }
  const upload = async ({ token }: Payer, content: string): Promise<string> => {
    const body = new FormData()
    body.append('duration', '180')
    body.append('file', new Blob([content]), 'file')
    const { status, json } = await call('POST', '/storage/ipfs/upload', { body, token })
    if (status !== 200) throw new Error(JSON.stringify(json))
    return json.data.w_cid
  }
  const order = ({ keys }: Payer, wCid: string, amount = PAID): Promise<Answer> => {
    const signature = keys.sign(paymentOrderText(wCid, amount, NETWORK))
    return call('POST', '/billing/deal/lockpayment', { body: { w_cid: wCid, pay_amount: String(amount), signature } })
  }
  const deaths = new ManyDeaths(server)
  const limit = pLimit(AT_ONCE)
  let paid = 0
  for (let round = 0; round < ROUNDS; round++) {
    const uploads = await Promise.all(
      payers.map((payer, n) => limit(async () => ({ payer, wCid: await upload(payer, `${round} ${n % 7}`) }))),
    )
    await deaths.during(() =>
      Promise.all(uploads.flatMap(({ payer, wCid }) => [order(payer, wCid), order(payer, wCid)])),
    )
    const hashes = await Promise.all(
      uploads.map(({ payer, wCid }) =>
        limit(() =>
          until('the payment is known', async () => {
            const { status, json } = await order(payer, wCid)
            return status === 200 && String(json.data.pay_tx_hash)
          }),
        ),
      ),
    )
    paid += PAYERS
    t.equal(new Set(hashes).size, PAYERS, `round ${round}: each payment has its own transfer`)
    const [{ payer, wCid } = uploads[0] as never] = uploads
    t.equal((await order(payer, wCid, PAID + 1n)).status, 409, 'another order for a paid upload is refused')
    t.same(book.sums(), { balances: 0n, entries: 0n }, 'the ledger adds up')
    const db = new DatabaseSync(join(server.data, 'services', 'payment', 'payment.db'), { readOnly: true })
    t.equal(db.prepare('SELECT count(*) AS count FROM locks').get().count, paid, 'one payment for each upload')
    const locks = "SELECT count(*) AS count FROM transfers WHERE reference LIKE 'lock %'"
    t.equal(db.prepare(locks).get().count, paid, 'and one transfer')
    const spent = db.prepare('SELECT sum(amount - refunded) AS spent FROM locks WHERE wallet = ?')
    for (const { address } of wallets) {
      db.exec('BEGIN')
      const balance = db.prepare('SELECT balance FROM accounts WHERE name = ?').get(`wallet ${address}`).balance
      if (FUNDS - BigInt(spent.get(address).spent) !== BigInt(balance)) t.fail(`${address} has ${balance}`)
      db.exec('COMMIT')
    }
    db.close()
  }
})
