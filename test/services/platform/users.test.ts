import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import t from 'tap'
import { OwnFailures, SharedFailures } from '../../../services/failure-table.js'
import type { ClientAddress } from '../../../services/http/server.js'
import { silentLog } from '../../../services/log.js'
import { platformSchema } from '../../../services/platform/store.js'
import { SignInAttempts } from '../../../services/platform/tokens.js'
import { hasUsers, openUserRegistry } from '../../../services/platform/user-registry.js'
import type { SignIn } from '../../../services/platform/users.js'
import { openPostgres } from '../../../services/store/postgres.js'
import { bytesBelow } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { type Scene, startScene } from './platform-client.js'

t.test('users beside a running platform', async (t) => {
  const { folder, database, call, signIn } = await startScene(t)
  t.equal(hasUsers(folder), database === undefined)
  const registry = await openUserRegistry(folder, database)
  t.teardown(() => registry.close())
  const password = 'a password of theirs'
  t.match(await registry.add(' Client@example.com ', password), { id: 2, email: 'client@example.com' })
  await t.rejects(registry.add('client@EXAMPLE.com', password), /has a user client@EXAMPLE.com already/)
  await t.rejects(registry.add('client', password), RangeError)
  await t.rejects(registry.add('other@example.com', 'short'), /8 to 1024/)
  const enter = async (email: string, word: string) => call('POST', '/auth/login', { body: { email, password: word } })
  const token = (await enter('client@example.com', password)).json.auth_token
  const key = await call('POST', '/user/api_keys/jwt', { token, body: { key_name: 'first' } })
  const { apikey, access_token, jwt } = key.json.auth_token
  const works = async (bearer: string) => (await call('GET', '/tasks', { token: bearer })).status === 200
  t.ok((await works(token)) && (await works(jwt)))

  await registry.setPassword('CLIENT@example.com', 'another password')
  t.notOk(await works(token), 'the sign-in ends with the password')
  t.ok(await works(jwt), 'an API key does not')
  t.equal((await enter('client@example.com', password)).status, 401)
  const again = (await enter('client@example.com', 'another password')).json.auth_token
  t.ok(await works(again))

  const owner = await signIn()
  const listed = await call('GET', '/user/api_keys', { token: again })
  t.match(listed.json, { status: 'success', data: { api_keys: [{ apikey, key_name: 'first', status: 'Created' }] } })
  t.notMatch(JSON.stringify(listed.json), access_token)
  t.equal((await call('GET', '/user/api_keys', { token: jwt })).status, 403, 'only for the token of a sign-in')
  const revoke = (bearer: string, body: object) => call('POST', '/user/api_keys/revoke', { token: bearer, body })
  t.match(await revoke(jwt, { apikey }), { status: 403 })
  t.match(await revoke(owner, { apikey }), { status: 404 }, 'not of another user')
  t.match(await revoke(again, {}), { status: 400 })
  t.ok(await works(jwt), 'nothing has happened')
  t.match(await revoke(again, { apikey }), { status: 200, json: { data: { apikey, status: 'Revoked' } } })
  t.notOk(await works(jwt))
  t.match(await call('POST', '/user/api_keys/jwt', { body: { apikey, access_token } }), { status: 401 })
})

t.test('the first start makes a user, once, and keeps no password', async (t) => {
  const scene = await startScene(t)
  const { email, password } = scene.made as SignIn
  t.match(password, /^[\w-]{24}$/)
  t.notOk(bytesBelow(scene.folder).includes(password), 'the password is in no file')
  const token = await scene.signIn()
  t.notOk(bytesBelow(scene.folder).includes(token), 'nor is a token')
  const again = await scene.restart()
  t.equal(again.made, undefined)
  t.match(await again.call('POST', '/auth/login', { body: { email, password } }), { status: 200 })
  t.match(await again.call('POST', '/miner/info', { token }), { status: 400 }, 'a token outlives the process')
})

t.test('a sign-in gives a JWT of a day', async (t) => {
  const { call, made = { email: '', password: '' } } = await startScene(t)
  const body = { ...made, email: ` ${made.email.toUpperCase()} ` }
  const { status, json } = await call('POST', '/auth/login', { body })
  t.equal(status, 200)
  t.match(json, { auth_token: String, message: String, status: 'success' })
  t.notMatch(JSON.stringify(json), /fail/i, 'programs take that word for a failure')
  t.same(decodeProtectedHeader(json.auth_token), { alg: 'HS256', typ: 'JWT' })
  const { sub, exp = 0, iat = 0 } = decodeJwt(json.auth_token)
  t.equal(sub, '1')
  t.equal(exp - iat, 86_400)
})

t.test('a wrong password and an unknown user look the same', async (t) => {
  const { call, made } = await startScene(t)
  const email = made?.email
  const wrong = await call('POST', '/auth/login', { body: { email, password: 'wrong' } })
  const unknown = await call('POST', '/auth/login', { body: { email: 'nobody@localhost', password: 'wrong' } })
  t.equal(wrong.status, 401)
  t.same([unknown.status, unknown.json], [wrong.status, wrong.json])
  t.match(wrong.json, { status: 'fail', message: 'The e-mail address or the password is wrong.' })
  const long = await call('POST', '/auth/login', { body: { email, password: 'x'.repeat(1025) } })
  t.match(long, { status: 400, json: { message: /at most 1024/ } })
})

t.test('a guesser must wait, other clients need not', async (t) => {
  const { call, made } = await startScene(t, {}, { monotonicMs: () => 0 })
  const { email, password } = made as SignIn
  const logIn = (word: string, from?: string) =>
    call('POST', '/auth/login', {
      body: { email, password: word },
      headers: from === undefined ? {} : { 'x-forwarded-for': from },
    })
  for (let n = 0; n < 5; n++) t.equal((await logIn('wrong', '203.0.113.7')).status, 401)
  const refused = await logIn('wrong', '203.0.113.7')
  t.match(refused, { status: 429, json: { status: 'fail', message: /^Too many sign-ins/ } })
  t.match(refused.headers.get('retry-after'), /^[1-9]\d*$/)
  t.equal((await logIn(password, '203.0.113.7')).status, 429, 'the right password is not looked at either')
  t.equal((await logIn(password, '203.0.113.8')).status, 200)
  t.equal((await logIn(password)).status, 200, 'a program on this machine')
})

const far = (network: string): ClientAddress => ({ network, local: false })
const wrong = async () => undefined
const right = async () => 'user'

t.test('attempts count by address and by e-mail', async (t) => {
  let now = 0
  const attempts = new SignInAttempts(silentLog, new OwnFailures(() => now))
  for (let n = 0; n < 20; n++) t.equal(await attempts.attempt(far(`a${n}`), 'one', wrong), undefined)
  await t.rejects(attempts.attempt(far('b'), 'ONE', right), { message: /^Too many/ }, 'one e-mail from many addresses')
  t.equal(await attempts.attempt(far('b'), 'two', right), 'user')
  t.equal(await attempts.attempt({ network: 'b', local: true }, 'one', right), 'user', 'but not on this machine')
  for (let n = 0; n < 50; n++) t.equal(await attempts.attempt(far('c'), `${n}`, wrong), undefined)
  await t.rejects(attempts.attempt(far('c'), 'two', right), { message: /^Too many/ }, 'many e-mails from one address')
  now += 1000
  t.equal(await attempts.attempt(far('c'), 'two', right), 'user', 'after the wait')
})

t.test('guessers elsewhere do not lock out an address that has signed in', async (t) => {
  const attempts = new SignInAttempts(silentLog, new OwnFailures(() => 0))
  t.equal(await attempts.attempt(far('home'), 'one', right), 'user')
  for (let n = 0; n < 21; n++) await attempts.attempt(far(`a${n}`), 'one', wrong).catch(() => {})
  await t.rejects(attempts.attempt(far('b'), 'one', right), { message: /^Too many sign-ins with/ })
  t.equal(await attempts.attempt(far('home'), 'One', right), 'user')
  for (let n = 0; n < 5; n++) t.equal(await attempts.attempt(far('home'), 'one', wrong), undefined)
  await t.rejects(attempts.attempt(far('home'), 'one', right), { message: /^Too many sign-ins with/ }, 'guesses end')
})

t.test('attempts at several processes count together', { skip: !onPostgres }, async (t) => {
  const url = (await emptyDatabase()) ?? ''
  let now = 1_000_000
  const open = async () => {
    const db = await openPostgres(url, platformSchema, silentLog)
    t.teardown(() => db.close())
    return new SignInAttempts(silentLog, new SharedFailures(db, () => now))
  }
  const [first, second] = [await open(), await open()]
  let checks = 0
  const check = async () => void checks++
  const guesses = Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? first : second).attempt(far('a'), 'one', check))
  await Promise.allSettled(guesses)
  t.equal(checks, 5)
  for (const at of [first, second]) await t.rejects(at.attempt(far('a'), 'one', right), { message: /^Too many/ })
  now += 1000
  t.equal(await first.attempt(far('a'), 'one', right), 'user', 'after the wait')
})

t.test('a forged token is none', async (t) => {
  const { call, signIn } = await startScene(t)
  const token = await signIn()
  const claims = decodeJwt(token)
  const [, payload = ''] = token.split('.')
  const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`
  const foreign = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32))
  const flipped = token.slice(0, -2) + (token.at(-2) === 'A' ? 'B' : 'A') + token.at(-1)
  for (const forged of [none, foreign, flipped, 'a.b.c', `${payload}`]) {
    const { status, headers, json } = await call('POST', '/miner/info', { token: forged })
    t.match({ status, json }, { status: 401, json: { status: 'fail' } })
    t.equal(headers.get('www-authenticate'), 'Bearer')
  }
})

const PATH = '/user/api_keys/jwt'

async function newKey({ call, signIn }: Scene, name = 'backup') {
  const { json } = await call('POST', PATH, { token: await signIn(), body: { key_name: name } })
  return json.auth_token as { apikey: string; access_token: string; jwt: string }
}

t.test('a sign-in issues an API key, which issues JWTs', async (t) => {
  const scene = await startScene(t)
  const { call, signIn } = scene
  const made = await call('POST', PATH, { token: await signIn(), body: { key_name: 'backup' } })
  t.equal(made.status, 200)
  t.match(made.json, { status: 'success', message: String })
  const key = made.json.auth_token
  t.same(Object.keys(key).sort(), ['access_token', 'apikey', 'created_on', 'jwt', 'key_name', 'status'])
  t.match(key, { access_token: /^\w{64}$/, apikey: /^\w{32}$/, jwt: /^ey/, key_name: 'backup', status: 'Created' })
  t.match(key.created_on, /^\d{10}$/, 'Unix seconds')
  t.equal((await call('POST', '/miner/info', { token: key.jwt })).status, 400, 'its JWT is good for calls')

  const { apikey, access_token } = key
  for (const sent of [
    { body: new URLSearchParams({ apikey, access_token }) },
    { body: { apikey, access_token }, token: 'old' },
  ]) {
    const issued = await call('POST', PATH, sent)
    t.equal(issued.status, 200)
    t.match(issued.json, { status: 'success', data: { api_key: apikey } })
    const { sub, exp = 0, iat = 0 } = decodeJwt(issued.json.data.jwt)
    t.equal(sub, apikey)
    t.ok(exp > iat)
    t.equal((await call('POST', '/miner/info', { token: issued.json.data.jwt })).status, 400)
  }
  const kept = bytesBelow(scene.folder)
  t.notOk(kept.includes(access_token) || kept.includes(key.jwt), 'the secret and the JWT are in no file')
})

t.test('who may issue', async (t) => {
  const scene = await startScene(t)
  const { call, signIn } = scene
  const { apikey, access_token, jwt } = await newKey(scene)
  const other = await newKey(scene, 'other')
  const token = await signIn()
  const refused = [
    [401, /Sign in first/, { body: { key_name: 'x' } }],
    [403, /Only the token of a sign-in/, { body: { key_name: 'x' }, token: jwt }],
    [400, /key_name is missing/, { token }],
    [400, /at most 128/, { body: { key_name: 'x'.repeat(129) }, token }],
    [400, /not both/, { body: { key_name: 'x', apikey, access_token }, token }],
    [400, /access_token is missing/, { body: { apikey }, token }],
    [401, /^api_key Not found$/, { body: { apikey: 'x', access_token } }],
    [401, /^Please provide a valid api token\.$/, { body: { apikey, access_token: other.access_token } }],
  ] as const
  for (const [status, message, sent] of refused)
    t.match(await call('POST', PATH, sent), { status, json: { status: 'fail', message } }, String(message))
})
