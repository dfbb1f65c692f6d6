import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { silentLog } from '../../../services/log.js'
import { EmbeddedPayments, formatAmount, MAX_ISSUED, parseAmount } from '../../../services/payment/embedded-payments.js'
import type { PaymentOrder } from '../../../services/payment/ledger.js'
import { paymentSchema } from '../../../services/payment/store.js'
import { DatabaseUnavailableError } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

const ID = 'ledger'
const wallet = (n: number): string => `0x${String(n).padStart(40, '0')}`

async function openPayments(folder: string) {
  makePrivateFolder(folder)
  const place = { file: join(folder, 'payment.db'), database: await emptyDatabase() }
  const db = await openStore(paymentSchema, place, silentLog)
  return { payments: new EmbeddedPayments(db, ID), db, stop: () => db.close() }
}

async function start(t: Test): Promise<EmbeddedPayments> {
  const { payments, stop } = await openPayments(temporaryFolder(t))
  t.teardown(stop)
  return payments
}

const order = (wCid: string, amount: bigint, from = wallet(1)): PaymentOrder => ({
  wCid,
  wallet: from,
  amount,
  paidAt: 10,
  deadline: 20,
  deadlineEpoch: 5,
})

const whole = async (t: Test, payments: EmbeddedPayments): Promise<void> => {
  t.same(await payments.sums(), { balances: 0n, entries: 0n }, 'the ledger adds up')
}

t.test('amounts are exact decimals', async (t) => {
  for (const [text, amount] of [
    ['12', 12_000_000n],
    ['0.000001', 1n],
    ['999999999999.999999', 10n ** 18n - 1n],
  ] as const) {
    t.equal(parseAmount(text), amount)
    t.equal(formatAmount(amount), text)
  }
  for (const text of ['', '.5', '-1', '1e3', '0.0000001', '1000000000000', '١'])
    t.equal(parseAmount(text), undefined, text)
})

t.test('a funding of which the answer is lost is repeated, and counts once', async (t) => {
  const { payments, db, stop } = await openPayments(temporaryFolder(t))
  t.teardown(stop)
  let lost = 0
  const answersLate: typeof db = {
    read: db.read,
    shared: db.shared,
    lease: (name) => db.lease(name),
    snapshot: () => db.snapshot(),
    requireRoom: () => {},
    close: () => db.close(),
    transaction: async (work) => {
      const result = await db.transaction(work)
      if (lost++ < 2) throw new DatabaseUnavailableError('The answer is lost.')
      return result
    },
  }
  await new EmbeddedPayments(answersLate, ID).fundSurely(wallet(1), 100n, 'a', 1)
  t.equal(lost, 3)
  t.equal(await payments.balance(wallet(1)), 100n)
})

t.test('coins go from a wallet to a lock, to the provider and back', async (t) => {
  const payments = await start(t)
  t.match(await payments.fund(wallet(1), 100n, 'a', 1), /^0x[0-9a-f]{64}$/)
  t.equal(await payments.fund(wallet(1), 100n, 'a', 2), await payments.fund(wallet(1), 5n, 'a', 3))
  t.equal(await payments.balance(wallet(1)), 100n, 'a repeated funding moves nothing')
  const lock = await payments.pay(order('x', 60n))
  t.match(lock, { id: 1, wCid: 'x', wallet: wallet(1), amount: 60n, paidAt: 10, deadline: 20, deadlineEpoch: 5 })
  t.match(lock, { unlocked: 0n, unlockedAt: 0, refunded: 0n, isOpen: true })
  t.equal(await payments.balance(wallet(1)), 40n)
  t.same(await payments.pay(order('x', 60n)), lock, 'the same order again')
  await t.rejects(payments.pay(order('x', 61n)), { name: 'AlreadyPaid' })
  await t.rejects(payments.pay(order('x', 60n, wallet(2))), { name: 'AlreadyPaid' })
  await t.rejects(payments.pay(order('y', 41n)), { name: 'InsufficientFunds' })
  await t.rejects(payments.pay(order('y', 0n)), RangeError)
  await t.rejects(payments.pay(order('y', -1n)), RangeError)
  t.equal(await payments.find('y'), undefined)
  t.equal(await payments.unlock('x', '1', 25n, 11), await payments.unlock('x', '1', 25n, 12), 'once per deal')
  await payments.unlock('x', '2', 25n, 13)
  await payments.unlock('x', '3', 25n, 14)
  t.match(await payments.find('x'), { unlocked: 60n, unlockedAt: 14, isOpen: true }, 'no more than is locked')
  await payments.pay(order('y', 40n))
  await payments.unlock('y', '1', 15n, 15)
  await payments.refund('y', 16)
  await payments.refund('y', 17)
  t.match(await payments.find('y'), { unlocked: 15n, refunded: 25n, isOpen: false })
  t.equal(await payments.balance(wallet(1)), 25n)
  await payments.refund('unknown', 17)
  await whole(t, payments)
})

t.test('coins in circulation are bounded', async (t) => {
  const payments = await start(t)
  await payments.fund(wallet(1), MAX_ISSUED, 'all', 1)
  await t.rejects(payments.fund(wallet(2), 1n, 'more', 1), RangeError)
  await payments.pay(order('x', MAX_ISSUED))
  await payments.refund('x', 1)
  t.equal(await payments.balance(wallet(1)), MAX_ISSUED, 'amounts beyond the integers of a double are exact')
  await whole(t, payments)
})

t.test('no order of steps makes or loses coins', async (t) => {
  const uploads = fc.constantFrom('a', 'b', 'c')
  const amounts = fc.bigInt(0n, 60n)
  const payers = fc.constantFrom(1, 2).map(wallet)
  const kinds = fc.constantFrom('fund', 'pay', 'unlock', 'refund')
  const steps = fc.record({ kind: kinds, amount: amounts, payer: payers, wCid: uploads })
  const folder = temporaryFolder(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 20 }), async (list) => {
      const { payments, stop } = await openPayments(join(folder, String(run++)))
      try {
        let issued = 0n
        for (const [n, { kind, amount, payer, wCid }] of list.entries()) {
          if (kind === 'fund' && amount > 0n) {
            await payments.fund(payer, amount, `${n}`, n)
            issued += amount
          } else if (kind === 'pay') await payments.pay(order(wCid, amount, payer)).catch(() => {})
          else if (kind === 'unlock' && (await payments.find(wCid))) await payments.unlock(wCid, `${n % 3}`, amount, n)
          else if (kind === 'refund') await payments.refund(wCid, n)
        }
        const found = await Promise.all(['a', 'b', 'c'].map((wCid) => payments.find(wCid)))
        const locks = found.flatMap((lock) => lock ?? [])
        const spent = locks.reduce((sum, { amount, refunded }) => sum + amount - refunded, 0n)
        const { balances, entries } = await payments.sums()
        return (
          balances === 0n &&
          entries === 0n &&
          (await payments.balance(wallet(1))) + (await payments.balance(wallet(2))) === issued - spent
        )
      } finally {
        await stop()
      }
    }),
    { numRuns: 40 },
  )
})
