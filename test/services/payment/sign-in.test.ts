import { join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { recoverMessageAddress, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openDatabase } from '../../../src/services/database.js'
import { checksummed, parseAddress, signerOfText } from '../../../src/services/payment/addresses.js'
import { logIn, newKeys, nonceFor, startPaymentScene } from './payment-client.js'

const VECTOR = {
  key: Buffer.alloc(32, 0x11),
  address: '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A',
  nonce: '1086889515610840385225475684592216593766',
  signature:
    '0x4e32a2b9b67d722094625a53badeee8e9cb0ae0260b916a63894f027c2a162ba02405fa2b44572e5a29896afac41a6adbc1694f816e7eb39a3fec8017abe7c971b',
}

t.test('a signature of EIP-191 has the address of its wallet', (t) => {
  const { key, address, nonce, signature } = VECTOR
  t.equal(signerOfText(nonce, signature), address.toLowerCase())
  const keys = newKeys(key)
  t.equal(keys.address, address.toLowerCase())
  t.equal(keys.sign(nonce), signature, 'signatures are those of RFC 6979')
  t.equal(checksummed(keys.address), address)
  t.equal(parseAddress(address.toUpperCase().replace('0X', '0x')), keys.address)
  for (const wrong of ['', '0x', address.slice(0, -1), `${address}0`, address.slice(2), `0x${'g'.repeat(40)}`]) {
    t.equal(parseAddress(wrong), undefined)
  }
  t.end()
})

t.test('what is no signature has no address', (t) => {
  const { nonce, signature, address } = VECTOR
  const signer = address.toLowerCase()
  const rs = signature.slice(0, -2)
  t.equal(signerOfText(nonce, `${rs}00`), signer, 'some wallets send 0 for 27')
  t.not(signerOfText(nonce, `${rs}1c`), signer)
  for (const v of ['02', '1a', '1d', 'ff']) t.equal(signerOfText(nonce, rs + v), undefined)
  for (const wrong of ['', '0x', rs, `${signature}00`, signature.slice(2), `0x${'0'.repeat(130)}`]) {
    t.equal(signerOfText(nonce, wrong), undefined)
  }
  const s = BigInt(`0x${rs.slice(66)}`)
  const high = (secp256k1.Point.CURVE().n - s).toString(16).padStart(64, '0')
  t.equal(signerOfText(nonce, `${rs.slice(0, 66)}${high}1c`), undefined, 'a signature with a high s')
  t.not(signerOfText(`${nonce}0`, signature), signer)
  t.end()
})

t.test('signatures agree with those of viem, over nonces of a service', async (t) => {
  const { call } = await startPaymentScene(t)
  for (let n = 0; n < 40; n++) {
    const key = secp256k1.utils.randomSecretKey()
    const account = privateKeyToAccount(toHex(key))
    const keys = newKeys(key)
    t.equal(checksummed(keys.address), account.address)
    const nonce = await nonceFor(call, keys)
    const signature = await account.signMessage({ message: nonce })
    t.equal(signature, keys.sign(nonce))
    t.equal(signerOfText(nonce, signature), keys.address)
    t.equal(await recoverMessageAddress({ message: nonce, signature }), account.address)
    const login = { public_key_address: account.address, signature }
    t.equal((await logIn(call, keys, nonce, login)).status, 200)
  }
})

t.test('a wallet signs in', async (t) => {
  const { call, signIn } = await startPaymentScene(t)
  const keys = newKeys()
  const nonce = await nonceFor(call, keys)
  t.match(nonce, /^[1-9]\d{40,63}$/)
  const { status, json } = await logIn(call, keys, nonce, { public_key_address: checksummed(keys.address) })
  t.equal(status, 200)
  t.same(Object.keys(json).sort(), ['code', 'data', 'status'])
  t.same(Object.keys(json.data), ['jwt_token'])
  t.match(json, { status: 'success', code: 200 })
  t.same(decodeProtectedHeader(json.data.jwt_token), { alg: 'HS256', typ: 'JWT' })
  const { sub, exp = 0, iat = 0 } = decodeJwt(json.data.jwt_token)
  t.equal(sub, '1,dealgate.testnet')
  t.equal(exp - iat, 86_400)
  t.equal(decodeJwt(await signIn(keys)).sub, sub, 'a wallet keeps its number')
  t.equal(decodeJwt(await signIn(newKeys())).sub, '2,dealgate.testnet')
})

t.test('a client may send its body without a type', async (t) => {
  const { payment } = await startPaymentScene(t)
  const body = new TextEncoder().encode(JSON.stringify({ public_key_address: newKeys().address }))
  const response = await fetch(`${payment.url}/api/v1/user/register`, { method: 'POST', body })
  t.equal(response.status, 200)
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
  t.equal((await logIn(call, keys, nonce)).status, 200, 'none of them has used it')
  t.match(await logIn(call, keys, nonce), refused, 'used')
  const again = await scene.restart()
  t.match(await logIn(again.call, keys, nonce), refused, 'used before a restart')
  const late = await nonceFor(again.call, keys)
  clock.ahead += 301
  t.match(await logIn(again.call, keys, late), refused, 'expired')
  for (const forged of ['1', VECTOR.nonce, `0${late}`, `-${late}`, '9'.repeat(61), 'x', `${late}0`]) {
    t.equal((await logIn(again.call, keys, forged)).status, 401)
  }
})

t.test('of many uses of a nonce at the same time one succeeds', async (t) => {
  const { call } = await startPaymentScene(t)
  const keys = newKeys()
  const nonce = await nonceFor(call, keys)
  const all = await Promise.all(Array.from({ length: 20 }, () => logIn(call, keys, nonce)))
  t.same(all.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 401)])
})

t.test('sign-ins from other machines are limited by address', async (t) => {
  const signIns = { burst: 4, perSecond: 0.001, atOnce: { total: 8, perClient: 8 } }
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
  t.equal((await call('POST', register, from('192.0.2.2'))).status, 200, 'another address')
  for (let n = 0; n < 6; n++) t.ok(await signIn(newKeys()), 'this machine')
})

t.test('wallets that have nothing are bounded, and forgotten', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxNewWallets: 2, maxUsedNonces: 4 } })
  const { call, clock, folder, network } = scene
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
  const db = openDatabase(join(folder, 'payment.db'), '')
  const left = db.prepare('SELECT address FROM wallets').all()
  db.close()
  t.same(left, [{ address: third.address }], 'those that did not sign in for two days are forgotten')
})

t.test('bad input', async (t) => {
  const { call } = await startPaymentScene(t)
  const [register, login] = ['/api/v1/user/register', '/api/v1/user/login_by_wallet_signature']
  const json = { 'content-type': 'application/json' }
  const failures: readonly [number, number, string, string, object | string | undefined][] = [
    [404, 404, 'GET', '/', undefined],
    [404, 404, 'GET', '/api/v1', undefined],
    [404, 404, 'POST', '/user/register', {}],
    [405, 405, 'GET', register, undefined],
    [400, 10004, 'POST', register, undefined],
    [400, 10004, 'POST', register, '{'],
    [400, 10004, 'POST', register, '[]'],
    [400, 10004, 'POST', register, '{"public_key_address":{}}'],
    [400, 10001, 'POST', register, {}],
    [400, 10001, 'POST', register, { public_key_address: ' ' }],
    [400, 10003, 'POST', register, { public_key_address: 'x' }],
    [400, 10003, 'POST', register, { public_key_address: 'a\0' }],
    [413, 413, 'POST', register, 'x'.repeat(65 * 1024)],
    [400, 10001, 'POST', login, { nonce: '1', signature: '0x', public_key_address: VECTOR.address }],
    [400, 10001, 'POST', login, { signature: '0x', public_key_address: VECTOR.address, network: 'x' }],
    [400, 10003, 'POST', login, { nonce: 1, signature: '0x', public_key_address: 'x', network: 'x' }],
  ]
  for (const [status, code, method, path, body] of failures) {
    const answer = await call(method, path, { ...(body !== undefined && { body }), headers: json })
    t.match(answer, { status, json: { status: 'error', code, message: /:/ } }, `${method} ${path}`)
    t.same(Object.keys(answer.json).sort(), ['code', 'message', 'status'])
  }
})

t.test('variant B has no sign-in', async (t) => {
  const { call } = await startPaymentScene(t, { variant: 'b' })
  t.equal((await call('POST', '/api/v1/user/register', { body: {} })).status, 404)
  t.equal((await call('POST', '/api/v1/user/login_by_wallet_signature', { body: {} })).status, 404)
})
