import { secp256k1 } from '@noble/curves/secp256k1.js'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { checksummed, parseAddress, signerOfText } from '../../../services/payment/addresses.js'
import { balance, COINS, pass, payerOf, type Row, requestsOf, sumOfLedger } from './payer.js'
import { inDatabase, logIn, newKeys, nonceFor, startPaymentScene } from './payment-client.js'

t.test('what the service says of itself stays over a restart', async (t) => {
  const scene = await startPaymentScene(t)
  const known = await scene.call('GET', '/api/v1/common/system/params')
  const addresses = Object.entries<string>(known.json.data).filter(([name]) => /address|contract/i.test(name))
  t.ok(addresses.length >= 4)
  for (const [name, address] of addresses) t.match(address, /^0x[0-9a-fA-F]{40}$/, name)
  const price = (await scene.call('GET', '/api/v1/billing/price/storagecoin')).json
  t.same(price, { status: 'success', code: '200', data: known.json.data.storage_coin_price })
  const again = await scene.restart()
  t.same((await again.call('GET', '/api/v1/common/system/params')).json, known.json)
})

const DAY = 86_400

t.test('a part of each month is free', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 1000 } }, { withPlatform: true })
  // From the first of a month on, so that it does not end in between.
  const { clock } = scene
  const now = new Date()
  clock.ahead = Math.floor((Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1000) + 60
  const payer = await payerOf(scene)
  const free = (await payer.upload('a', 'x'.repeat(600))).json.data
  t.equal(free.status, 'Free')
  t.equal((await payer.upload('b', 'y'.repeat(401))).json.data.status, 'Pending', 'with it, it would be too much')
  t.equal((await payer.upload('c', 'z'.repeat(400))).json.data.status, 'Free', 'to the last byte')
  t.match(await payer.get('/storage/tasks/deals?is_ascend=y'), {
    source_file_upload: [
      { status: 'Processing', is_free: true },
      { status: 'Pending', is_free: false },
      { status: 'Processing', is_free: true },
    ],
    free_usage: 1000,
    free_quota_per_month: 1000,
  })
  for (const [status, total_record_count] of Object.entries({ Processing: 2, Success: 0, Other: 3 }))
    t.match(await payer.get(`/storage/tasks/deals?status=${status}`), { total_record_count }, status)
  const shown = await payer.get(`/storage/source_file_upload/${free.source_file_upload_id}`)
  t.match(shown, { is_free: true, pay_amount: '0' })
  t.match(await payer.order(free.w_cid, 1n), { status: 409, json: { message: /free/ } })

  const owed = (await payer.get('/storage/source_file_upload/2')) as Row
  await payer.order(owed.w_cid, BigInt(owed.pay_amount))
  const [first, , third] = await pass(scene, payer, 'Success')
  t.equal(first.car_file_id, third.car_file_id, 'with what is paid')
  t.match(first.offline_deal, [{ status: 'Success' }])
  t.match(await payer.get('/billing'), { total_record_count: 1 })
  t.ok((await balance(scene, payer)) < COINS)
  await sumOfLedger(t, scene)

  t.equal((await payer.upload('d', 'd')).json.data.status, 'Pending', 'what has its deals still counts')
  clock.ahead += 31 * DAY
  const later = await payerOf(scene, payer.keys)
  t.equal((await later.upload('e', 'e')).json.data.status, 'Free', 'the next month is another one')
  const stranger = await payerOf(scene, newKeys())
  t.equal((await stranger.upload('f', 'f'.repeat(1000))).json.data.status, 'Free', 'each wallet has its own')
})

t.test('free uploads without a deal end, and uploads of NFTs and of variant b are never free', async (t) => {
  const scene = await startPaymentScene(t, { limits: { freeBytesPerMonth: 1000 } })
  const payer = await payerOf(scene)
  t.equal((await payer.upload('a', 'a')).json.data.status, 'Free')
  t.equal((await payer.upload('nft', 'nft', '', { file_type: '1' })).json.data.status, 'Pending')
  await pass(scene, payer, 'Refunded', 1000)
  await sumOfLedger(t, scene)

  const other = await startPaymentScene(t, { mode: 'open', limits: { freeBytesPerMonth: 1000 } })
  t.equal((await other.call('POST', '/api/v1/user/register', { body: {} })).status, 404, 'it has no sign-in')
  const { upload, ask } = requestsOf(other.call, payer.keys, undefined)
  t.equal((await upload('a', 'a')).json.data.status, undefined)
  const rows = await ask(`/storage/tasks/deals?wallet_address=${payer.keys.address}`)
  t.equal(rows.json.data.free_usage, undefined)
})

t.test('uploads at the same time share what is free, and empty ones are free up to a number of them', async (t) => {
  for (const [limits, bytes, expected] of [
    [{ freeBytesPerMonth: 1000, uploadsPerWallet: 16 }, 300, 3],
    [{ freeBytesPerMonth: 1000, uploadsPerWallet: 16, freeUploadsPerMonth: 2 }, 0, 2],
  ] as const) {
    const payer = await payerOf(await startPaymentScene(t, { limits }))
    const all = await Promise.all(Array.from({ length: 8 }, (_, n) => payer.upload(`${n}`, `${n}`.repeat(bytes))))
    t.equal(all.filter(({ json }) => json.data.status === 'Free').length, expected)
  }
})

const VECTOR = {
  key: Buffer.alloc(32, 0x11),
  address: '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A',
  nonce: '1086889515610840385225475684592216593766',
  signature:
    '0x4e32a2b9b67d722094625a53badeee8e9cb0ae0260b916a63894f027c2a162ba02405fa2b44572e5a29896afac41a6adbc1694f816e7eb39a3fec8017abe7c971b',
}

t.test('a signature of EIP-191 has the address of its wallet', async (t) => {
  const { key, address, nonce, signature } = VECTOR
  t.equal(signerOfText(nonce, signature), address.toLowerCase())
  const keys = newKeys(key)
  t.equal(keys.address, address.toLowerCase())
  t.equal(keys.sign(nonce), signature, 'signatures are those of RFC 6979')
  t.equal(checksummed(keys.address), address)
  t.equal(parseAddress(address.toUpperCase().replace('0X', '0x')), keys.address)
  for (const wrong of ['', address.slice(0, -1), `${address}0`, address.slice(2), `0x${'g'.repeat(40)}`])
    t.equal(parseAddress(wrong), undefined)
})

t.test('what is no signature has no address', async (t) => {
  const { nonce, signature, address } = VECTOR
  const signer = address.toLowerCase()
  const rs = signature.slice(0, -2)
  t.equal(signerOfText(nonce, `${rs}00`), signer, 'some wallets send 0 for 27')
  t.not(signerOfText(nonce, `${rs}1c`), signer)
  for (const wrong of ['', rs, `${rs}02`, `${rs}1d`, `${signature}00`, signature.slice(2), `0x${'0'.repeat(130)}`])
    t.equal(signerOfText(nonce, wrong), undefined)
  const s = BigInt(`0x${rs.slice(66)}`)
  const high = (secp256k1.Point.CURVE().n - s).toString(16).padStart(64, '0')
  t.equal(signerOfText(nonce, `${rs.slice(0, 66)}${high}1c`), undefined, 'a signature with a high s')
})
t.test('a wallet signs in', async (t) => {
  const { call, signIn } = await startPaymentScene(t)
  const keys = newKeys()
  const nonce = await nonceFor(call, keys)
  t.match(nonce, /^[1-9]\d{40,63}$/)
  const { status, json } = await logIn(call, keys, nonce, { public_key_address: checksummed(keys.address) })
  t.equal(status, 200)
  t.match(json, { status: 'success', code: 200 })
  t.same(decodeProtectedHeader(json.data.jwt_token), { alg: 'HS256', typ: 'JWT' })
  const { sub, exp = 0, iat = 0 } = decodeJwt(json.data.jwt_token)
  t.equal(sub, '1,dealgate.testnet')
  t.equal(exp - iat, 86_400)
  t.equal(decodeJwt(await signIn(keys)).sub, sub, 'a wallet keeps its number')
  t.equal(decodeJwt(await signIn(newKeys())).sub, '2,dealgate.testnet')
})

t.test('a nonce is good once, for its wallet, for a while', async (t) => {
  const scene = await startPaymentScene(t)
  const { call, clock } = scene
  const keys = newKeys()
  const stranger = newKeys()
  const refused = { status: 401, json: { status: 'error', code: 401, message: /register again/ } }
  const nonce = await nonceFor(call, keys)
  t.match(await logIn(call, stranger, nonce), refused, 'of another wallet')
  t.match(await logIn(call, keys, nonce, { signature: stranger.sign(nonce) }), refused, 'signed by another wallet')
  t.match(await logIn(call, keys, nonce, { signature: keys.sign(`${nonce}1`) }), refused, 'another text signed')
  t.match(await logIn(call, keys, nonce, { network: 'polygon.mainnet' }), { status: 400, json: { code: 10003 } })
  const all = await Promise.all(Array.from({ length: 20 }, () => logIn(call, keys, nonce)))
  t.equal(all.filter(({ status }) => status === 200).length, 1, 'none of them has used it, and one of many does')
  const again = await scene.restart()
  t.match(await logIn(again.call, keys, nonce), refused, 'used before a restart')
  const late = await nonceFor(again.call, keys)
  clock.ahead += 301
  t.match(await logIn(again.call, keys, late), refused, 'expired')
  for (const forged of [VECTOR.nonce, `-${late}`, 'x', `${late}0`])
    t.equal((await logIn(again.call, keys, forged)).status, 401)
})

t.test('sign-ins from other machines are limited by address', async (t) => {
  const signIns = { burst: 4, perSecond: 0.001, concurrency: { total: 8, perClient: 8 } }
  const { call, signIn } = await startPaymentScene(t, { limits: { signIns } })
  const from = (address: string) => ({
    body: { public_key_address: VECTOR.address },
    headers: { 'x-forwarded-for': address },
  })
  const register = '/api/v1/user/register'
  for (let n = 0; n < 4; n++) t.equal((await call('POST', register, from('192.0.2.1'))).status, 200)
  const refusal = await call('POST', register, from('192.0.2.1'))
  t.match(refusal, { status: 429, json: { code: 429, message: /too many requests/ } })
  t.equal((await call('POST', '/api/v1/user/login_by_wallet_signature', from('192.0.2.1'))).status, 429)
  for (const other of ['192.0.2.2', '2001:db8::1', '2001:db8:1::1']) {
    for (let n = 0; n < 4; n++) t.equal((await call('POST', register, from(other))).status, 200, other)
  }
  for (let n = 0; n < 6; n++) t.ok(await signIn(newKeys()), 'this machine')
})

t.test('wallets that have nothing are bounded, and forgotten', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxNewWallets: 2, maxUsedNonces: 4 } })
  const { call, clock, network } = scene
  const first = newKeys()
  await scene.signIn(first)
  await scene.signIn(newKeys())
  const third = newKeys()
  t.match(await logIn(call, third, await nonceFor(call, third)), { status: 503 }, 'too many new wallets of a day')
  await scene.signIn(first)
  t.match(await logIn(call, first, await nonceFor(call, first)), { status: 503 }, 'too many nonces')
  clock.ahead += 301
  await scene.signIn(first)
  clock.ahead += 86_400
  await scene.signIn(third)
  clock.ahead += 86_500
  const token = await scene.signIn(third)
  await network.control.advance(120)
  await call('GET', '/api/v1/storage/tasks/deals', { token })
  const left = await inDatabase(scene, 'SELECT address FROM wallets')
  t.same(left, [{ address: third.address }], 'those that did not sign in for two days are forgotten')
})
