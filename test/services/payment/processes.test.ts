import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { silentLog } from '../../../services/log.js'
import { startPayment } from '../../../services/payment/payment.js'
import { openWalletRegistry } from '../../../services/payment/store.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { open } from '../network/embedded-network.js'
import { type ServiceProcess, startProcess } from '../processes.js'
import { requestsOf } from './payer.js'
import { type Keys, logIn, newKeys, nonceFor } from './payment-client.js'

const skip = onPostgres ? false : 'on PostgreSQL'

/** Two processes over one database and one folder. */
async function startTwo(t: Test, limits: Readonly<Record<string, number>> = {}) {
  const database = (await emptyDatabase()) as string
  const contents = join(temporaryFolder(t), 'shared')
  const start = () => startProcess(t, 'payment', { database, contents, limits })
  const [first, second] = [await start(), await start()]
  return { database, contents, start, first, second, both: [first, second, first, second] as const }
}

async function signIn({ call }: ServiceProcess, keys: Keys): Promise<string> {
  return (await logIn(call, keys, await nonceFor(call, keys))).json.data.jwt_token
}

const statuses = (answers: readonly { readonly status: number }[]): number[] =>
  answers.map(({ status }) => status).sort((a, b) => a - b)

t.test('what one process does, the other knows', { skip }, async (t) => {
  const { database, contents, first, second, both } = await startTwo(t, { maxUnpaidUploads: 3, maxStrangeUploads: 100 })
  const keys = newKeys()
  const nonce = await nonceFor(first.call, keys)
  const answers = await Promise.all(both.map(({ call }) => logIn(call, keys, nonce)))
  t.same(statuses(answers), [200, 401, 401, 401], 'a nonce counts once, at any of them')
  const token = await signIn(second, keys)
  const wallets = both.map(({ call }) => requestsOf(call, keys, token))

  const uploaded = await Promise.all([...wallets, ...wallets].map(({ upload }, n) => upload('a.txt', `content ${n}`)))
  t.same(statuses(uploaded), [200, 200, 200, 409, 409, 409, 409, 409], 'as many are kept as the wallet may have')
  for (const { ask } of wallets) t.equal((await ask('/storage/tasks/deals')).json.data.total_record_count, 3)

  const registry = await openWalletRegistry(contents, database)
  t.teardown(() => registry.close())
  await registry.fund(keys.address, 1_000_000n)
  const [one, other] = uploaded.filter(({ status }) => status === 200).map(({ json }) => json.data.w_cid)
  const orders = await Promise.all(wallets.map(({ order }) => order(one, 600_000n)))
  t.same(statuses(orders), [200, 200, 200, 200], 'the same order is the same payment')
  t.equal(await registry.balance(keys.address), 400_000n, 'which is made once')
  const amounts = both.map((_, n) => 300_000n + BigInt(n))
  const rivals = await Promise.all(wallets.map(({ order }, n) => order(other, amounts[n] ?? 0n)))
  t.same(statuses(rivals), [200, 409, 409, 409], 'an upload is paid once')
  t.ok(amounts.includes(400_000n - (await registry.balance(keys.address))))
  t.same(await registry.sums(), { balances: 0n, entries: 0n })

  const network = await open(t, join(temporaryFolder(t), 'network'))
  const options = { host: '127.0.0.1', port: 0, database }
  const elsewhere = startPayment(temporaryFolder(t), options, { network }, silentLog)
  await t.rejects(elsewhere, /in another folder/, 'a process that does not see the files is refused')
})

t.test('one content at several processes', { skip }, async (t) => {
  const { first, second, both, start } = await startTwo(t)
  const content = 'the same'.repeat(100_000)
  const upload = async (at: ServiceProcess) => {
    const keys = newKeys()
    return requestsOf(at.call, keys, await signIn(at, keys)).upload('a.txt', content)
  }
  const uploaded = await Promise.all(both.map(upload))
  t.same(statuses(uploaded), [200, 200, 200, 200])
  const cid = uploaded[0]?.json.data.payload_cid
  const read = async ({ url }: ServiceProcess) => (await (await fetch(`${url}/ipfs/${cid}`)).text()) === content
  t.same(await Promise.all(both.map(read)), [true, true, true, true])
  await first.kill()
  const third = await start()
  t.same([await read(second), await read(third)], [true, true])
  t.equal((await upload(third)).status, 200)
})

t.test('another process goes on with deals, and does nothing twice', { skip }, async (t) => {
  const database = (await emptyDatabase()) as string
  const contents = join(temporaryFolder(t), 'shared')
  const port = await lastingPort()
  // The CARs of both are at the one that stays.
  const options = { database, contents, deals: true, publicUrl: `http://127.0.0.1:${port}` }
  const first = await startProcess(t, 'payment', options)
  const second = await startProcess(t, 'payment', { ...options, port })
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  t.teardown(() => client.end())
  const count = async (what: string): Promise<number> => {
    const { rows } = await client.query(`SELECT count(*) FROM ${what}`)
    return Number(rows[0].count)
  }

  const keys = newKeys()
  const token = await signIn(first, keys)
  const registry = await openWalletRegistry(contents, database)
  t.teardown(() => registry.close())
  await registry.fund(keys.address, 1_000_000n)
  const pay = async ({ call }: ServiceProcess, content: string) => {
    const { upload, order } = requestsOf(call, keys, token)
    const { json } = await upload('a.txt', content)
    t.match(await order(json.data.w_cid, 400_000n), { status: 200, json: { status: 'success' } })
  }
  const succeeded = (at: ServiceProcess, uploads: number) =>
    until(`${uploads} uploads are stored`, async () => {
      await at.call('GET', '/api/v1/storage/tasks/deals', { token })
      return (await count("dealgate_payment.uploads WHERE status = 'Success'")) === uploads
    })
  // A lease may be lost to a busy machine and taken anew; its token only grows.
  const lease = async (): Promise<number> => {
    const { rows } = await client.query("SELECT token FROM dealgate_payment.lease WHERE name = 'dealing'")
    return Number(rows[0]?.token ?? 0)
  }
  await until('the first deals', async () => (await lease()) >= 1)
  await pay(first, 'a'.repeat(300_000))
  await until('a task is posted', async () => (await count('dealgate_platform.tasks WHERE posted = 1')) === 1)
  first.freeze()
  const frozen = await lease()
  await succeeded(second, 1)
  t.ok((await lease()) > frozen, 'the second has gone on')
  first.goOn()
  await pay(first, 'b'.repeat(300_000))
  await until('a second task is posted', async () => (await count('dealgate_platform.tasks WHERE posted = 1')) === 2)
  await first.kill()
  await succeeded(second, 2)

  for (const what of ['dealgate_payment.cars', 'dealgate_payment.offline_deals', 'dealgate_platform.tasks'])
    t.equal(await count(what), 2, what)
  t.equal(await count('dealgate_network.deals'), 2, 'each upload has one deal')
  t.equal(await count('dealgate_payment.locks WHERE is_open = 0'), 2)
  t.same(await registry.sums(), { balances: 0n, entries: 0n })
})
