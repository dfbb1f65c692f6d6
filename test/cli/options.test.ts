import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { flagOf, optionNames, options, variableOf } from '../../cli/config/config.js'
import { runCli, startCli } from '../support/server/cli.js'

t.test('--version and --help', async (t) => {
  const version = await runCli(['--version'])
  t.match(version, { code: 0, stderr: '' })
  t.equal(version.stdout.trim(), JSON.parse(readFileSync('package.json', 'utf8')).version)

  const help = await runCli(['--help'])
  t.equal(help.code, 0)
  for (const command of ['serve', 'services', 'presign', 'doctor'])
    t.match(help.stdout, new RegExp(`^  ${command}\\b`, 'm'))

  const main = await runCli(['serve', '--help'])
  t.equal(main.code, 0)
  t.match(main.stdout, '--gateway-url <url>')
  t.notMatch(main.stdout, '--gateway-car-gib')
  t.match(main.stdout, /^All options: --help all\./m)

  const limits = await runCli(['serve', '--port', '0', '--help', 'Limits'])
  t.match(limits, { code: 0, stdout: /--max-bodies <number>/ })
  t.notMatch(limits.stdout, '--gateway-access-key')
  t.match(await runCli(['serve', '--help', 'nothing']), {
    code: 2,
    stderr: /all, or one of the groups endpoint, console, gateway/,
  })

  const serve = await runCli(['serve', '-h', 'all'])
  t.equal(serve.code, 0)
  for (const name of optionNames) {
    t.match(serve.stdout, new RegExp(`${flagOf(name)} [<[]`))
    t.match(serve.stdout.replace(/\s+/g, ' '), variableOf(name))
  }
})

t.test('a value may look like an option of the program', async (t) => {
  const keys = ['--access-key', 'value-access', '--secret-key', '-Vh-secret-key']
  const args = ['serve', '--data', join(t.testdir({}), 'data'), '--port', '0', '--gateway-port', '0', ...keys]
  const running = await startCli<{ accessKey: string }>(t, args)
  t.equal(running.line.accessKey, 'value-access')
  t.match(await running.stop(), { code: 0 })
})

t.test('services takes every option of the services', async (t) => {
  const { stdout } = await runCli(['services', '--help'])
  const ofServices = optionNames.filter(
    (name) =>
      options[name].group === 'Network' ||
      (/embedded (gateway|task platform|storage payment API)/.test(options[name].help) &&
        !['gatewayUrl', 'platformUrl', 'paymentUrl'].includes(name)),
  )
  t.ok(ofServices.length >= 8)
  for (const name of ofServices) t.match(stdout, new RegExp(`${flagOf(name)} [<[]`))

  const args = ['services', '--data', join(t.testdir({}), 'data'), '--gateway-port', '0']
  const started = [...args, '--network-control', '--network-epoch-seconds', '5', '--metrics-port', '0']
  const running = await startCli<{ gateway: string; metrics: string }>(t, started)
  const metrics = await (await fetch(running.line.metrics)).text()
  t.match(metrics, /^process_cpu_seconds_total /m, 'those of the process')
  t.match(metrics, /^dealgate_bodies_swept_total 0$/m, 'and of the services in their thread')
  t.match(await running.stop(), { code: 0 })
  t.match(await runCli([...args, '--network-epoch-seconds', '0']), { code: 2, stderr: '--network-epoch-seconds' })
})
t.test('bad options end with code 2, all of them told, and nothing started', async (t) => {
  const data = t.testdir({})
  const file = join(data, 'dealgate.json')
  writeFileSync(file, '{"prot": 1}')
  const args = ['--data', join(data, 'data'), '--config', file, '--port', '70000', '--bogus', '--secret-key', 'hunter2']
  const { code, stdout, stderr } = await runCli(['serve', ...args], { DEALGATE_LOG_LEVEL: 'loud' })
  t.equal(code, 2)
  t.equal(stdout, '')
  for (const name of ['--port', '--bogus', '--secret-key', 'DEALGATE_LOG_LEVEL', 'prot in']) t.match(stderr, name)
  t.notMatch(stderr, 'hunter2')
  t.notMatch(stderr, /\n\s+at /, 'no stack trace')

  t.match(
    await runCli(['--passthrough', '--port', '70000', '--access-log', 'maybe']),
    { code: 2, stderr: /^(?![\s\S]*passthrough)[\s\S]*--access-log must be on or off/ },
    'a switch needs no value',
  )
  t.match(await runCli(['sevre']), { code: 2, stderr: 'sevre' }, 'a command that does not exist')
  t.match(await runCli(['--port']), { code: 2, stderr: '--port' }, 'a flag without its value')
})

t.test('presign: bad arguments and absent keys', async (t) => {
  const data = t.testdir({})
  const wrong = ['--expires', '0', '--method', 'PATCH', '--endpoint-url', 'nowhere']
  const bad = await runCli(['presign', 'b/k', ...wrong, '--data', data])
  t.equal(bad.code, 2)
  for (const name of ['s3://bucket/key', '--expires', '--method', '--endpoint-url']) t.match(bad.stderr, name)
  t.match(await runCli(['presign']), { code: 2 }, 'no URL')
  t.match(await runCli(['presign', 's3://b/k', '--data', data]), { code: 1, stderr: /no key pair in .* by --data/ })
})
