import { join } from 'node:path'
import { decodeJwt } from 'jose'
import t from 'tap'
import { silentLog } from '../../../src/services/log.js'
import { startPlatform } from '../../../src/services/platform/platform.js'
import { afterEachStep, CrashImages } from '../crash-images.js'
import { bytesBelow, type Scene, send, startScene } from './platform-client.js'

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
  t.same(Object.keys(made.json).sort(), ['auth_token', 'message', 'status'])
  t.equal(made.json.status, 'success')
  t.type(made.json.message, 'string')
  const key = made.json.auth_token
  t.same(Object.keys(key).sort(), ['access_token', 'apikey', 'created_on', 'jwt', 'key_name', 'status'])
  t.match(key, { access_token: /^\w{64}$/, apikey: /^\w{32}$/, jwt: /^ey/, key_name: 'backup', status: 'Created' })
  t.match(key.created_on, /^\d{10}$/, 'Unix seconds')
  t.equal((await call('POST', '/miner/info', { token: key.jwt })).status, 400, 'its JWT is good for calls')

  const { apikey, access_token } = key
  for (const [how, sent] of [
    ['JSON', { body: { apikey, access_token } }],
    ['a form', { body: new URLSearchParams({ apikey, access_token }) }],
    ['with a stale token beside it', { body: { apikey, access_token }, token: 'old' }],
  ] as const) {
    const issued = await call('POST', PATH, sent)
    t.equal(issued.status, 200, how)
    t.same(Object.keys(issued.json).sort(), ['data', 'status'])
    t.same(Object.keys(issued.json.data).sort(), ['api_key', 'jwt'])
    t.equal(issued.json.data.api_key, apikey)
    t.notMatch(JSON.stringify(issued.json), /fail/i)
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
    [401, /not valid/, { body: { key_name: 'x' }, token: 'x' }],
    [403, /Only the token of a sign-in/, { body: { key_name: 'x' }, token: jwt }],
    [400, /key_name is missing/, { token }],
    [400, /key_name is missing/, { body: { key_name: '' }, token }],
    [400, /at most 128/, { body: { key_name: 'x'.repeat(129) }, token }],
    [400, /not both/, { body: { key_name: 'x', apikey, access_token }, token }],
    [400, /access_token is missing/, { body: { apikey }, token }],
    [400, /apikey is missing/, { body: { access_token } }],
    [401, /^api_key Not found$/, { body: { apikey: 'x', access_token } }],
    [401, /^Please provide a valid api token\.$/, { body: { apikey, access_token: other.access_token } }],
  ] as const
  for (const [status, message, sent] of refused) {
    t.match(await call('POST', PATH, sent), { status, json: { status: 'fail', message } }, String(message))
  }
})

t.test('killed after each step: what was answered stands, and nothing is half', async (t) => {
  const scene = await startScene(t)
  const { call, signIn, network } = scene
  const images = new CrashImages(join(scene.folder, 'platform'), join(scene.folder, 'images'))
  const taken: { image: string; keys: number }[] = []
  const answered: { apikey: string; access_token: string }[] = []
  const look = (): void => {
    const image = images.take()
    if (image !== undefined) taken.push({ image, keys: answered.length })
  }
  look()
  const token = await signIn()
  await afterEachStep(look, async () => {
    for (const name of ['one', 'two']) {
      const { json } = await call('POST', PATH, { token, body: { key_name: name } })
      answered.push(json.auth_token)
      look()
    }
  })
  t.ok(taken.length >= 3, `${taken.length} images`)
  for (const { image, keys } of taken) {
    const revived = await startPlatform(image, { host: '127.0.0.1', port: 0 }, { network }, silentLog)
    t.equal(await revived.makeFirstUser(), undefined, 'the first user is there')
    t.equal((await send(revived.url, 'POST', '/miner/info', { token })).status, 400, 'so is the key of the tokens')
    for (const { apikey, access_token } of answered.slice(0, keys)) {
      t.equal((await send(revived.url, 'POST', PATH, { body: { apikey, access_token } })).status, 200)
    }
    await revived.stop()
  }
})
