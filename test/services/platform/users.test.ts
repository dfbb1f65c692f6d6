import t from 'tap'
import { hasUsers, openUserBook } from '../../../src/services/platform/user-book.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startScene } from './platform-client.js'

t.test('users beside a running platform', async (t) => {
  const { folder, call, made, signIn } = await startScene(t)
  t.ok(hasUsers(folder))
  const book = openUserBook(folder)
  t.teardown(() => book.close())
  const password = 'a password of theirs'
  t.match(await book.add(' Client@example.com ', password), { id: 2, email: 'client@example.com' })
  await t.rejects(book.add('client@EXAMPLE.com', password), /has a user client@EXAMPLE.com already/)
  await t.rejects(book.add('client', password), RangeError)
  await t.rejects(book.add('other@example.com', 'short'), /8 to 1024/)
  const enter = async (email: string, word: string) => call('POST', '/auth/login', { body: { email, password: word } })
  const token = (await enter('client@example.com', password)).json.auth_token
  const key = await call('POST', '/user/api_keys/jwt', { token, body: { key_name: 'first' } })
  const { apikey, access_token, jwt } = key.json.auth_token
  const works = async (bearer: string) => (await call('GET', '/tasks', { token: bearer })).status === 200
  t.ok((await works(token)) && (await works(jwt)))

  await book.setPassword('CLIENT@example.com', 'another password')
  t.notOk(await works(token), 'the sign-in ends with the password')
  t.ok(await works(jwt), 'an API key does not')
  t.equal((await enter('client@example.com', password)).status, 401)
  const again = (await enter('client@example.com', 'another password')).json.auth_token
  t.ok(await works(again))
  await t.rejects(book.setPassword('unknown@example.com', password), /no user unknown@example.com/)

  const { email = '' } = made ?? {}
  const owner = await signIn()
  await book.setPassword(email, 'a password of the owner')
  t.notOk(await works(owner), 'the first user too')
  t.equal((await enter(email, 'a password of the owner')).status, 200)

  const listed = await call('GET', '/user/api_keys', { token: again })
  t.match(listed.json, { status: 'success', data: { api_keys: [{ apikey, key_name: 'first', status: 'Created' }] } })
  t.notMatch(JSON.stringify(listed.json), access_token)
  t.equal((await call('GET', '/user/api_keys', { token: jwt })).status, 403, 'only for the token of a sign-in')
  const ofOwner = (await enter(email, 'a password of the owner')).json.auth_token
  const revoke = (bearer: string | undefined, body: object) =>
    call('POST', '/user/api_keys/revoke', { ...(bearer !== undefined && { token: bearer }), body })
  t.match(await revoke(undefined, { apikey }), { status: 401 })
  t.match(await revoke(jwt, { apikey }), { status: 403 })
  t.match(await revoke(ofOwner, { apikey }), { status: 404 }, 'not of another user')
  t.match(await revoke(again, {}), { status: 400 })
  t.ok(await works(jwt), 'nothing has happened')
  t.match(await revoke(again, { apikey }), { status: 200, json: { data: { apikey, status: 'Revoked' } } })
  t.notOk(await works(jwt))
  t.match(await call('POST', '/user/api_keys/jwt', { body: { apikey, access_token } }), { status: 401 })

  for (const key_name of ['one', 'two']) await call('POST', '/user/api_keys/jwt', { token: again, body: { key_name } })
  t.throws(() => book.revokeApiKeys('client@example.com', apikey), /no API key/)
  t.equal(book.apiKeys('client@example.com').length, 2)
  t.equal(book.revokeApiKeys('client@example.com').length, 2)
  t.same(book.apiKeys('client@example.com'), [])
})

t.test('a folder without a platform', async (t) => {
  const folder = temporaryFolder(t)
  t.notOk(hasUsers(folder))
  t.throws(() => openUserBook(folder))
})
