import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { openKeystore } from '../../cli/keystore.js'
import { PaymentApi } from '../../cli/payment-api.js'
import { signText } from '../../services/payment/addresses.js'
import { paymentOrderText } from '../../services/payment/billing.js'
import { payerOf } from '../services/payment/payer.js'
import { NETWORK, newKeys, startPaymentScene } from '../services/payment/payment-client.js'
import { temporaryFolder } from '../support/content/folders.js'
import { writeKeystore } from '../support/content/keystore.js'
import { piped, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'

const PASSWORD = 'correct horse'

t.test('a keystore of another program is opened', async (t) => {
  // The test vector of the specification, with scrypt:
  // https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage
  const file = join(temporaryFolder(t), 'keystore.json')
  const document = {
    crypto: {
      cipher: 'aes-128-ctr',
      cipherparams: { iv: '83dbcc02d8ccb40e466191a123791e0e' },
      ciphertext: 'd172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c',
      kdf: 'scrypt',
      kdfparams: {
        dklen: 32,
        n: 262144,
        p: 8,
        r: 1,
        salt: 'ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19',
      },
      mac: '2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097',
    },
    id: '3198bc9c-6672-5ab3-d995-4942343ae5b6',
    version: 3,
  }
  writeFileSync(file, JSON.stringify(document))
  const { address, secretKey } = await openKeystore(file, 'testpassword')
  t.equal(Buffer.from(secretKey).toString('hex'), '7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d')
  t.equal(address, '0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b')
  writeFileSync(file, JSON.stringify({ ...document, version: 1 }))
  await t.rejects(openKeystore(file, 'testpassword'), { message: /no keystore of version 3/ })
  await t.rejects(openKeystore(`${file}x`, 'testpassword'), { message: /There is no wallet/ })
})

t.test('a service gets no order to pay signed as a nonce', async (t) => {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    const nonce = paymentOrderText('another upload', 10n ** 12n, 'dealgate.testnet')
    response.end(JSON.stringify({ status: 'success', data: { nonce, jwt_token: 'x' } }))
  })
  const url = await listen(server, t)
  const secretKey = Buffer.alloc(32, 7)
  const wallet = { address: `0x${'1'.repeat(40)}`, secretKey }
  const api = new PaymentApi(url, 'dealgate.testnet', wallet)
  await t.rejects(api.signIn(), { message: /is no nonce/ })
  t.same(paths, ['/api/v1/user/register'])
})

t.test('a service with payments on a chain: the message says how to pay', async (t) => {
  const server = createServer((request, response) => {
    const data = { chain_name: 'some.mainnet', payment_contract_address: `0x${'2'.repeat(40)}` }
    if (request.method === 'POST') response.statusCode = 409
    response.end(JSON.stringify({ status: 'success', data }))
  })
  const url = await listen(server, t)
  const wallet = { address: `0x${'1'.repeat(40)}`, secretKey: Buffer.alloc(32, 7) }
  const api = (network: string) => new PaymentApi(url, network, wallet)
  await t.rejects(api('some.mainnet').requireLedger(), {
    message: /on a chain.* call lockTokenPayment of the contract 0x2{40}/,
  })
  await t.rejects(api('dealgate.testnet').requireLedger(), {
    message: /is of the network some\.mainnet, not of dealgate\.testnet: .*--payment-network/,
  })
})

t.test('a free upload cannot be paid for', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 100 } })
  const secretKey = Buffer.alloc(32, 7)
  const payer = await payerOf(scene, newKeys(secretKey))
  const { source_file_upload_id: id } = (await payer.upload('a', 'a')).json.data
  const api = new PaymentApi(scene.payment.url, NETWORK, { address: payer.keys.address, secretKey })
  await api.signIn()
  await t.rejects(api.upload(String(id)), { message: 'The upload 1 is free: there is nothing to pay.' })
})

t.test('from a wallet to a paid upload', async (t) => {
  const server = await startDealgate(t)
  const { data, payment } = server
  const wallet = async (args: readonly string[], input?: string) => {
    const all = ['wallet', ...args, '--data', data, '--print', 'json']
    const { code, stdout, stderr } = await (input === undefined ? runCli(all) : piped(input, all))
    return { code, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) }
  }
  t.match(await wallet(['balance']), { code: 1, stderr: /There is no wallet .* dealgate wallet create/ })
  t.match(await wallet(['create', '--password', 'short']), { code: 2, stderr: /at least 8/ })
  const made = await wallet(['create', '--password', '-'], `${PASSWORD}\n`)
  t.match(made, { code: 0, json: { address: /^0x[0-9a-fA-F]{40}$/, file: join(data, 'wallet.json') } })
  t.match(await wallet(['create', '--password', PASSWORD]), { code: 1, stderr: /already/ })
  t.equal(statSync(made.json.file).mode & 0o077, 0)
  t.notMatch(readFileSync(made.json.file, 'utf8'), PASSWORD)
  const { address } = made.json
  const { secretKey } = await openKeystore(made.json.file, PASSWORD)
  // Each of the commands that follow opens it.
  writeKeystore(made.json.file, PASSWORD, secretKey)
  t.match(await wallet(['fund', '12.5']), { code: 0, json: { address, balance: '12.5' } })
  const once = ['fund', '1', '--address', address.toLowerCase(), '--reference', 'a-test']
  for (let n = 0; n < 2; n++) t.match(await wallet(once), { json: { address, balance: '13.5' } }, 'once')
  t.equal((await wallet(['fund', '1.0000001'])).code, 2)

  const at = ['--endpoint-url', server.endpoint]
  t.match(await wallet(['link', '--password', PASSWORD, ...at]), {
    code: 0,
    json: { address, accessKey: server.accessKey, until: /^\d{4}-/ },
  })
  t.match(await wallet(['link', '--password', 'wrong password', ...at]), { code: 1, stderr: /does not open/ })

  const api = async (path: string, body?: object | FormData, token?: string) => {
    const response = await fetch(`${payment}/api/v1${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    })
    const { data: answer } = (await response.json()) as { data: Record<string, string> }
    return answer
  }
  const { nonce = '' } = await api('/user/register', { public_key_address: address })
  const signature = signText(nonce, secretKey)
  const login = { nonce, signature, public_key_address: address, network: 'dealgate.testnet' }
  const { jwt_token: token } = await api('/user/login_by_wallet_signature', login)
  const form = new FormData()
  form.append('duration', '525')
  form.append('file', new Blob(['x'.repeat(1_000_000)]), 'x.txt')
  const upload = await api('/storage/ipfs/upload', form, token)
  const id = String(upload.source_file_upload_id)

  const url = ['--payment-url', payment]
  const unasked = await wallet(['pay', id, '--password', PASSWORD, ...url])
  t.match(unasked, { code: 2, stderr: /--max-amount/ }, 'the service names the price')
  const limited = (amount: string) => wallet(['pay', id, '--password', PASSWORD, '--max-amount', amount, ...url])
  t.match(await limited('0.000001'), { code: 1, stderr: /above --max-amount 0.000001/ })
  t.match(await wallet(['pay', '99', '--yes', '--password', PASSWORD, ...url]), { code: 1, stderr: /not exists/ })
  t.match(await wallet(['pay', id, '--amount', '14', '--password', PASSWORD, ...url]), { code: 1, stderr: /Fund the/ })
  const paid = await wallet(['pay', id, '--yes', '--password', '-', ...url], `${PASSWORD}\n`)
  t.match(paid, { code: 0, json: { wCid: upload.w_cid, hash: /^0x[0-9a-f]{64}$/ } })
  t.same(await limited('13.5'), paid, 'a repeated command pays once')
  const left = 13_500_000 - Math.round(Number(paid.json.amount) * 1e6)
  t.match(await wallet(['balance']), { json: { balance: String(left / 1e6) } })
  const info = await api(`/billing/deal/lockpayment/info?source_file_upload_id=${id}`, undefined, token)
  t.equal(info.pay_tx_hash, paid.json.hash)
})
