import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { isGiven, readConfig } from '../../cli/config/config.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli, startCli } from '../support/server/cli.js'
import { lastingPort } from '../support/server/ports.js'

interface StartLine {
  readonly endpoint: string
  readonly console: string
  readonly gateway: string
  readonly platform: string
  readonly payment: string
}

/** An empty variable counts as absent: these have their ports, which the support of the tests sets otherwise. */
const OWN_PORTS = { DEALGATE_CONSOLE_PORT: '', DEALGATE_PLATFORM_PORT: '', DEALGATE_PAYMENT_PORT: '' }
const MOVED = ['port', 'console-port', 'gateway-port', 'platform-port', 'payment-port']
const DISTANCES = [0, 1, 100, 200, 300]

t.test('--port-base moves every port, and a conflict names all of them', async (t) => {
  const base = await freeBase()
  const data = temporaryFolder(t)
  const { line, pid } = await startCli<StartLine>(
    t,
    ['serve', '--data', data, '--port-base', String(base), '--log-level', 'error'],
    OWN_PORTS,
  )
  const { endpoint, console, gateway, platform, payment } = line
  t.same(
    [endpoint, console, gateway, platform, payment].map((url) => Number(new URL(url).port) - base),
    DISTANCES,
  )
  const presigned = await runCli(['presign', '--data', data, '--port-base', String(base), 's3://bucket/key'])
  t.match(presigned.stdout, new RegExp(`^http://127\\.0\\.0\\.1:${base}/bucket/key\\?`), 'commands take it, too')

  const other = join(temporaryFolder(t), 'other')
  const second = await runCli(['serve', '--data', other, '--port-base', String(base)], OWN_PORTS)
  t.equal(second.code, 1)
  t.equal(second.stderr.trim().split('\n').length, 1, second.stderr)
  const places = MOVED.map((flag, i) => `127.0.0.1:${base + (DISTANCES[i] ?? 0)} (--${flag})`)
  t.ok(second.stderr.includes(`${places.join(', ')} are in use`), second.stderr)
  const [, proposed] = /--port-base (\d+) moves all ports to free ones/.exec(second.stderr) ?? []
  t.not(Number(proposed), base, second.stderr)
  t.notOk(existsSync(other), 'nothing was started, and nothing written')

  const same = await runCli(['serve', '--data', data, '--port-base', String(base)], OWN_PORTS)
  t.match(same, { code: 1, stderr: `A dealgate at ${endpoint} (process ${pid}) runs with the data folder ${data}` })
  const services = await runCli(['services', '--data', other, '--port-base', String(base)], OWN_PORTS)
  t.match(services, {
    code: 1,
    stderr: /^dealgate: \S+ \(--gateway-port\), \S+ \(--platform-port\), \S+ \(--payment-port\) are/,
  })
  const gatewayElsewhere = ['--gateway-url', gateway, '--gateway-access-key', 'some-key']
  const alone = await runCli(['serve', '--data', other, '--port-base', String(base), ...gatewayElsewhere], {
    DEALGATE_GATEWAY_SECRET_KEY: 'some-secret',
  })
  t.match(alone, { code: 1, stderr: /^dealgate: \S+ \(--port\) is in use by another process\. Choose another/ })
})

t.test('two options with one port', async (t) => {
  const port = String(await lastingPort())
  const args = ['--port', port, '--gateway-port', port, '--platform-port', '0', '--payment-port', '0']
  const refused = await runCli(['serve', '--data', join(temporaryFolder(t), 'data'), ...args])
  t.match(refused, { code: 2, stderr: `--port and --gateway-port are both ${port}` })
})

t.test('a port that an option names stays', async (t) => {
  const read = (flags: Record<string, string>) => readConfig({ flags, env: {} })
  const { port, consolePort, gatewayPort, platformPort, paymentPort, websitePort, metricsPort } = read({
    portBase: '9500',
    gatewayPort: '1234',
    consolePort: 'off',
  })
  t.same([port, consolePort, gatewayPort, platformPort, paymentPort], [9500, 'off', 1234, 9700, 9800])
  t.same([websitePort, metricsPort], ['off', undefined])
  t.ok(isGiven(read({ portBase: '9500' }), 'port'), 'commands look there, and not for the server of the data folder')
  t.notOk(isGiven(read({}), 'port'))
  t.throws(() => read({ portBase: '65236' }), /--port-base must be a whole number from 1 to 65235/)
  t.equal(read({ host: '[::1]' }).host, '::1')
  t.throws(() => read({ host: '[localhost]' }), /--host must be a host name or address/)
})

/** A base whose ports are free now. */
async function freeBase(): Promise<number> {
  for (;;) {
    const base = await lastingPort()
    const servers = await Promise.all(DISTANCES.map((distance) => listening(base + distance)))
    const open = servers.filter((server) => server !== undefined)
    await Promise.all(open.map((server) => new Promise((resolve) => server.close(resolve))))
    if (open.length === servers.length) return base
  }
}

function listening(port: number) {
  return new Promise<ReturnType<typeof createServer> | undefined>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined)).listen(port, '127.0.0.1', () => resolve(server))
  })
}
