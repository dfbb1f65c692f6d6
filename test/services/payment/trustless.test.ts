import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import t from 'tap'
import { parseUnits } from 'viem'
import { silentLog } from '../../../src/services/log.js'
import { readWords } from '../../../src/services/payment/words.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { untilRead, walletFor } from './chain/chain-scene.js'
import { EvmNode } from './chain/evm-node.js'
import { PaymentContract } from './chain/payment-contract.js'
import { CAR_TYPE, Dag, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

/** Words of the deployments that js-mcs-sdk 2.5.1 is for. */
const words = readWords('filecoin,usdc,metamask')

/** What js-mcs-sdk 2.5.1 pays with. */
interface Order {
  readonly id: string
  readonly amount: bigint
  // biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
  readonly params: any
}

/**
 * The calls of `makePayment` of js-mcs-sdk 2.5.1 before it pays, in their order, and what it computes from the answers.
 * @param amount coins; empty: as much as the client thinks that it costs
 */
async function orderOf(scene: PaymentScene, token: string, id: number, amount: string, size: number): Promise<Order> {
  const get = async (path: string) => (await scene.call('GET', path, { token })).json
  let paid = amount
  if (amount === '') {
    const { data } = await get('/stats/storage?wallet_address=0x1')
    const [price] = data.historical_average_price_verified.split(' ')
    const { filecoin_price: rate } = (await get('/api/v1/common/system/params')).data
    const value = ((((size / 10 ** 9) * 525 * price * 5) / 365) * (rate / 10 ** 8)).toFixed(6)
    paid = Number(value) > 0 ? value : '0.000002'
  }
  const { source_file_upload: upload } = (await get(`/api/v1/storage/source_file_upload/${id}`)).data
  if (upload.is_free || upload.status !== 'Pending') throw new Error('This file is already paid for.')
  const params = (await get('/api/v1/common/system/params')).data
  return {
    id: upload.w_cid,
    amount: parseUnits((Number(paid) * params.pay_multiply_factor).toFixed(6), 6),
    params,
  }
}

t.test('js-mcs-sdk 2.5.1 pays at the contract, an amount of its own or a given one', async (t) => {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  const scene = await startPaymentScene(t, { chain: contract.options, words })
  const secretKey = new Uint8Array(32).fill(0x11)
  const keys = newKeys(secretKey)
  await contract.fund(secretKey, 10n ** 9n)
  const { json } = await scene.call('POST', '/api/v1/user/register', { body: { public_key_address: keys.address } })
  const { nonce } = json.data
  const body = { nonce, signature: keys.sign(nonce), public_key_address: keys.address, network: 'dealgate.testnet' }
  const signedIn = await scene.call('POST', '/api/v1/user/login_by_metamask_signature', { body })
  t.equal(signedIn.status, 200)
  const token = signedIn.json.data.jwt_token
  const wallet = await walletFor(scene, secretKey)
  for (const [amount, size] of [
    ['', 2_000_000],
    ['', 100],
    ['1', 100],
  ] as const) {
    const { id } = await wallet.upload(`${amount}${size}`, `${amount}${'x'.repeat(size)}`)
    const order = await orderOf(scene, token, id, amount, size)
    const { params, amount: paid } = order
    t.equal(params.payment_contract_address.toLowerCase(), contract.address)
    t.equal(params.usdc_address.toLowerCase(), contract.token)
    t.type(params.gas_limit, 'number')
    const { payment_recipient_address: recipient, lock_time: days } = params
    await contract.lock(secretKey, { id: order.id, amount: paid, recipient, lockTime: 86_400 * days })
    await node.mineEmpty(2)
    await untilRead({ node, contract, payment: scene })
    t.same(await wallet.refused(id), [], `${amount} for ${size} bytes is enough`)
    t.equal(await wallet.status(id), 'Processing')
    await t.rejects(orderOf(scene, token, id, amount, size), /already paid/)
  }
})

t.test('its amount is enough for the ledger, too', async (t) => {
  const scene = await startPaymentScene(t, { words })
  const payer = await payerOf(scene)
  const token = await scene.signIn(payer.keys)
  const size = 1_000_000
  const { json } = await payer.upload('a.txt', 'x'.repeat(size))
  const { source_file_upload_id: id, w_cid: wCid } = json.data
  const order = await orderOf(scene, token, id, '', size)
  t.equal(order.id, wCid)
  t.match(await payer.order(wCid, order.amount), { status: 200, json: { data: { pay_amount: String(order.amount) } } })
  await t.rejects(orderOf(scene, token, id, '', size), /already paid/)
})
t.test('denied contents are answered with 410, and not taken', async (t) => {
  const file = join(temporaryFolder(t), 'denied')
  const write = (...lines: string[]): void => {
    writeFileSync(`${file}.new`, `${lines.join('\n')}\n`)
    renameSync(`${file}.new`, file)
  }
  write('version: 1', 'name: a list', '---', '# nothing yet', '')
  const errors: string[] = []
  const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
  const scene = await startPaymentScene(t, { denylist: file }, { log })
  const payer = await payerOf(scene)
  const get = (path: string, method = 'GET') => fetch(`${scene.payment.url}/ipfs/${path}`, { method })
  const cid: string = (await payer.upload('a', 'denied')).json.data.payload_cid
  const { car } = await directoryCar(t, { 'a/denied.txt': 'denied', 'b/other.txt': 'other' })
  const root: string = (await payer.upload('x.car', car, CAR_TYPE)).json.data.payload_cid
  t.equal((await get(cid)).status, 200)

  write(`/ipfs/${CID.parse(cid).toV1()} hint=value`)
  await untilDenied(`${scene.payment.url}/ipfs/${cid}`)
  for (const path of [`${cid}?format=raw`, `${cid}?format=car`, `${CID.parse(cid).toV1()}`, `${root}/a/denied.txt`]) {
    t.equal((await get(path)).status, 410, path)
    t.equal((await get(path, 'HEAD')).status, 410, path)
  }
  t.match(await (await get(cid)).json(), { code: 410, message: /operator of this gateway does not send Qm/ })
  t.equal((await get(`${root}/b/other.txt`)).status, 200)
  t.equal((await get(`${root}/b?format=car`)).status, 200)
  await t.rejects(async () => (await get(`${root}?format=car`)).arrayBuffer(), 'a CAR breaks off')
  t.match(await payer.upload('again', 'denied'), { status: 403, json: { message: /does not take this content/ } })
  t.equal((await payer.upload('fine', 'fine')).status, 200)

  write('/ipfs/nonsense')
  rmSync(`${file}.new`, { force: true })
  await until('the broken list is read', async () => {
    t.equal((await get(cid)).status, 410, 'the former list is kept')
    return errors.some((message) => message.includes('The former one is kept'))
  })
  t.equal((await get(cid)).status, 410)
  await t.rejects(startPaymentScene(t, { denylist: file }), { message: /line 1 of .*must be \/ipfs\/ and a CID/ })
  await t.rejects(startPaymentScene(t, { denylist: `${file}.none` }), { message: /cannot be read/ })
  write(`/ipfs/${root}/*`)
  await until('the list is read again', async () => (await get(cid)).status === 200)
  t.equal((await get(`${root}/b/other.txt`)).status, 410, 'what lies below a denied directory')
})

t.test('a denied content is not sent as a part of a file of another', async (t) => {
  const file = join(temporaryFolder(t), 'denied')
  writeFileSync(file, '')
  const scene = await startPaymentScene(t, { denylist: file })
  const payer = await payerOf(scene)
  const size = 8000
  const { car, parts, wrapped } = await wrappedFile(size)
  const root: string = (await payer.upload('x.car', car, CAR_TYPE)).json.data.payload_cid
  const get = (query = '') => fetch(`${scene.payment.url}/ipfs/${root}/file${query}`)
  t.equal((await (await get()).arrayBuffer()).byteLength, 2 * size)

  for (const denied of [wrapped, ...parts]) {
    writeFileSync(file, `/ipfs/${denied}\n`)
    await untilDenied(`${scene.payment.url}/ipfs/${denied}`)
    await t.rejects(async () => {
      const answer = await get()
      t.ok(answer.status === 410 || answer.status === 200)
      if (answer.status === 410) throw new Error('refused')
      await answer.arrayBuffer()
    }, 'a file breaks off')
    await t.rejects(async () => {
      const answer = await fetch(`${scene.payment.url}/ipfs/${root}?format=car`)
      await answer.arrayBuffer()
    }, 'a CAR breaks off')
  }
})

/** Waits until the list is read again. That may happen while an answer is under way, which then breaks off. */
async function untilDenied(url: string): Promise<void> {
  await until('the list is read again', async () => {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.body?.cancel().catch(() => {})
    return answer?.status === 410
  })
}

/** A CAR of a directory with a file that consists of another file, which has two parts. */
async function wrappedFile(size: number) {
  const dag = new Dag()
  const parts = [await dag.leaf(Buffer.alloc(size, 'a')), await dag.leaf(Buffer.alloc(size, 'b'))]
  const wrapped = await dag.node(
    'file',
    parts.map((part) => ['', part, size]),
  )
  const outer = await dag.node('file', [['', wrapped, 2 * size]])
  const car = await dag.car(await dag.node('directory', [['file', outer]]))
  return { car, parts: parts.map(({ cid }) => cid), wrapped: wrapped.cid }
}
