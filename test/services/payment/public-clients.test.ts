import t from 'tap'
import { createPublicClient, encodeFunctionData, http, parseUnits, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { readWords } from '../../../src/services/payment/words.js'
import { CHAIN_ID, EvmNode } from './chain/evm-node.js'
import { PaymentContract } from './chain/payment-contract.js'
import { type ChainPayer, untilRead, walletFor } from './chain-scene.js'
import { payerOf } from './payer.js'
import { newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

t.setTimeout(300_000)

/** Words of the deployments that js-mcs-sdk 2.5.1 is for. */
const words = readWords('filecoin,usdc,metamask')

const ABI = [
  {
    type: 'function',
    name: 'approve',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'spender', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
  {
    type: 'function',
    name: 'lockTokenPayment',
    stateMutability: 'nonpayable',
    inputs: [
      {
        name: 'param',
        type: 'tuple',
        components: [
          { name: 'id', type: 'string' },
          { name: 'minPayment', type: 'uint256' },
          { name: 'amount', type: 'uint256' },
          { name: 'lockTime', type: 'uint256' },
          { name: 'recipient', type: 'address' },
          { name: 'size', type: 'uint256' },
          { name: 'copyLimit', type: 'uint8' },
        ],
      },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const

/** What js-mcs-sdk 2.5.1 pays with. */
interface Order {
  readonly id: string
  readonly amount: bigint
  readonly minPayment: bigint
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
    minPayment: parseUnits(Number(paid).toFixed(6), 6),
    amount: parseUnits((Number(paid) * params.pay_multiply_factor).toFixed(6), 6),
    params,
  }
}

/** Approves and locks on the chain, as the client does. */
async function lockOnChain(wallet: ChainPayer, node: EvmNode, size: number, order: Order): Promise<void> {
  const { params, ...paid } = order
  const account = privateKeyToAccount(toHex(wallet.secretKey))
  const client = createPublicClient({ transport: http(node.url) })
  const send = async (to: `0x${string}`, data: `0x${string}`): Promise<void> => {
    const nonce = await node.nonceOf(account.address)
    const fees = { gas: BigInt(params.gas_limit), gasPrice: await client.getGasPrice(), type: 'legacy' as const }
    const raw = await account.signTransaction({ to, data, nonce, chainId: CHAIN_ID, ...fees })
    await client.sendRawTransaction({ serializedTransaction: raw })
  }
  const contract = params.payment_contract_address
  await send(
    params.usdc_address,
    encodeFunctionData({ abi: ABI, functionName: 'approve', args: [contract, paid.amount] }),
  )
  const recipient = params.payment_recipient_address
  const param = { ...paid, lockTime: BigInt(86_400 * params.lock_time), recipient, size: BigInt(size), copyLimit: 5 }
  await send(contract, encodeFunctionData({ abi: ABI, functionName: 'lockTokenPayment', args: [param] }))
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
    await lockOnChain(wallet, node, size, order)
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

t.test('names of the interface stay beside those in words of clients', async (t) => {
  const inWords = await startPaymentScene(t, { words, mintContract: `0x${'aB'.repeat(20)}` })
  const { data } = (await inWords.call('GET', '/api/v1/common/system/params')).json
  t.equal(data.usdc_address, data.stable_address)
  t.equal(data.filecoin_price, data.storage_coin_price)
  t.equal(data.mint_contract_address.toLowerCase(), `0x${'ab'.repeat(20)}`)
  for (const coin of ['filecoin', 'storagecoin']) {
    const { json } = await inWords.call('GET', `/api/v1/billing/price/${coin}`)
    t.same(json, { status: 'success', code: '200', data: data.storage_coin_price })
  }
  const b = await startPaymentScene(t, { words, variant: 'b' })
  const params = (await b.call('GET', '/api/v1/common/system/params')).json.data
  t.equal(params.USDC_ADDRESS, params.STABLE_ADDRESS)
  const plain = await startPaymentScene(t)
  t.notOk('usdc_address' in (await plain.call('GET', '/api/v1/common/system/params')).json.data)
  t.equal((await plain.call('GET', '/api/v1/billing/price/filecoin')).status, 404)
})
