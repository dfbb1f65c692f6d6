import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient } from '../support/programs/run.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI } from '../support/server/cli.js'
import { until } from '../support/waiting.js'

const FOLDER = 'deploy/systemd'
const PROGRAM = '/usr/local/bin/dealgate'
const units = readdirSync(FOLDER)
const textOf = (unit: string) => readFileSync(join(FOLDER, unit), 'utf8')
const settings = (unit: string, name: string) =>
  [...textOf(unit).matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value ?? '')

/** Receives datagrams, and prints each: what systemd does at NOTIFY_SOCKET. */
const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(4096).decode(), flush=True)
`

t.test('the units are as systemd wants them, and confined', async (t) => {
  if (!(await findClient(t, 'systemd-analyze'))) return
  const folder = temporaryFolder(t)
  for (const unit of units) writeFileSync(join(folder, unit), textOf(unit).replaceAll(PROGRAM, '/bin/true'))
  const run = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  for (const unit of units) {
    const { status, stdout, stderr } = run('verify', '--man=no', join(folder, unit))
    t.same([status, stdout + stderr], [0, ''], unit)
  }
  for (const unit of units.filter((name) => name.endsWith('.service'))) {
    const { status, stdout } = run('security', '--offline=true', '--threshold=20', '--no-pager', join(folder, unit))
    t.equal(status, 0, `${unit}: ${stdout.trim().split('\n').at(-1)}`)
  }
})

t.test('the command of the unit tells systemd that it is ready, alive and about to stop', async (t) => {
  if (!(await findClient(t, 'systemd-notify')) || !(await findClient(t, 'python3'))) return
  const folder = temporaryFolder(t)
  const socket = join(folder, 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  endsWithUs(receiver)
  t.teardown(() => receiver.kill('SIGKILL'))
  let received = ''
  receiver.stdout.setEncoding('utf8').on('data', (text: string) => (received += text))
  await until('the socket is there', () => received.includes('bound'))

  const unit = 'dealgate.service'
  t.same([settings(unit, 'Type'), settings(unit, 'NotifyAccess')], [['notify'], ['all']])
  const [program, ...args] = settings(unit, 'ExecStart')[0]?.split(' ') ?? []
  t.equal(program, PROGRAM)
  const variables = settings(unit, 'Environment').flatMap((text) =>
    text.split(' ').map((pair) => /^(.*?)=(.*)$/.exec(pair)?.slice(1) ?? []),
  )
  const config = join(folder, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({ port: 0, consolePort: 'off', gatewayPort: 0, platformPort: 0, paymentPort: 0 }),
  )
  const env = {
    ...Object.fromEntries(variables),
    PATH: process.env.PATH,
    DEALGATE_CONFIG: config,
    DEALGATE_DATA: join(folder, 'data'),
    NOTIFY_SOCKET: socket,
    WATCHDOG_USEC: '400000',
  }
  const server = spawn(process.execPath, [...CLI, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  endsWithUs(server)
  t.teardown(() => server.kill('SIGKILL'))
  let log = ''
  server.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  await until('it is ready', () => received.includes('READY=1\nSTATUS=Serving requests'))
  await until('the watchdog is answered', () => received.includes('WATCHDOG=1'))
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  t.same(await ended, [0, null], log)
  t.match(received, 'STOPPING=1')
  t.notMatch(log, 'could not notify systemd')
})
