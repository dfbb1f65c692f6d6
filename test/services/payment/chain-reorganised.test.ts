import t from 'tap'
import { until } from '../../support/waiting.js'
import { type ChainPayer, type ChainScene, startChainScene, untilRead, walletFor, walletOn } from './chain-scene.js'
import { pass, type Row } from './payer.js'

t.setTimeout(300_000)

const PAID = 400_000n

/** Uploads, locks a payment, and mines until it counts. */
async function paid({ node, contract }: ChainScene, wallet: ChainPayer, name = 'a.txt') {
  const upload = await wallet.upload(name)
  const hash = await contract.lock(wallet.secretKey, { id: upload.wCid, amount: PAID })
  await node.mineEmpty(2)
  await wallet.untilStatus(upload.id, 'Processing')
  return { ...upload, hash }
}

const bills = async (wallet: ChainPayer): Promise<Row[]> => ((await wallet.payer.get('/billing')) as Row).billing

t.test('a payment that vanishes before it is confirmed never counted', async (t) => {
  const scene = await startChainScene(t)
  const wallet = await walletOn(scene)
  const { id, wCid } = await wallet.upload('a.txt')
  await scene.contract.lock(wallet.secretKey, { id: wCid, amount: PAID })
  await scene.node.mineEmpty(1)
  await untilRead(scene)
  await scene.node.reorganise(2)
  await scene.node.mineEmpty(3)
  await untilRead(scene)
  t.equal(await wallet.status(id), 'Pending')
  t.same(await bills(wallet), [])
})

t.test('an upload whose payment vanishes is unpaid again, until it comes back', async (t) => {
  const scene = await startChainScene(t)
  const { node } = scene
  const wallet = await walletOn(scene)
  const before = await paid(scene, wallet, 'before.txt')
  const { id, hash } = await paid(scene, wallet)
  const dropped = await node.reorganise(3)
  await wallet.untilStatus(id, 'Pending')
  t.equal(await wallet.status(before.id), 'Processing', 'an older payment stays')
  t.equal((await bills(wallet)).length, 1)
  t.same(await node.mine(...dropped), [hash])
  await node.mineEmpty(2)
  await wallet.untilStatus(id, 'Processing')
  t.match(await bills(wallet), [{ pay_tx_hash: hash, pay_amount: String(PAID) }, { pay_tx_hash: before.hash }])
})

t.test('a refund that vanishes is taken back, also while the service does not run', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const { id, wCid } = await paid(scene, wallet)
  await contract.refund(wCid)
  await node.mineEmpty(2)
  await wallet.untilStatus(id, 'Refunded')
  await scene.payment.payment.stop()
  await node.reorganise(3)
  await node.mineEmpty(2)
  const again = await scene.payment.restart()
  const later = await walletFor(again, wallet.secretKey)
  await later.untilStatus(id, 'Processing')
  await contract.refund(wCid)
  await node.mineEmpty(2)
  await later.untilStatus(id, 'Refunded')
})

t.test('parts that were unlocked and vanish are locked again', async (t) => {
  const scene = await startChainScene(t)
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  const { wCid } = await paid(scene, wallet)
  const untilUnlocked = (amount: string) =>
    until(`${amount} are unlocked`, async () => (await bills(wallet))[0]?.unlock_amount === amount)
  await contract.unlock(wCid, 100_000n)
  await node.mineEmpty(2)
  await untilUnlocked('100000')
  await contract.unlock(wCid, 200_000n)
  await contract.unlock(wCid, 100_000n)
  await node.mineEmpty(2)
  await untilUnlocked('400000')
  await node.reorganise(4)
  await untilUnlocked('100000')
  await contract.unlock(wCid, 50_000n)
  await node.mineEmpty(2)
  await untilUnlocked('150000')
})

t.test(
  'an upload on its way into a deal waits for its payment to come back, and one that is settled stays so',
  async (t) => {
    const scene = await startChainScene(t, { withPlatform: true })
    const { node, contract, payment } = scene
    const wallet = await walletOn(scene)
    const { id, wCid, hash } = await paid(scene, wallet)
    const rows = async (): Promise<Row[]> =>
      ((await wallet.payer.get('/storage/tasks/deals')) as Row).source_file_upload
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
    t.equal(await wallet.status(id), 'Success')
    t.same(await bills(wallet), settled)
    for (const raw of all) await node.mine(raw)
    await node.mineEmpty(2)
    await untilRead(scene)
    t.equal(await wallet.status(id), 'Success', 'the same payment again changes nothing')
    t.same(await bills(wallet), settled)
    t.equal(settled[0].pay_tx_hash, hash)
    t.same(await wallet.refused(id), [])
  },
)
