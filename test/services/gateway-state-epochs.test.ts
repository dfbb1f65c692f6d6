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
  db.close()
  const third = await start(data)
  t.teardown(() => third.stop())
  t.match(await (await connectTo(third)).call('StateEpoch', { epoch: 'a' }), { known: false, others: false })
})

t.test('forgotten-stores', async (t) => {
  const client = await startGateway(t, { quirks: ['forgotten-stores'] })
  t.notOk((await client.call('ServerInfo')).GatewayFeatures.includes('state-epoch'))
  t.match(await client.failure('StateEpoch', {}), { message: 'rpc: can\'t find method "web.StateEpoch"' })
})
