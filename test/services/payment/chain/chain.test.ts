import t, { type Test } from 'tap'
import { until } from '../../../support/waiting.js'
import { pass, type Row } from '../payer.js'
import { type ChainPayer, COINS, PAID, paid, startChainScene, untilRead, walletFor, walletOn } from './chain-scene.js'
import { PaymentContract } from './payment-contract.js'

t.test('a payment on the chain counts when it is confirmed', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a.txt')
  const hash = await contract.lock(wallet.secretKey, { id: wCid, amount: PAID })
  await untilRead(scene)
  t.equal(await wallet.status(id), 'Pending', 'without confirmations')
  const info = `/billing/deal/lockpayment/info?source_file_upload_id=${id}`
  t.match(await wallet.payer.get(info), { w_cid: wCid, pay_amount: '', pay_tx_hash: '', token_address: '' })
  await node.mineEmpty(2)
  await wallet.untilStatus(id, 'Processing')
  const shown = (await wallet.payer.get(info)) as Row
  t.match(shown, { w_cid: wCid, pay_amount: String(PAID), pay_tx_hash: hash })
  t.equal(shown.token_address.toLowerCase(), contract.token)
  const billed = await bill(wallet)
  t.match(billed, { pay_tx_hash: hash, pay_amount: String(PAID), unlock_amount: '', token_name: 'TEST' })
  t.equal(billed.deadline - billed.pay_at, 6 * 86_400)
  const order = await wallet.payer.order(wCid, PAID)
  t.equal(order.status, 409, 'nothing is paid in the ledger')
  t.match(order.json.message, 'lockTokenPayment')
})

const bills = async ({ payer }: ChainPayer, query = ''): Promise<Row[]> =>
  ((await payer.get(`/billing${query}`)) as Row).billing

const bill = async (wallet: ChainPayer): Promise<Row> => (await bills(wallet))[0]

/** An upload that is paid on the chain, and whose deal is active. */
async function withActiveDeal(t: Test) {
  const scene = await startChainScene(t, { withPlatform: true })
  const { node, contract, payment } = scene
  const wallet = await walletOn(scene)
  const upload = await wallet.upload('a.txt', 'a'.repeat(300_000))
  await contract.lock(wallet.secretKey, { id: upload.wCid, amount: PAID })
  await node.mineEmpty(2)
  await until('the deal is active', async () => {
    await payment.network.control.advance(10)
    const { source_file_upload: rows } = (await wallet.payer.get('/storage/tasks/deals')) as Row
    return rows[0].offline_deal[0]?.status === 'Active'
  })
  return { ...scene, wallet, upload }
}

t.test('a paid upload becomes a deal, which is unlocked on the chain, and the rest comes back', async (t) => {
  const { node, contract, payment, wallet, upload } = await withActiveDeal(t)
  await contract.unlock(upload.wCid, 150_000n)
  const unlocked = await contract.unlock(upload.wCid, 50_000n)
  await node.mineEmpty(2)
  await until('the bill has it', async () => (await bill(wallet)).unlock_amount === '200000')
  t.equal(await wallet.status(upload.id), 'Processing', 'the rest is not back')
  await contract.refund(upload.wCid)
  await node.mineEmpty(2)
  await pass(payment, wallet.payer, 'Success')
  const deal = await until('the deal is settled', async () => {
    const { source_file_upload: rows } = (await wallet.payer.get('/storage/tasks/deals')) as Row
    return rows[0].offline_deal.find(({ status }: Row) => status === 'Success')
  })
  t.equal(deal.tx_hash_unlock, unlocked)
  t.equal(await contract.balance(wallet.address), COINS - 200_000n)
  t.match(await wallet.payer.get('/billing/wallet'), {
    coins: [
      { kind: 'token', name: 'TEST', decimals: 6, balance: String(COINS - 200_000n) },
      { kind: 'native', decimals: 18, balance: /^\d+$/ },
    ],
    ...{ locked: '0', unlocked: '200000', refunded: String(PAID - 200_000n) },
  })
  t.equal(await contract.balance(contract.recipient), 200_000n)
  t.equal(await contract.balance(contract.address), 0n)
})

t.test('what is unlocked without an event is read, taken back with its block, and the rest comes back', async (t) => {
  const { node, contract, payment, wallet, upload } = await withActiveDeal(t)
  await contract.unlockForCar(upload.wCid, 150_000n)
  await node.mineEmpty(2)
  const untilUnlocked = (amount: string): Promise<boolean> =>
    until(`${amount} is unlocked`, async () => {
      await payment.network.control.advance(1)
      return (await bill(wallet)).unlock_amount === amount
    })
  await untilUnlocked('150000')
  t.equal(await wallet.status(upload.id), 'Processing', 'the rest is still locked')
  await node.reorganise(3)
  await untilUnlocked('')
  await contract.unlockForCar(upload.wCid, 120_000n)
  await contract.refund(upload.wCid)
  await node.mineEmpty(2)
  await pass(payment, wallet.payer, 'Success')
  t.match(await bill(wallet), { unlock_amount: '120000' })
  t.equal(await contract.balance(wallet.address), COINS - 120_000n)
})

t.test('without a deal in time, the payment comes back by the contract', async (t) => {
  const scene = await startChainScene(t, { withPlatform: true })
  const { node, contract, payment } = scene
  const wallet = await walletOn(scene)
  for (const { minerId } of await payment.network.providers())
    await payment.network.changeProvider?.(minerId, { offlineDealAvailable: false })
  const { id, wCid } = await paid(scene, wallet)
  await payment.network.control.advance(6 * 2880 + 1)
  await wallet.untilStatus(id, 'Refundable')
  await contract.refund(wCid)
  await node.mineEmpty(2)
  await wallet.untilStatus(id, 'Refunded')
  t.equal(await contract.balance(wallet.address), COINS)
  t.match(await bills(wallet), [{ pay_amount: String(PAID), unlock_amount: '' }])
})

t.test('a payment that is wrong does not count, and its upload tells why', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const other = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a.txt')
  const big = await wallet.upload('big.bin', 'x'.repeat(8_000_000))
  const bigPrice = BigInt(((await wallet.payer.get(`/storage/source_file_upload/${big.id}`)) as Row).pay_amount)
  t.ok(bigPrice > 1n)
  const wrong = [
    [wallet, { id: big.wCid, amount: bigPrice - 1n }, 'underpaid'],
    [wallet, { id: big.wCid, amount: PAID, recipient: `0x${'d'.repeat(40)}` }, 'another recipient'],
    [wallet, { id: big.wCid, amount: PAID, lockTime: 6 * 86_400 - 1 }, 'locked too short'],
    [wallet, { id: big.wCid, amount: PAID, lockTime: 2 ** 50 }, 'locked too long'],
    [other, { id: big.wCid, amount: PAID }, 'another wallet'],
  ] as const
  for (const [payer, order] of wrong) {
    await contract.lock(payer.secretKey, order)
    await contract.refund(order.id)
  }
  // Of no wallet, and with text that is no w_cid.
  for (const name of ['', `${wCid} `, wCid.toUpperCase(), 'x'.repeat(10_000)])
    await contract.lock(other.secretKey, { id: name, amount: PAID })
  // A contract of a stranger, which reports payments that it does not hold.
  const stranger = await PaymentContract.deploy(node)
  await stranger.fund(wallet.secretKey, COINS)
  await stranger.lock(wallet.secretKey, { id: wCid, amount: PAID })
  await node.mineEmpty(2)
  await until('all were read', async () => (await wallet.refused(big.id)).length === wrong.length)
  t.same(
    (await wallet.refused(big.id)).map(({ reason }) => reason),
    wrong.map(([, , reason]) => reason),
  )
  t.equal(await wallet.status(big.id), 'Pending')
  t.same(await wallet.refused(id), [])
  t.equal(await wallet.status(id), 'Pending')
  t.equal(await contract.balance(wallet.address), COINS, 'all came back')
  await contract.lock(wallet.secretKey, { id: big.wCid, amount: bigPrice })
  await node.mineEmpty(2)
  await wallet.untilStatus(big.id, 'Processing')
})

t.test('an upload is paid once', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a.txt')
  const first = await contract.lock(wallet.secretKey, { id: wCid, amount: PAID })
  await t.rejects(contract.lock(wallet.secretKey, { id: wCid, amount: PAID }), 'by the contract')
  await contract.refund(wCid)
  const second = await contract.lock(wallet.secretKey, { id: wCid, amount: PAID + 1n })
  await node.mineEmpty(2)
  await until('it was read', async () => (await wallet.refused(id)).length > 0)
  t.same(await wallet.refused(id), [{ pay_tx_hash: second, pay_amount: String(PAID + 1n), reason: 'paid twice' }])
  t.equal(await wallet.status(id), 'Refunded')
  t.match(await bills(wallet), [{ pay_tx_hash: first, pay_amount: String(PAID) }])
})

t.test('reading goes on after a restart, where it ended', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const one = await paid(scene, wallet)
  await scene.payment.payment.stop()
  await contract.refund(one.wCid)
  await node.mineEmpty(700)
  const again = await scene.payment.restart()
  const later = await walletFor(again, wallet.secretKey)
  await later.untilStatus(one.id, 'Refunded')
  t.equal((await bills(later)).length, 1)
})

t.test('a token with 18 decimals: amounts are exact, and sorted as numbers', async (t) => {
  const scene = await startChainScene(t, { decimals: 18 })
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  await contract.fund(wallet.secretKey, 10n ** 24n)
  const amounts = { a: 123_456_789_012_345_678_901n, b: 99_000_000_000_000_000_000n }
  for (const [name, amount] of Object.entries(amounts)) {
    const { wCid } = await paid(scene, wallet, name, amount)
    if (name === 'a') await contract.unlock(wCid, 100_000_000_000_000_000_001n)
  }
  await node.mineEmpty(2)
  const unlocked = await until('the bill has it', async () =>
    (await bills(wallet)).find(({ unlock_amount: amount }) => amount !== ''),
  )
  t.match(unlocked, { pay_amount: String(amounts.a), unlock_amount: '100000000000000000001' })
  const sorted = await bills(wallet, '?order_by=pay_amount&is_ascend=y')
  t.same(
    sorted.map(({ pay_amount: amount }) => amount),
    [String(amounts.b), String(amounts.a)],
  )
})

t.test('a token with 2 decimals: a price below its unit is one unit', async (t) => {
  const scene = await startChainScene(t, { decimals: 2 })
  const wallet = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a')
  t.match(await wallet.payer.get(`/storage/source_file_upload/${id}`), { pay_amount: '1' })
  await scene.contract.lock(wallet.secretKey, { id: wCid, amount: 1n })
  await scene.node.mineEmpty(2)
  await wallet.untilStatus(id, 'Processing')
})

t.test('an upload on its way into a deal waits for its payment to come back; a settled one stays so', async (t) => {
  const scene = await startChainScene(t, { withPlatform: true })
  const { node, contract, payment } = scene
  const wallet = await walletOn(scene)
  const { id, wCid, hash } = await paid(scene, wallet)
  const rows = async (): Promise<Row[]> => ((await wallet.payer.get('/storage/tasks/deals')) as Row).source_file_upload
  await until('it is in a CAR', async () => {
    await payment.network.control.advance(1)
    return (await rows())[0].car_file_id > 0
  })
  const dropped = await node.reorganise(3)
  await wallet.untilStatus(id, 'Pending')
  t.same(await bills(wallet), [])
  await node.mine(...dropped)
  await node.mineEmpty(2)
  await wallet.untilStatus(id, 'Processing')
  await until('the deal is active', async () => {
    await payment.network.control.advance(10)
    return (await rows())[0].offline_deal.some(({ status }: Row) => status === 'Active')
  })
  await contract.unlock(wCid, 300_000n)
  await contract.refund(wCid)
  await node.mineEmpty(2)
  await pass(payment, wallet.payer, 'Success')
  const settled = await bills(wallet)
  // Deeper than the payment itself.
  const all = await node.reorganise(8)
  await untilRead(scene)
  t.same(await bills(wallet), settled)
  for (const raw of all) await node.mine(raw)
  await node.mineEmpty(2)
  await untilRead(scene)
  t.equal(await wallet.status(id), 'Success', 'the same payment again changes nothing')
  t.same(await bills(wallet), settled)
  t.equal(settled[0].pay_tx_hash, hash)
  t.same(await wallet.refused(id), [])
})
