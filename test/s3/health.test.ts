import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fill, noSmallDisk, smallDisk } from '../promises/small-disk.js'
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

t.test('a disk with less room than demanded', { skip: noSmallDisk() }, async (t) => {
  const folder = smallDisk(t)
  const { endpoint, proxy } = await startInProcess(t, 'full', {
    data: join(folder, 'data'),
    limits: { minFreeBytes: 8 * 1024 ** 2 },
  })
  const ready = async () => {
    const response = await fetch(`${endpoint}/-/ready`)
    return { status: response.status, text: await response.text() }
  }
  t.match(await ready(), { status: 200, text: /MiB left/ }, 'the problem is told')
  fill(folder, 2 * 1024 ** 2)
  t.match(await ready(), { status: 503, text: /has [12] MiB left, less than --min-free-bytes/ })
  const owner = { endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
  const health = JSON.parse(String((await send(owner, { method: 'GET', target: '/-/health' })).body))
  t.match(health.Checks[3], { Name: 'disk', Works: false, Reason: /MiB left/ })
  proxy.prepare({ limits: { minFreeBytes: 1024 } })()
  t.equal((await ready()).status, 200, 'a bound that was lowered by a reload')
})

const ACCOUNT = { accessKey: 'some-account', secretKey: 'some-secret' }
