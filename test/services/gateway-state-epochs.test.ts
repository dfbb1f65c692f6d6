import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { Client, connectTo, start, startGateway } from './gateway-client.js'

t.test('epochs are kept, replaced, and told apart', async (t) => {
  const client = await startGateway(t)
  const ask = async (params: object) => {
    const { known, others } = await client.call('StateEpoch', params)
    return [known, others]
  }
  t.same(await ask({}), [false, false])
  t.same(await ask({ epoch: 'a', keep: true }), [false, false], 'as it was before')
  t.same(await ask({}), [false, true])
  t.same(await ask({ epoch: 'a' }), [true, false])
  t.same(await ask({ epoch: 'a', keep: true }), [true, false])
  t.same(await ask({ epoch: 'b' }), [false, true], 'asking keeps nothing')
  t.same(await ask({ epoch: 'b', keep: true }), [false, true])
  t.same(await ask({ epoch: 'b' }), [true, true])
  t.same(await ask({ epoch: 'c', over: ['a', 'never'], keep: true }), [false, true])
  t.same(await ask({ epoch: 'a' }), [false, true])
  t.same(await ask({ epoch: 'c', over: ['b'], keep: true }), [true, true])
  t.same(await ask({ epoch: 'c' }), [true, false])
  for (const params of [
    { keep: true },
    { epoch: 'c', over: ['c'], keep: true },
    { epoch: 'x'.repeat(129) },
    { epoch: 1 },
    { epoch: 'd', keep: 'yes' },
    { epoch: 'd', over: 'c' },
  ])
    t.ok((await client.failure('StateEpoch', params)).message, JSON.stringify(params))
  t.same(await ask({ epoch: 'c' }), [true, false], 'nothing has changed')
  t.match(await new Client(client.url, 'gateway').failure('StateEpoch', {}), { data: { code: 'AccessDenied' } })
})

t.test('the store in a data folder does not make another one look emptied', async (t) => {
  const client = await startGateway(t)
  const ask = async (params: object) => {
    const { known, others } = await client.call('StateEpoch', params)
    return [known, others]
  }
  t.same(await ask({ epoch: 'folder:a', keep: true }), [false, false])
  t.same(await ask({}), [false, false])
  t.same(await ask({ epoch: 'b', keep: true }), [false, false])
  t.same(await ask({ epoch: 'folder:a' }), [true, true])
})

t.test('the highest mark of an epoch is kept', async (t) => {
  const client = await startGateway(t)
  const ask = async (params: object) => (await client.call('StateEpoch', params)).mark
  t.equal(await ask({ epoch: 'a', keep: true, mark: 5 }), 0, 'as it was before')
  t.equal(await ask({ epoch: 'a' }), 5)
  t.equal(await ask({ epoch: 'a', keep: true, mark: 3 }), 5)
  t.equal(await ask({ epoch: 'a', keep: true }), 5)
  t.equal(await ask({ epoch: 'a', keep: true, mark: 6 }), 5)
  t.equal(await ask({ epoch: 'a', mark: 9 }), 6, 'asking keeps nothing')
  t.equal(await ask({ epoch: 'b' }), 0)
  t.equal(await ask({ epoch: 'b', over: ['a'], keep: true, mark: 1 }), 0)
  t.equal(await ask({ epoch: 'a' }), Number.MAX_SAFE_INTEGER, 'a store with it is older')
  t.match(await client.call('StateEpoch', { epoch: 'b' }), { known: true, others: false, mark: 1 })
  for (const mark of [-1, 1.5, '1'])
    t.ok((await client.failure('StateEpoch', { epoch: 'b', keep: true, mark })).message, `${mark}`)
})

t.test('epochs outlive a restart, and a folder of an earlier version is opened', async (t) => {
  const data = temporaryFolder(t)
  const first = await start(data)
  await (await connectTo(first)).call('StateEpoch', { epoch: 'a', keep: true })
  await first.stop()
  const second = await start(data)
  t.match(await (await connectTo(second)).call('StateEpoch', { epoch: 'a' }), { known: true })
  await second.stop()
  const db = new DatabaseSync(join(data, 'gateway', 'index.db'))
  db.exec('DROP TABLE state_epochs')
  db.exec('CREATE TABLE state_epochs (epoch TEXT NOT NULL, account INTEGER NOT NULL, PRIMARY KEY (account, epoch))')
  db.exec("INSERT INTO state_epochs (epoch, account) SELECT 'marked later', owner FROM (SELECT 1 AS owner)")
  db.close()
  const third = await start(data)
  t.teardown(() => third.stop())
  t.match(await (await connectTo(third)).call('StateEpoch', { epoch: 'marked later' }), { known: true, mark: 0 })
  t.match(await (await connectTo(third)).call('StateEpoch', { epoch: 'a' }), { known: false, others: true })
})

t.test('forgotten-stores', async (t) => {
  const client = await startGateway(t, { quirks: ['forgotten-stores'] })
  t.notOk((await client.call('ServerInfo')).GatewayFeatures.includes('state-epoch'))
  t.match(await client.failure('StateEpoch', {}), { message: 'rpc: can\'t find method "web.StateEpoch"' })
})
