import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pLimit from 'p-limit'
import t from 'tap'
import { paymentOrderText } from '../../../src/services/payment/billing.js'
import { openWalletBook } from '../../../src/services/payment/store.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { ManyDeaths } from '../../support/server/many-deaths.js'
import { until } from '../../support/waiting.js'
import { type Answer, type Call, send } from '../platform/platform-client.js'
import { type Keys, logIn, NETWORK, newKeys, nonceFor } from './payment-client.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 2)
t.setTimeout(900_000 + ROUNDS * 60_000)
/** `npm run stress` has more of them as well. */
const PAYERS = process.env.DEALGATE_STRESS_ROUNDS ? 64 : 24
const FUNDS = 10n ** 12n
const AMOUNT = 1000n
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
  const order = ({ keys }: Payer, wCid: string, amount = AMOUNT): Promise<Answer> => {
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
    t.equal((await order(payer, wCid, AMOUNT + 1n)).status, 409, 'another order for a paid upload is refused')
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
