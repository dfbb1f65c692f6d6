import t from 'tap'
import { createLogger } from '../../src/common/log.js'
import { Views } from '../../src/gateway/account/account-gateway.js'
import { createGatewayPool } from '../../src/gateway/account/create-gateway.js'
import { openAccountBook } from '../../src/services/gateway/accounts/account-book.js'
import { startServices } from '../../src/services/index.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'

/** The bound of the pool. */
const MOST = 1000
const brand = { path: 'gateway', header: 'cloud' }
const log = createLogger({ level: 'silent' })
const pair = (name: string | number) => ({ accessKey: `account-${name}`, secretKey: `secret-of-${name}` })

t.test('equal key pairs share a view; a function has its own', async (t) => {
  const views = new Views(() => ({}), 3)
  t.equal(views.get(pair(1)), views.get(pair(1)))
  t.not(views.get(pair(1)), views.get(pair(2)))
  t.not(views.get({ accessKey: 'a', secretKey: 'b' }), views.get({ accessKey: 'a', secretKey: 'c' }), 'changed keys')
  const source = async () => pair(1)
  const own = views.get(source)
  t.not(own, views.get(pair(1)))
  t.not(
    own,
    views.get(async () => pair(1)),
  )
  for (let i = 0; i < 10; i++) views.get(pair(i))
  t.equal(views.get(source), own, 'and keeps it as long as it is used')
})

t.test('beyond the bound, the view that was not used for longest makes room', async (t) => {
  const made: string[] = []
  const views = new Views((account) => made.push((account as { accessKey: string }).accessKey), 2)
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) views.get(pair(name))
  t.same(made, ['account-a', 'account-b', 'account-c', 'account-b'])
})

t.test('a pool keeps a thousand sessions', async (t) => {
  const pool = createGatewayPool({ url: 'http://127.0.0.1:9', brand, log })
  t.teardown(() => pool.close())
  const [first, second] = [pool.for(pair(0)), pool.for(pair(1))]
  for (let i = 2; i < MOST; i++) pool.for(pair(i))
  t.equal(pool.for(pair(0)), first, 'none had to go')
  pool.for(pair(MOST))
  t.equal(pool.for(pair(0)), first, 'it was used after the other one')
  t.not(pool.for(pair(1)), second)
})

t.test('each account logs in once, and again only after it had to make room', async (t) => {
  const data = temporaryFolder(t)
  const services = await startServices({ data, gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const book = openAccountBook(data)
  t.teardown(() => book.close())
  const accounts = [await services.gateway.credentials(), book.add('second'), book.add('third')]
  const between = await Between.start(t, { url: services.gateway.url, ...(await services.gateway.credentials()) })
  const pool = createGatewayPool({ url: between.url, brand, log })
  t.teardown(() => pool.close())
  const logIns = () => between.requests.filter(({ body }) => body.includes('"web.Login"')).length
  const ask = () =>
    Promise.all(
      accounts.flatMap(({ accessKey, secretKey }) =>
        Array.from({ length: 5 }, () => pool.for({ accessKey, secretKey }).listBuckets()),
      ),
    )
  await ask()
  await ask()
  t.equal(logIns(), accounts.length)
  const { accessKey = '', secretKey = '' } = accounts[0] ?? {}
  const inUse = pool.for({ accessKey, secretKey })
  for (let i = 0; i < MOST; i++) pool.for(pair(i))
  await inUse.listBuckets()
  t.equal(logIns(), accounts.length, 'a session that is in use stays with its user')
  await ask()
  t.equal(logIns(), 2 * accounts.length)
})
