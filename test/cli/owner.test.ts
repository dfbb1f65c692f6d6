import { join } from 'node:path'
import t from 'tap'
import { openWalletRegistry } from '../../services/payment/store.js'
import { NETWORK, newKeys } from '../services/payment/payment-client.js'
import { startDealgate } from '../support/server/dealgate.js'
import { type Endpoint, send } from '../support/sign/send.js'

/** The answer to a call, as JSON. */
async function call(server: Endpoint, method: string, target: string, json?: object) {
  const headers = { accept: 'application/json', ...(json && { 'content-type': 'application/json' }) }
  const body = json && { body: Buffer.from(JSON.stringify(json)) }
  const answer = await send(server, { method, target, headers, ...body })
  const text = answer.body.toString()
  return { status: answer.status, ...(text === '' ? {} : JSON.parse(text)) }
}

/** A session of the key pair, by GetSessionToken. */
async function sessionOf(server: Endpoint, policy?: object): Promise<Endpoint & { token: string }> {
  const parameters = {
    Action: 'GetSessionToken',
    Version: '2011-06-15',
    ...(policy && { Policy: JSON.stringify(policy) }),
  }
  const body = Buffer.from(String(new URLSearchParams(parameters)))
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = (await send(server, { method: 'POST', target: '/', headers, body })).body.toString()
  const [accessKey, secretKey, token] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(
    (name) => new RegExp(`<${name}>([^<]+)`).exec(answer)?.[1] ?? '',
  ) as [string, string, string]
  const { endpoint, region } = server
  return { endpoint, region, accessKey, secretKey, token }
}

t.test('the owner of a fresh server has a platform user and a wallet', async (t) => {
  const server = await startDealgate(t)
  const owner = {
    endpoint: server.endpoint,
    region: server.region,
    accessKey: server.accessKey,
    secretKey: server.secretKey,
  }
  const wallet = await call(owner, 'GET', '/-/pay/v1/wallet')
  t.match(wallet, { status: 200, Kept: true, WalletAddress: /^0x[0-9a-f]{40}$/ })
  t.match(await call(owner, 'GET', '/-/task/v1/my-tasks'), { status: 200, Tasks: [] })
  t.match(await call(owner, 'GET', '/-/pay/v1/billing'), { status: 200, Records: [] })

  await send(owner, { method: 'PUT', target: '/photos' })
  await send(owner, { method: 'PUT', target: '/photos/a', body: Buffer.alloc(1000, 'a') })
  const { SourceFileUploadId: id } = await call(owner, 'POST', '/photos/a?x-pay=', { DurationDays: 180 })
  const payment = `/-/pay/v1/uploads/${id}/payment`
  const quote = await call(owner, 'GET', `/-/pay/v1/uploads/${id}/quote`)
  t.match(quote, { status: 200, Kept: true, IsFree: false, Amount: /^[1-9]\d*$/ })
  const order = { Amount: quote.Amount }

  await t.test('it pays what it has, once', async (t) => {
    t.match(await call(owner, 'POST', payment, order), {
      status: 409,
      Code: 'PaymentRefused',
      Message: /Fund the wallet/,
    })
    const coins = { Coins: 5, Reference: 'one' }
    for (const _ of [1, 2])
      t.match(await call(owner, 'POST', '/-/pay/v1/wallet/coins', coins), { status: 200, Coins: 5 })
    const balance = async () => (await call(owner, 'GET', '/-/pay/v1/wallet')).Wallet.Coins[0].Balance
    t.equal(await balance(), '5000000', 'a repeated request gives the coins once')
    const tooMuch = { Amount: String(1000n * BigInt(quote.Amount)) }
    t.match(await call(owner, 'POST', payment, tooMuch), { status: 400, Code: 'InvalidArgument' })
    const paid = await call(owner, 'POST', payment, order)
    t.match(paid, { status: 200, PayAmount: quote.Amount })
    t.equal((await call(owner, 'POST', payment, order)).PayTxHash, paid.PayTxHash)
    t.equal(await balance(), String(5_000_000n - BigInt(quote.Amount)))
  })

  await t.test('no other key pair acts as it', async (t) => {
    const made = await call(owner, 'POST', '/-/keys/v1/OTHER', { All: true })
    const other = { ...owner, accessKey: 'OTHER', secretKey: made.SecretAccessKey }
    t.equal((await send(other, { method: 'GET', target: '/photos/a' })).status, 200, 'though it has all rights')
    t.match(await call(other, 'GET', '/-/task/v1/my-tasks'), { status: 403, Code: 'PlatformIdentityRequired' })
    for (const [method, target, body] of [
      ['GET', '/-/pay/v1/billing'],
      ['GET', `/-/pay/v1/uploads/${id}/quote`],
      ['POST', payment, order],
      ['POST', '/photos/a?x-pay=', { DurationDays: 180 }],
    ] as const)
      t.match(await call(other, method, target, body), { status: 403, Code: 'WalletNotLinked' }, `${method} ${target}`)
    t.match(await call(other, 'POST', '/-/pay/v1/wallet/coins', { Coins: 1 }), { status: 400, Code: 'InvalidRequest' })
  })

  await t.test('sessions act as it, and within their policies', async (t) => {
    const withToken = async (session: Endpoint & { token: string }, method: string, target: string, json?: object) => {
      const headers = {
        accept: 'application/json',
        'x-amz-security-token': session.token,
        ...(json && { 'content-type': 'application/json' }),
      }
      const body = json && { body: Buffer.from(JSON.stringify(json)) }
      return JSON.parse((await send(session, { method, target, headers, ...body })).body.toString())
    }
    const all = await sessionOf(owner)
    t.match(await withToken(all, 'GET', '/-/pay/v1/wallet'), { WalletAddress: wallet.WalletAddress })
    const Statement = [{ Effect: 'Allow', Action: ['pay:Get*', 'pay:List*', 'pay:Quote*'], Resource: '*' }]
    const reads = await sessionOf(owner, { Version: '2012-10-17', Statement })
    t.match(await withToken(reads, 'GET', '/-/pay/v1/wallet'), { WalletAddress: wallet.WalletAddress })
    t.match(await withToken(reads, 'POST', payment, order), { Code: 'AccessDenied' })
    t.match(await withToken(reads, 'POST', '/-/pay/v1/wallet/coins', { Coins: 1 }), { Code: 'AccessDenied' })
  })

  await t.test('a wallet that it links takes the place of the kept one until it is unlinked', async (t) => {
    const { address, sign } = newKeys()
    const { Nonce } = await call(owner, 'POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: address })
    const session = { Nonce, Signature: sign(Nonce), PublicKeyAddress: address, Network: NETWORK, Store: true }
    t.match(await call(owner, 'POST', '/-/pay/v1/wallet/session', session), { status: 200, Stored: true })
    t.match(await call(owner, 'GET', '/-/pay/v1/wallet'), { WalletAddress: address, Kept: false })
    t.match(await call(owner, 'GET', `/-/pay/v1/uploads/${id}/quote`), { Code: 'NoSuchUpload' })
    const own = await call(owner, 'POST', '/photos/a?x-pay=', { DurationDays: 200 })
    t.match(await call(owner, 'GET', `/-/pay/v1/uploads/${own.SourceFileUploadId}/quote`), { status: 200, Kept: false })
    const elsewhere = await call(owner, 'POST', `/-/pay/v1/uploads/${own.SourceFileUploadId}/payment`, order)
    t.match(elsewhere, { status: 400, Code: 'InvalidRequest', Message: /dealgate wallet pay/ })
    t.match(await call(owner, 'POST', '/-/pay/v1/wallet/unlink'), { status: 200, Unlinked: true })
    t.match(await call(owner, 'GET', '/-/pay/v1/wallet'), { WalletAddress: wallet.WalletAddress, Kept: true })
    t.match(await call(owner, 'POST', '/-/pay/v1/wallet/unlink'), { status: 200, Unlinked: false })
  })

  await t.test('it is the same after a restart, and without a word of its key in the log', async (t) => {
    const registry = await openWalletRegistry(join(server.data, 'services'))
    t.equal((await registry.ofOwner()).address, wallet.WalletAddress, 'beside a server that runs')
    await registry.fund(`0x${'1'.repeat(40)}`, 10n ** 18n - 10_000_000n)
    await registry.close()
    const beyond = await call(owner, 'POST', '/-/pay/v1/wallet/coins', { Coins: 6 })
    t.match(beyond, { status: 400, Code: 'InvalidRequest', Message: /The ledger can hold/ })
    await server.stop()
    await server.start()
    const again = { ...owner, endpoint: server.endpoint }
    t.match(await call(again, 'GET', '/-/pay/v1/wallet'), { WalletAddress: wallet.WalletAddress, Kept: true })
    t.match(await call(again, 'GET', payment), { PayAmount: quote.Amount })
    t.match(await call(again, 'GET', '/-/task/v1/my-tasks'), { status: 200 })
  })
})
