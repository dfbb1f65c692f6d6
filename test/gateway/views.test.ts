import t from 'tap'
import { createLogger } from '../../src/common/log.js'
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
