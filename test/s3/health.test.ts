import { chmodSync } from 'node:fs'
import t from 'tap'
import { startInProcess } from '../support/server/in-process.js'
import { send } from '../support/sign/send.js'

t.test('/-/health tells signed callers what works', async (t) => {
  const { endpoint } = await startInProcess(t, 'full')
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  const health = JSON.parse(String((await send(owner, { method: 'GET', target: '/-/health' })).body))
  t.equal(health.Status, 'Ready')
  t.same(
    health.Checks.map(({ Name, Works }: { Name: string; Works: boolean }) => [Name, Works]),
    [
      ['gateway', true],
      ['state', true],
      ['data', true],
    ],
  )
  t.ok(health.FreeBytes > 0)
  t.equal((await fetch(`${endpoint}/-/health`)).status, 403, 'but not others')
})

t.test('each check has its reason', async (t) => {
  const { endpoint, data } = await startInProcess(t, 'full', {
    gateway: { url: 'http://127.0.0.1:9', account: ACCOUNT },
  })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  const health = JSON.parse(String((await send(owner, { method: 'GET', target: '/-/health' })).body))
  t.equal(health.Status, 'NotReady')
  t.match(health.Checks[0], { Name: 'gateway', Works: false, Reason: /gateway/ })
  t.match(health.Checks[1], { Name: 'state', Works: true })
  t.equal((await fetch(`${endpoint}/-/ready`)).status, 503)
  t.notMatch(JSON.stringify(health), data, 'no path is shown')
})

t.test(
  'a data folder that cannot be written',
  { skip: process.getuid?.() === 0 && 'root writes everywhere' },
  async (t) => {
    const { endpoint, data } = await startInProcess(t, 'full')
    chmodSync(data, 0o500)
    t.teardown(() => chmodSync(data, 0o700))
    const ready = await fetch(`${endpoint}/-/ready`)
    t.equal(ready.status, 503)
    t.match(await ready.text(), /cannot write to its data folder/)
  },
)

const ACCOUNT = { accessKey: 'some-account', secretKey: 'some-secret' }
