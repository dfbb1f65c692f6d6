import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { encodeErrorResult, parseAbi } from 'viem'
import { readAbi } from '../../../../services/payment/chain/abi.js'
import { openNode } from '../../../../services/payment/chain/node.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { listen } from '../../../support/server/listen.js'
import { until } from '../../../support/waiting.js'
import { payerOf } from '../payer.js'
import { startPaymentScene } from '../payment-client.js'
import { PAID, paid, startChainScene, walletOn } from './chain-scene.js'
import { EvmNode, type Fault } from './evm-node.js'
import { PaymentContract } from './payment-contract.js'

t.setTimeout(300_000)

t.test('a node that fails, hangs or floods is asked again, and nothing is lost', async (t) => {
  const scene = await startChainScene(t, { chain: { timeoutMs: 200 } })
  const { node, contract } = scene
  const wallet = await walletOn(scene)
  for (const kind of ['fail', 'hang', 'flood', 'silence'] as const) {
    const { id, wCid } = await wallet.upload(`${kind}.txt`)
    let met = 0
    const fault: Fault = (method) => {
      if (method !== 'eth_getLogs' && method !== 'eth_getTransactionByHash') return undefined
      met++
      return met > 2 ? undefined : kind
    }
    await contract.lock(wallet.secretKey, { id: wCid, amount: PAID })
    node.fault = fault
    await node.mineEmpty(2)
    await wallet.untilStatus(id, 'Processing')
    t.ok(met > 2, `${kind} was met`)
  }
})

t.test('without a node the service works, and follows the chain when it is there', async (t) => {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  await node.down()
  const payment = await startPaymentScene(t, { chain: contract.options })
  await node.listenAgain()
  const scene = { node, contract, payment }
  await paid(scene, await walletOn(scene))
})

t.test('without a first block, payments count from the first start on', async (t) => {
  const scene = await startChainScene(t, { chain: { startBlock: undefined } })
  await paid(scene, await walletOn(scene))
})

t.test('what is configured wrong does not start', async (t) => {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  const other = await PaymentContract.deploy(node)
  const start = (chain: object) => startPaymentScene(t, { chain: { ...contract.options, ...chain } })
  await t.rejects(start({ chainId: 1 }), /chain 31337, not of 1/)
  const fine = await PaymentContract.deploy(node, 40)
  await t.rejects(start({ token: fine.token }), /40 decimals: it must have at most 36/)
  await t.rejects(start({ token: contract.recipient }), /no contract with decimals/)
  await t.rejects(start({ abiFile: '/nowhere.json' }), /nowhere\.json cannot be used/)
  const scene = await start({})
  await t.rejects(scene.restart({ chain: { ...contract.options, contract: other.address } }), /choose another folder/)
  await t.rejects(scene.restart({ chain: undefined }), /give --payment-chain-url/)
  const ledger = await startPaymentScene(t)
  const payer = await payerOf(ledger)
  await payer.pay('a.txt', 'a', PAID)
  await t.rejects(ledger.restart({ chain: contract.options }), /payments of the embedded ledger/)
})

t.test('the ABI is read from a file', async (t) => {
  const file = join(temporaryFolder(t), 'abi.json')
  const read = (abi: unknown) => {
    writeFileSync(file, typeof abi === 'string' ? abi : JSON.stringify(abi))
    return readAbi(file)
  }
  const usual = readAbi(undefined)
  t.same(read(usual), usual)
  t.same(read({ contractName: 'x', abi: [{ type: 'constructor' }, ...usual] }), usual, 'in the output of a compiler')
  const [lock, unlock] = usual
  for (const [bad, says] of [
    ['{', /cannot be used/],
    [{ abi: 1 }, /it is no ABI/],
    [[unlock], /has no event LockPayment/],
    [[{ ...lock, inputs: lock?.inputs.slice(1) }], /must have string id/],
    [
      [{ ...lock, inputs: lock?.inputs.map((one) => ({ ...one, indexed: true })) }],
      /id of the event LockPayment is indexed/,
    ],
    [`[${' '.repeat(2 ** 20)}]`, /more than 1048576 bytes/],
  ] as const)
    t.throws(() => read(bad), says)
  read([lock])
  const scene = await startChainScene(t, { chain: { abiFile: file } })
  await paid(scene, await walletOn(scene))
})

t.test('a key of the URL is in no log and no message', async (t) => {
  const lines: string[] = []
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  const keep = (fields: object, text: string): unknown => lines.push(JSON.stringify([fields, text]))
  const log = { info: keep, warn: keep, error: keep }
  const payment = await startPaymentScene(t, { chain: { ...contract.options, url: `${node.url}/secret-key` } }, { log })
  node.fault = () => 'fail'
  await until('it failed', () => lines.some((line) => line.includes('Could not follow the chain')))
  await payment.payment.stop()
  t.notMatch(lines.join('\n'), 'secret-key')
  t.notMatch(lines.join('\n'), node.url)
})

const CONTRACT = '0x00000000000000000000000000000000000000c1'
const TOKEN = '0x00000000000000000000000000000000000000c2'
const LOOKUP = parseAbi([
  'error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData)',
])

t.test('a contract cannot make the service ask an address (EIP-3668)', async (t) => {
  const asked: string[] = []
  const node = createServer(async (request, response) => {
    asked.push(request.url ?? '')
    const { id } = (await json(request)) as { id: number }
    const args = [CONTRACT, [`${url}/{sender}/{data}.json`], '0x01', '0x12345678', '0x02'] as const
    const data = encodeErrorResult({ abi: LOOKUP, errorName: 'OffchainLookup', args })
    const error = { code: 3, message: 'execution reverted', data }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  })
  const url = await listen(node)
  const stop = new AbortController()
  t.teardown(() => {
    stop.abort()
    node.close()
    node.closeAllConnections()
  })
  const client = await openNode({ url, contract: CONTRACT, token: TOKEN, timeoutMs: 10_000 }, [], stop.signal)
  await t.rejects(client.locked('w_cid', 1), { message: /eth_call/ })
  t.same(asked, ['/'], 'the call alone')
})
