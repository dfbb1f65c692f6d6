import t, { type Test } from 'tap'
import { inUnits } from '../../../src/services/payment/embedded-payments.js'
import { until } from '../../support/waiting.js'
import { EvmNode } from './chain/evm-node.js'
import { PaymentContract } from './chain/payment-contract.js'
import { type ChainScene, walletOn } from './chain-scene.js'
import type { Row } from './payer.js'
import { startPaymentScene } from './payment-client.js'

t.setTimeout(300_000)

async function startWith(t: Test, decimals: number): Promise<ChainScene> {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node, decimals)
  return { node, contract, payment: await startPaymentScene(t, { chain: contract.options }) }
}

t.test('a token with 18 decimals: amounts are exact, and sorted as numbers', async (t) => {
  const scene = await startWith(t, 18)
  const { node, contract, payment } = scene
  const wallet = await walletOn(scene)
  await contract.fund(wallet.secretKey, 10n ** 24n)
  const owed = async (id: number): Promise<bigint> =>
    BigInt(((await wallet.payer.get(`/storage/source_file_upload/${id}`)) as Row).pay_amount)
  const large = await wallet.upload('large', 'x'.repeat(200_000))
  const price = await owed(large.id)
  t.equal(price % 10n ** 12n, 0n)
  t.ok(price >= 10n ** 12n, 'a millionth of a coin, or more')
  await contract.lock(wallet.secretKey, { id: large.wCid, amount: price - 1n })
  await node.mineEmpty(2)
  await until('the payment is refused', async () => (await wallet.refused(large.id)).length > 0)
  t.match(await wallet.refused(large.id), [{ reason: 'underpaid', pay_amount: String(price - 1n) }])

  const amounts = { a: 123_456_789_012_345_678_901n, b: 99_000_000_000_000_000_000n }
  for (const [name, amount] of Object.entries(amounts)) {
    const { id, wCid } = await wallet.upload(name)
    await contract.lock(wallet.secretKey, { id: wCid, amount })
    await node.mineEmpty(2)
    await wallet.untilStatus(id, 'Processing')
    if (name === 'a') await contract.unlock(wCid, 100_000_000_000_000_000_001n)
  }
  await node.mineEmpty(2)
  const bills = async (query = ''): Promise<Row[]> => ((await wallet.payer.get(`/billing${query}`)) as Row).billing
  const unlocked = await until('the bill has it', async () =>
    (await bills()).find(({ unlock_amount: amount }) => amount !== ''),
  )
  t.match(unlocked, { pay_amount: String(amounts.a), unlock_amount: '100000000000000000001' })
  const sorted = await bills('?order_by=pay_amount&is_ascend=y')
  t.same(
    sorted.map(({ pay_amount: amount }) => amount),
    [String(amounts.b), String(amounts.a)],
  )
  const [first] = await bills('?order_by=unlock_amount')
  t.equal(first?.pay_amount, String(amounts.a))

  const again = await payment.restart()
  const { json } = await again.call('GET', '/api/v1/storage/source_file_upload/1', {
    token: await again.signIn(wallet.payer.keys),
  })
  t.equal(json.data.pay_amount, String(price))
})

t.test('a token with 2 decimals: a price below its unit is one unit', async (t) => {
  const scene = await startWith(t, 2)
  const wallet = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a')
  t.match(await wallet.payer.get(`/storage/source_file_upload/${id}`), { pay_amount: '1' })
  await scene.contract.lock(wallet.secretKey, { id: wCid, amount: 1n })
  await scene.node.mineEmpty(2)
  await wallet.untilStatus(id, 'Processing')
})

t.test('millionths in units', async (t) => {
  t.equal(inUnits(3n, 6), 3n)
  t.equal(inUnits(3n, 18), 3n * 10n ** 12n)
  t.equal(inUnits(10_001n, 2), 2n)
  t.equal(inUnits(1n, 0), 1n)
})
