import t from 'tap'
import { parseUnits } from 'viem'
import { readWords } from '../../../../services/payment/words.js'
import { newKeys, nonceFor, type PaymentScene } from '../payment-client.js'
import { startChainScene, untilRead, walletFor } from './chain-scene.js'

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
  const onChain = await startChainScene(t, { payment: { words } })
  const { node, contract, payment: scene } = onChain
  const secretKey = new Uint8Array(32).fill(0x11)
  const keys = newKeys(secretKey)
  await contract.fund(secretKey, 10n ** 9n)
  const nonce = await nonceFor(scene.call, keys)
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
    await untilRead(onChain)
    t.same(await wallet.refused(id), [], `${amount} for ${size} bytes is enough`)
    t.equal(await wallet.status(id), 'Processing')
    await t.rejects(orderOf(scene, token, id, amount, size), /already paid/)
  }
})
