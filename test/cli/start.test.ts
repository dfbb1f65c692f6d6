import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../cli/config/config.js'
import { banner } from '../../cli/serve/banner.js'
import { firstAccount } from '../support/gateway/embedded.js'
import { Command, runCli, startCli, stopAtEnd } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send, targetOf } from '../support/sign/send.js'

// `dealgate serve` without a look at its process: serve.test.ts does that.

/** The line of `services --print json`. */
interface Gateway {
  readonly gateway: string
  readonly accessKey: string
  readonly secretKey: string
}

/** Options with a host name that no name server knows, by RFC 6761, or that none can be asked about. */
const NAMED: readonly (readonly [option: string, value: string, more?: readonly string[]])[] = [
  ['--host', 'no-host.invalid'],
  ['--state', 'redis://no-host.invalid:6379'],
  ['--database', 'postgres://user:word@no-host.invalid/name'],
  ['--metrics-host', 'no-host.invalid', ['--metrics-port', '0']],
]

const running = await startDealgate(t)
const { data } = running

t.test('what stands in the way of a start is told in one line', async (t) => {
  t.testdir({})
  const free = ['--port', '0', '--gateway-port', '0']
  const dangling = join(t.testdirName, 'dangling')
  symlinkSync(join(t.testdirName, 'nowhere'), dangling)
  const own = ['--data', join(t.testdirName, 'own')]
  const { port } = new URL(running.endpoint)
  const { port: gatewayPort } = new URL(running.gateway)
  for (const [what, args, message] of [
    ['the data folder is in use', ['--data', data, ...free], /data folder .* in use/],
    ['the port is', [...own, ...free, '--port', port], /in use by another process.* --port/],
    ['that of the gateway is', [...own, ...free, '--gateway-port', gatewayPort], /another process.* --gateway-port/],
    ['the data folder is a file', ['--data', 'package.json', ...free], /package\.json/],
    ['it is a link that leads nowhere', ['--data', dangling, ...free], /dangling cannot be used: it is a link/],
    ...NAMED.map(
      ([option, url, more = []]) =>
        [
          option,
          ['--data', join(t.testdirName, option), ...free, option, url, ...more],
          new RegExp(`^(?=.*no-host\\.invalid ).*${option}\\b`),
        ] as const,
    ),
    // An operator who forgets the endpoint of another store has no credentials of AWS.
    [
      'the store of bodies has no endpoint',
      [...own, ...free, '--bodies', 's3://bodies', '--bodies-credentials-file', join(t.testdirName, 'none')],
      /names no endpoint.*endpoint=https:\/\/host:port \(--bodies\)/,
    ],
    // Node's own recursive mkdir does not return from this one.
    ...(existsSync('/proc/self')
      ? [
          [
            'it cannot be made',
            ['--data', '/proc/none/data', ...free],
            /it is on a file system such as \/proc, which stores no files\. Name a folder on a disk\.\n$/,
          ] as const,
        ]
      : []),
  ] as const) {
    const { code, stdout, stderr } = await runCli(['serve', '--log-level', 'error', ...args])
    t.equal(code, 1, what)
    t.match(stderr, message, what)
    t.equal(stderr.trim().split('\n').length, 1, `${what}: one line: ${stderr}`)
    t.equal(stdout, '', what)
  }
})

t.test('an S3 client at any other port is told where to go', async (t) => {
  const all = await startDealgate(t, {
    args: ['--console-port', '0', '--metrics-port', '0', '--website-port', '0', '--website-domain', 'web.test'],
  })
  const { accessKey, secretKey, region, gateway, platform, payment } = all
  const ports = { gateway, platform, payment, console: all.console, metrics: all.metrics, websites: all.websites }
  for (const [what, endpoint = ''] of Object.entries(ports)) {
    const client = { endpoint: new URL(endpoint).origin, accessKey, secretKey, region }
    for (const [method, target] of [
      ['GET', '/'],
      ['GET', '/bucket/key?tagging'],
      ['PUT', '/bucket'],
    ] as const) {
      const told = await send(client, { method, target })
      t.equal(told.status, 400, `${what}: ${method} ${target}`)
      t.equal(told.code, 'InvalidRequest', what)
      t.match(told.message, /no S3 requests.* S3 endpoint of dealgate/, what)
      if (what === 'console') t.match(told.message, all.endpoint, 'where that is')
    }
  }
})

t.test('keys from the options are used and not kept', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, {
    data,
    args: ['--access-key', 'mine'],
    env: { DEALGATE_SECRET_KEY: 'my-own-secret' },
  })
  t.hasStrict(running, { accessKey: 'mine', secretKey: 'my-own-secret' })
  t.throws(() => readFileSync(join(data, 'keys.json')), { code: 'ENOENT' })
  const { stdout, stderr } = await running.stop()
  t.notMatch(stdout + stderr, 'my-own-secret', 'a secret of the environment is not printed')
})

t.test('a secret key is printed by the start that makes it and by no later one', async (t) => {
  for (const [args, secretIn] of [
    [['serve', '--port', '0'], (data: string) => JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8')).secretKey],
    [['services'], (data: string) => firstAccount(data).secretKey],
  ] as const) {
    const data = join(t.testdir({}), 'data')
    const printed = async () => {
      const running = await startCli(t, [...args, '--gateway-port', '0', '--data', data])
      return (await running.stop()).stdout
    }
    const first = await printed()
    const { platformPassword } = JSON.parse(first)
    t.match(platformPassword, /^[\w-]{24}$/, 'as does the first user of the task platform')
    const secretKey = secretIn(data)
    t.match(first, secretKey, `${args[0]}: the first start`)
    const later = await printed()
    t.notMatch(later, secretKey, `${args[0]}: a later start`)
    t.match(JSON.parse(later), { platform: /^http:/ })
    t.notOk('platformPassword' in JSON.parse(later))
  }
})

t.test('a gateway that is down: start, say so, answer 503, and work once it is up', async (t) => {
  const folder = t.testdir({})
  const alone = ['services', '--data', join(folder, 'gateway'), '--gateway-port']
  const port = String(await lastingPort())
  const gateway = await startCli<Gateway>(t, [...alone, port])
  const { gateway: url, accessKey, secretKey } = gateway.line
  t.match(await gateway.stop(), { code: 0 })

  const account = ['--gateway-url', url, '--gateway-access-key', accessKey, '--gateway-secret-key', secretKey]
  const running = await startDealgate(t, { data: join(folder, 'proxy'), gateway: { url, accessKey, secretKey } })
  t.equal((await fetch(`${running.endpoint}/-/live`)).status, 200)
  t.equal((await fetch(`${running.endpoint}/-/ready`)).status, 503)
  const doctor = await runCli(['doctor', '--data', join(folder, 'doctor'), '--port', '0', ...account])
  t.match(doctor, { code: 1, stdout: /^WRONG {2}gateway: /m })

  await startCli<Gateway>(t, [...alone, port])
  t.equal((await fetch(`${running.endpoint}/-/ready`)).status, 200)
  const healthy = await runCli(['doctor', '--data', join(folder, 'doctor'), '--port', '0', ...account])
  t.match(healthy, { code: 0, stdout: /^ok {5}gateway: .* accepts the log-in/m })
  t.match(healthy.stdout, /^ok {5}clock: /m)
  const { code, stderr } = await running.stop()
  t.equal(code, 0)
  t.match(stderr, 'the gateway cannot be used yet')
})

t.test('presign makes URLs that work, for any key', async (t) => {
  t.equal((await send(running, { method: 'PUT', target: '/shared' })).status, 200)
  for (const key of ["dir/ünï 😀 b+c%25&=?#~*!()'", '/lead//twice/']) {
    const sending = { method: 'PUT', target: targetOf('shared', key), body: Buffer.from(key) }
    t.equal((await send(running, sending)).status, 200)
    const at = ['--endpoint-url', running.endpoint, '--data', data, '--expires', '60']
    const { stdout, code } = await runCli(['presign', `s3://shared/${key}`, ...at])
    t.equal(code, 0)
    t.equal(await (await fetch(stdout.trim())).text(), key)
  }
})

t.test('doctor sees what is wrong with the key pair of a running dealgate', async (t) => {
  const { port } = new URL(running.endpoint)
  const beside = await runCli(['doctor', '--data', data, '--port', port])
  t.match(beside, { code: 0, stdout: /^ok {5}data folder: .* in use by a running dealgate/m }, beside.stdout)

  chmodSync(join(data, 'keys.json'), 0o644)
  const open = await runCli(['doctor', '--data', data, '--port', port])
  t.match(open, { code: 1, stdout: /^WRONG {2}key pair: .*chmod 600/m })
  writeFileSync(join(data, 'keys.json'), '{')
  t.match(await runCli(['doctor', '--data', data, '--port', port]), {
    code: 1,
    stdout: /^WRONG {2}key pair: .*no valid key pair/m,
  })
})

t.test(
  'the start message says that the gateway does not answer, and where other machines find the server',
  async (t) => {
    const port = await lastingPort()
    const away = ['--gateway-url', `http://127.0.0.1:${port}`, '--gateway-access-key', 'some-key']
    const env = { DEALGATE_GATEWAY_SECRET_KEY: 'some-secret' }
    const start = (args: readonly string[]) =>
      new Command<{ problem?: string; endpoint: string }>(
        ['serve', '--port', '0', '--data', join(t.testdirName, String(args.length)), ...args],
        env,
      )
    t.testdir({})
    for (const args of [away, [...away, '--workers', '2']]) {
      const command = start(args)
      stopAtEnd(t, 'serve', command)
      await command.start()
      t.match(command.line.problem, /gateway does not answer: the connection was refused/, args.join(' '))
      const { stderr } = await command.stop()
      t.notMatch(stderr, /"stack".*periodic work failed/, 'and the periodic work has no stack for it')
    }

    const facts = {
      ...{ endpoint: 'http://127.0.0.1:9000', console: 'http://127.0.0.1:9001', region: 'us-east-1' },
      ...{ gateway: 'http://127.0.0.1:9100', embedded: true, platform: undefined, payment: undefined },
      keys: { accessKey: 'some-key', secretKey: 'some-secret', made: false },
    }
    const text = (flags: Record<string, unknown>, problem?: string) =>
      banner({ ...facts, problem }, readConfig({ flags, env: {} }))
    t.match(text({}, 'It is away.'), /^dealgate runs, but its gateway cannot be used yet: It is away\.\n/)
    t.match(text({}), /^dealgate is ready\.\n\n {2}endpoint {4}\S+\n {2}console {5}\S+\n {2}access key/)
    const others = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
    const everywhere = text({ host: '0.0.0.0' })
    for (const { address } of others) t.ok(everywhere.includes(`\n              http://${address}:9000\n`), address)
    t.match(everywhere, /console {5}\S+ \(other machines need https: --tls-cert\)/)
    t.notMatch(text({ host: '0.0.0.0', consoleUrl: 'https://console.example.com' }), 'need https')
  },
)
