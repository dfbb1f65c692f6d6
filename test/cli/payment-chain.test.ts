import { join } from 'node:path'
import t from 'tap'
import { EvmNode } from '../services/payment/chain/evm-node.js'
import { PaymentContract } from '../services/payment/chain/payment-contract.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli, startCli } from '../support/server/cli.js'
import { until } from '../support/waiting.js'

t.setTimeout(300_000)

t.test('the embedded services follow a chain by their options', async (t) => {
  const node = await EvmNode.start(t)
  const contract = await PaymentContract.deploy(node)
  const secretKey = new Uint8Array(32).fill(7)
  await contract.fund(secretKey, 1_000_000n)
  const data = join(temporaryFolder(t), 'data')
  const flags = ['--data', data, '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const env = { DEALGATE_PAYMENT_CHAIN_URL: `${node.url}/secret-key` }
  const chain = [
    ...['--payment-chain-id', '31337', '--payment-chain-contract', contract.address],
    ...['--payment-chain-token', contract.token, '--payment-chain-recipient', contract.recipient],
    ...['--payment-chain-confirmations', '1', '--payment-chain-start-block', '0', '--payment-network', 'test.chain'],
  ]
  const args = ['services', ...flags, '--payment-variant', 'b', ...chain]
  const services = await startCli<{ payment: string }>(t, args, env)
  // biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
  const ask = async (path: string, form?: FormData): Promise<any> =>
    (await fetch(`${services.line.payment}/api/v1${path}`, form ? { method: 'POST', body: form } : {})).json()
  t.equal((await ask('/common/system/params')).data.PAYMENT_CONTRACT_ADDRESS.toLowerCase(), contract.address)
  const form = new FormData()
  form.append('duration', '180')
  form.append('wallet_address', contract.addressOf(secretKey))
  form.append('file', new Blob(['a']), 'a.txt')
  const { data: upload } = await ask('/storage/ipfs/upload', form)
  await contract.lock(secretKey, { id: upload.w_cid, amount: 5n })
  await node.mineEmpty(1)
  await until('it is paid', async () => {
    const { data } = await ask(`/storage/source_file_upload/${upload.source_file_upload_id}`)
    return data.status === 'Processing'
  })
  const bills = await ask(`/billing?wallet_address=${contract.addressOf(secretKey)}`)
  t.match(bills.data.billing, [{ network_name: 'test.chain', pay_amount: '5' }])
  const { code, stderr } = await services.stop()
  t.equal(code, 0)
  t.notMatch(stderr, 'secret-key')
  const wrong = await runCli([...args, '--payment-chain-id', '5'], env)
  t.match(wrong, { code: 1, stderr: /follows the contract|chain 31337, not of 5/ })
  t.match(await runCli(['services', ...flags, '--payment-variant', 'b']), {
    code: 1,
    stderr: /give --payment-chain-url/,
  })
})
