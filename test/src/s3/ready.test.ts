import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import type { State } from '../../../src/api/state.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { openState } from '../../../src/state/open-state.js'
import { fill, noSmallDisk, smallDisk } from '../../promises/small-disk.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { runCli } from '../../support/server/cli.js'
import { startInProcess } from '../../support/server/in-process.js'
import { keptLog } from '../../support/server/kept-log.js'
import { modes } from '../../support/server/modes.js'
import { send } from '../../support/sign/send.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { postgres, redis } from '../state/servers.js'

const identity = { accessKeyId: 'key', secretAccessKey: 'secret-key' }

async function start(t: Test, options: Pick<ProxyOptions, 'gateway'> & Partial<ProxyOptions>) {
  const { log, lines } = keptLog()
  const proxy = await createProxy({ identities: [identity], log, accessLog: false, ...options })
  t.teardown(() => proxy.close().catch(() => {}))
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  const ready = async () => {
    const response = await fetch(`${serving.url}/-/ready`)
    return { status: response.status, text: await response.text() }
  }
  return { url: serving.url, lines, ready }
}

for (const mode of modes) {
  t.test(`${mode}: a key pair that the gateway refuses is the server's fault, and logged once`, async (t) => {
    const { gateway } = await startInProcess(t, mode, { identities: [identity] })
    const { accessKey, secretKey } = gateway.account
    const wrong = { accessKey: 'another-key', secretKey }
    for (const [name, account] of Object.entries({
      'access key': wrong,
      'secret key': { accessKey, secretKey: 'another-secret' },
    })) {
      const { url, lines, ready } = await start(t, {
        gateway: { url: gateway.url, account },
        data: `${temporaryFolder(t)}/${mode}`,
      })
      t.match(await ready(), { status: 503, text: /does not accept the key pair/ }, name)
      for (const path of ['/', '/bucket', '/bucket/key', '/bucket/key']) {
        const answer = await signedRequest(url, identity, { method: 'GET', path })
        t.match(answer, { status: 503, code: 'ServiceUnavailable', headers: { 'retry-after': '5' } }, path)
      }
      t.equal((await signedRequest(url, identity, { method: 'PUT', path: '/bucket/key', body: 'x' })).status, 503)
      const errors = lines.filter(({ level }) => level >= 50)
      t.equal(errors.length, 1, JSON.stringify(errors))
      t.match(errors[0]?.msg, /refuses the log-in/)
      t.notMatch(JSON.stringify(lines), /"stack"|\.js:\d+/, 'no stack')
    }
    const doctor = await runCli([
      ...['doctor', '--data', temporaryFolder(t), '--port', '0', '--gateway-url', gateway.url],
      ...['--gateway-access-key', wrong.accessKey, '--gateway-secret-key', wrong.secretKey],
    ])
    t.match(doctor, { code: 1, stdout: /^WRONG {2}gateway: .*does not accept the key pair/m })
  })
}
t.test('a gateway that does not answer is a line with the reason, without a stack', async (t) => {
  const account = { accessKey: 'some-key', secretKey: 'some-secret' }
  const { lines, ready } = await start(t, {
    gateway: { url: 'http://127.0.0.1:1', account },
    data: temporaryFolder(t),
  })
  t.match(await ready(), { status: 503, text: /the connection was refused/ })
  const line = lines.find(({ msg }) => msg.startsWith('the server is not ready'))
  t.match(line, { level: 50, requestId: /./, reason: /connection was refused/, because: /ECONNREFUSED/ })
  t.notMatch(JSON.stringify(lines), /"stack"|\.js:\d+/)
})

for (const kind of [redis, postgres]) {
  t.test(`${kind.name} that is gone`, { skip: kind.skip }, async (t) => {
    const { gateway } = await startInProcess(t, 'full', { identities: [identity] })
    const server = await kind.start()
    let stopped: Promise<void> | undefined
    const stop = () => {
      stopped ??= server.stop()
      return stopped
    }
    t.teardown(stop)
    const { ready } = await start(t, { gateway, data: temporaryFolder(t), stateUrl: server.url })
    t.match(await ready(), { status: 200 })
    await stop()
    t.match(await ready(), { status: 503 })
  })
}

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
  fill(folder, 512 * 1024)
  const full = await ready()
  t.equal(full.status, 200, 'it still reads and removes')
  t.match(JSON.parse(full.text), { status: 'ready', writes: false, problem: /is full: uploads fail/ })
})
t.test('a store of records that hangs', async (t) => {
  const { gateway } = await startInProcess(t, 'full', { identities: [identity] })
  const { log } = keptLog()
  const state = await openState({ data: temporaryFolder(t), log })
  t.teardown(() => state.close())
  let hang = false
  const hanging: State = {
    ...state,
    records<T>(name: string) {
      const records = state.records<T>(name)
      if (name !== 'probe') return records
      return {
        get: (key: string) => (hang ? new Promise<undefined>(() => {}) : records.get(key)),
        set: (key: string, value: T) => records.set(key, value),
        delete: (key: string) => records.delete(key),
        entries: () => records.entries(),
      } as typeof records
    },
  }
  const { ready } = await start(t, { gateway, state: hanging })
  t.match(await ready(), { status: 200 })
  hang = true
  t.match(await ready(), { status: 503, text: /did not answer in time/ })
})
