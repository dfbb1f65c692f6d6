import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { RemotePlatform } from '../../services/gateway/accounts/remote-platform.js'
import { indexSchema } from '../../services/gateway/index-schema.js'
import { INDEX_FILE } from '../../services/gateway/store/schema.js'
import { startServices } from '../../services/index.js'
import { embeddedSchema } from '../../services/network/embedded/embedded-network.js'
import { kuboSchema } from '../../services/network/kubo/kubo-network.js'
import { paymentOrderText } from '../../services/payment/billing.js'
import { openWalletRegistry, paymentSchema } from '../../services/payment/store.js'
import { platformSchema } from '../../services/platform/store.js'
import { openSqlite } from '../../services/store/sqlite.js'
import { temporaryFolder } from '../support/content/folders.js'
import { listen } from '../support/server/listen.js'
import { until } from '../support/waiting.js'
import { NETWORK, newKeys } from './payment/payment-client.js'
import { type Scene, send, startScene } from './platform/platform-client.js'

const local = { host: '127.0.0.1', port: 0 }

async function gatewayBefore(t: Test, url: string) {
  const data = join(temporaryFolder(t), 'services')
  const services = await startServices({ data, gateway: local, remotePlatform: { url } })
  t.teardown(() => services.stop())
  const keyPair = (token?: string) =>
    send(services.gateway.url, 'GET', '/gateway', { ...(token !== undefined && { token }) })
  return { services, keyPair }
}

async function apiKey({ call }: Scene, token: string) {
  const { json } = await call('POST', '/user/api_keys/jwt', { token, body: { key_name: 'x' } })
  return json.auth_token as { apikey: string; access_token: string; jwt: string }
}

t.test('users of a platform elsewhere have accounts', async (t) => {
  const scene = await startScene(t)
  const { services, keyPair } = await gatewayBefore(t, `${scene.platform.url}/`)
  const owner = await scene.signIn()
  const other = await scene.addUser('other@example.com')
  const [one, again, two] = [await keyPair(owner), await keyPair(await scene.signIn()), await keyPair(other)]
  t.equal(one.status, 200, JSON.stringify(one.json))
  t.same(again.json, one.json, 'the same user has the same account')
  t.not(two.json.data.access_key, one.json.data.access_key)
  t.not(one.json.data.access_key, (await services.gateway.credentials()).accessKey, 'none has the first account')
  const { jwt } = await apiKey(scene, owner)
  t.match(await keyPair(jwt), { status: 403, json: { message: /JWT of a sign-in/ } })
  const forged = owner.slice(0, -8) + [...owner.slice(-8)].reverse().join('')
  for (const bad of [undefined, 'x', 'a.b.c', forged]) t.match(await keyPair(bad), { status: 401 })
  await scene.platform.stop()
  t.match(await keyPair(owner), { status: 503, json: { message: /task platform does not answer/ } })
})

t.test('a platform that accepts wrong tokens is not trusted', async (t) => {
  const server = createServer((_, response) => response.end('{"status":"success"}'))
  t.teardown(() => server.close())
  const { keyPair } = await gatewayBefore(t, await listen(server))
  const claims = Buffer.from('{"sub":"1"}').toString('base64url')
  t.match(await keyPair(`e30.${claims}.c2lnbmF0dXJl`), { status: 501, json: { message: /accepts wrong tokens/ } })
})

t.test('the login of the server itself', async (t) => {
  const scene = await startScene(t)
  const { url } = scene.platform
  t.equal(new RemotePlatform({ url }).login, undefined)
  const { apikey, access_token } = await apiKey(scene, await scene.signIn())
  const { login } = new RemotePlatform({ url, apiKey: apikey, accessToken: access_token })
  const token = await login?.tokenFor(undefined)
  t.match(await scene.call('GET', '/my_miner/tasks', { token }), { status: 200 })
  t.equal(await login?.tokenFor(undefined), token, 'a token is used again')
  t.equal(await login?.tokenFor('another user'), undefined)
  const wrong = new RemotePlatform({ url, apiKey: apikey, accessToken: 'wrong' })
  await t.rejects(async () => wrong.login?.tokenFor(undefined), { message: /refuses the API key/ })
})

t.test('the storage payment API makes its deals there', async (t) => {
  const scene = await startScene(t)
  const owner = await scene.signIn()
  const { apikey, access_token } = await apiKey(scene, owner)
  const data = join(temporaryFolder(t), 'services')
  const remotePlatform = { url: scene.platform.url, apiKey: apikey, accessToken: access_token }
  const services = await startServices({ data, gateway: local, payment: { ...local, mode: 'open' }, remotePlatform })
  t.teardown(() => services.stop())
  const keys = newKeys()
  const registry = await openWalletRegistry(data)
  await registry.fund(keys.address, 1_000_000n)
  await registry.close()
  const call = (method: string, path: string, body?: object) =>
    send(services.payment?.url ?? '', method, `/api/v1${path}`, { ...(body && { body }) })
  const form = new FormData()
  form.append('duration', '525')
  form.append('wallet_address', keys.address)
  form.append('file', new Blob(['content']), 'file')
  const { w_cid } = (await call('POST', '/storage/ipfs/upload', form)).json.data
  const signature = keys.sign(paymentOrderText(w_cid, 1_000_000n, NETWORK))
  t.equal((await call('POST', '/billing/deal/lockpayment', { w_cid, pay_amount: '1000000', signature })).status, 200)
  await call('GET', `/storage/tasks/deals?wallet_address=${keys.address}`)
  await until('the task is posted', async () => {
    const { json } = await scene.call('GET', '/tasks?limit=10&offset=0', { token: owner })
    return JSON.stringify(json).includes('"task_name":"uploads-')
  })
})

/**
 * A database remembers how many steps it has taken, so that a changed step reaches none that exists. A new step appends
 * its hash; a changed hash is a mistake.
 */
const RELEASED = {
  kubo: 'facf9e155aa868da 3f337ebe051a9fc3',
  network: '0c5acb7147480501 ae0a909d73fbd735 3f337ebe051a9fc3 23d2bd2d27ad90de c9189d44d85d6a93 d9f1caeed3f9f4d0',
  gateway: `6be67e7f0606021f bcdb623736b74d77 651233cc5a0cac72 f76cfb68295f14d6
    a758d408dbbed259 0ceaa7fd7cd27858 b5832ad5a8cee3d0`,
  payment: `6f12cff83fb44328 278093a87ee42282 98c3d5d0811e41b7 fca85e90b2099131 aef53206dcd176d2 9380e39ff90165cc
    765c2217aae3a22e 83f9967043dcc74b 06226233f3ade9f4 073b5f873e1b2fa5 94efdbb0fb74f52c 54b70205dcf60d85
    1620b8ca276c29e7 4cfd737963e619b6 c074cf6d73a9875c 2381e12cf36ae823`,
  platform: `308385391aeecd9c ead742f4a3640d04 c8f3f17a67906aa4 d50317138998a3f7 f40724a6151b49bf 86342b234c328339
    c4755ad6dc0a18d5 e742ea7502d94379 4f498c3beccd578c`,
}

const hashOf = (step: string) =>
  createHash('sha256').update(step.replaceAll(/\s+/g, ' ').trim()).digest('hex').slice(0, 16)

t.test('released steps of the schemas do not change', async (t) => {
  for (const [{ owner, steps }, hashes] of [
    [paymentSchema, RELEASED.payment],
    [platformSchema, RELEASED.platform],
    [embeddedSchema, RELEASED.network],
    [kuboSchema, RELEASED.kubo],
    [indexSchema, RELEASED.gateway],
  ] as const)
    t.same(steps.map(hashOf), hashes.split(/\s+/), owner)
})

/** Earlier indexes of the gateway have no steps: they get the columns that they lack. */
t.test('an index of the gateway as it was released gets all columns of a new one', async (t) => {
  const sql = readFileSync('test/services/released-index.sql', 'utf8')
  t.equal(hashOf(sql), '732d132fd6c493fa', 'what was released does not change')
  const released = temporaryFolder(t)
  const db = new DatabaseSync(join(released, INDEX_FILE))
  db.exec(sql)
  db.close()
  const columnsIn = async (folder: string) => {
    const file = join(folder, INDEX_FILE)
    await openSqlite(file, indexSchema).close()
    const db = new DatabaseSync(file)
    const rows = db
      .prepare(`SELECT tables.name AS of, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden
        FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS c WHERE tables.type = 'table' ORDER BY 1, 2`)
      .all()
    db.close()
    return rows
  }
  const columns = await columnsIn(temporaryFolder(t))
  t.ok(columns.length > 80, `${columns.length} columns are compared`)
  t.same(await columnsIn(released), columns)
})
