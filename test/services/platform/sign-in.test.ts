import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import t from 'tap'
import { openDatabase } from '../../../src/services/database.js'
import type { ClientAddress } from '../../../src/services/http/server.js'
import { silentLog } from '../../../src/services/log.js'
import { migrate } from '../../../src/services/platform/store.js'
import { SignInAttempts } from '../../../src/services/platform/tokens.js'
import { FIRST_USER, type SignIn, Users } from '../../../src/services/platform/users.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { bytesBelow, startScene } from './platform-client.js'

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

t.test('no other user comes before the first one', async (t) => {
  const db = openDatabase(join(temporaryFolder(t), 'platform.db'), '', migrate)
  t.teardown(() => db.close())
  const users = new Users(db)
  t.throws(() => users.add('client@example.com', 'hash', 0), /^The task platform has no user yet/)
  users.add('owner@localhost', 'hash', 0, FIRST_USER)
  users.add(' Client@example.com ', 'hash', 0)
  t.match(users.find('client@example.com'), { id: 2 })
})

t.test('a sign-in gives a JWT of a day', async (t) => {
  const { call, made = { email: '', password: '' } } = await startScene(t)
  const body = { ...made, email: ` ${made.email.toUpperCase()} ` }
  const { status, json } = await call('POST', '/auth/login', { body })
  t.equal(status, 200)
  t.same(Object.keys(json).sort(), ['auth_token', 'message', 'status'])
  t.match(json, { auth_token: String, message: String, status: 'success' })
  t.notMatch(JSON.stringify(json), /fail/i)
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
  const logIn = (word: string, from?: string, name = email) =>
    call('POST', '/auth/login', {
      body: { email: name, password: word },
      headers: from === undefined ? {} : { 'x-forwarded-for': from },
    })
  for (let n = 0; n < 5; n++) t.equal((await logIn('wrong', '203.0.113.7')).status, 401)
  const refused = await logIn('wrong', '203.0.113.7')
  t.match(refused, { status: 429, json: { status: 'fail', message: /^Too many sign-ins/ } })
  t.match(refused.headers.get('retry-after'), /^[1-9]\d*$/)
  t.equal((await logIn(password, '203.0.113.7')).status, 429, 'the right password is not looked at either')
  t.equal((await logIn(password, '203.0.113.8')).status, 200)
  t.equal((await logIn(password)).status, 200, 'a program on this machine')
  for (let n = 0; n < 5; n++) t.equal((await logIn('wrong', '203.0.113.9', 'nobody@localhost')).status, 401)
  t.equal((await logIn('wrong', '203.0.113.9', 'nobody@localhost')).status, 429, 'unknown users are counted alike')
})

const far = (network: string): ClientAddress => ({ network, local: false })
const wrong = async () => undefined
const right = async () => 'user'

t.test('attempts count by address and by e-mail', async (t) => {
  let now = 0
  const attempts = new SignInAttempts(silentLog, () => now)
  for (let n = 0; n < 20; n++) t.equal(await attempts.attempt(far(`a${n}`), 'one', wrong), undefined)
  await t.rejects(attempts.attempt(far('b'), 'ONE', right), { message: /^Too many/ }, 'one e-mail from many addresses')
  t.equal(await attempts.attempt(far('b'), 'two', right), 'user')
  t.equal(await attempts.attempt({ network: 'b', local: true }, 'one', right), 'user', 'but not on this machine')
  for (let n = 0; n < 50; n++) t.equal(await attempts.attempt(far('c'), `${n}`, wrong), undefined)
  await t.rejects(attempts.attempt(far('c'), 'two', right), { message: /^Too many/ }, 'many e-mails from one address')
  now += 1000
  t.equal(await attempts.attempt(far('c'), 'two', right), 'user', 'after the wait')
  t.equal(await attempts.attempt(far('c'), 'three', wrong), undefined)
  await t.rejects(
    attempts.attempt(far('c'), 'two', right),
    { message: /^Too many/ },
    'a success does not clear the address',
  )
})

t.test('guessers elsewhere do not lock out an address that has signed in', async (t) => {
  const attempts = new SignInAttempts(silentLog, () => 0)
  t.equal(await attempts.attempt(far('home'), 'one', right), 'user')
  for (let n = 0; n < 21; n++) await attempts.attempt(far(`a${n}`), 'one', wrong).catch(() => {})
  await t.rejects(attempts.attempt(far('b'), 'one', right), { message: /^Too many sign-ins with/ })
  t.equal(await attempts.attempt(far('home'), 'One', right), 'user')
  for (let n = 0; n < 5; n++) t.equal(await attempts.attempt(far('home'), 'one', wrong), undefined)
  await t.rejects(
    attempts.attempt(far('home'), 'one', right),
    { message: /^Too many sign-ins with/ },
    'it may not guess either',
  )
})

t.test('more sign-ins at the same time than there is room for are no guesses', async (t) => {
  const attempts = new SignInAttempts(silentLog, () => 0)
  let open = (): void => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const all = Array.from({ length: 110 }, (_, n) =>
    attempts.attempt(far(`a${n}`), `${n}`, async () => gate.then(() => 'user')),
  )
  const refused = all.map((one) => one.catch((error) => error))
  open()
  const results = await Promise.all(refused)
  const errors = results.filter((result) => result !== 'user')
  t.ok(errors.length > 0 && errors.length < 10, `${errors.length} are refused`)
  for (const error of errors) t.match(error, { status: 503, message: /^Too many sign-ins at the same time/ })
})

t.test('many attempts at the same time do not escape the count', async (t) => {
  const attempts = new SignInAttempts(silentLog, () => 0)
  let checks = 0
  const check = async () => void checks++
  const all = await Promise.allSettled(Array.from({ length: 100 }, () => attempts.attempt(far('a'), 'one', check)))
  t.equal(checks, 5)
  t.equal(all.filter(({ status }) => status === 'rejected').length, 95)
})

t.test('users who sign in at the same time do not wait', async (t) => {
  const attempts = new SignInAttempts(silentLog, () => 0)
  for (let n = 0; n < 200; n++) t.equal(await attempts.attempt(far('a'), `${n}`, right), 'user')
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
