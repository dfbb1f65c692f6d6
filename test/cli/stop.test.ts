import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { startHanging } from '../src/state/hanging.js'
import { postgres, redis } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { atTerminal, withoutTerminal as skip, untilShown } from './terminal.js'

// A stop ends, whatever hangs.

/** Longer than a stop takes that waits for nothing; what hangs would take this long. */
const STOP_SECONDS = 60

/** A server that accepts connections and says nothing. */
async function startSilent(t: Test) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.resume().on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { url: `tcp://127.0.0.1:${port}`, connections: () => sockets.size }
}

for (const kind of [redis, postgres]) {
  for (const state of ['stalled', 'connecting'] as const) {
    t.test(`${kind.name} is ${state} at SIGTERM`, { skip: kind.skip }, async (t) => {
      const store = await kind.start()
      t.teardown(() => store.stop())
      const between = await startHanging(t, store.url)
      const args = ['--state', between.url, '--state-timeout-seconds', '1', '--stop-seconds', String(STOP_SECONDS)]
      const server = await startDealgate(t, { args })
      t.equal((await send(server, { method: 'PUT', target: '/bucket' })).status, 200)
      if (state === 'stalled') between.hang()
      else {
        const silent = await startSilent(t)
        between.moveTo(silent.url)
        // A request makes PostgreSQL's pool connect; Redis connects by itself.
        await send(server, { method: 'GET', target: '/bucket?tagging=' })
        await until('it connects again', () => silent.connections() > 0)
      }
      const { code, stderr } = await server.stop('SIGTERM')
      t.equal(code, 0, 'it stops by itself')
      t.notMatch(stderr, /did not stop in time/)
    })
  }
}

/** A plugin whose stop runs this code. */
function stuckPlugin(t: Test, code: string): string {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(resolve('.'), join(folder, 'node_modules', 'dealgate'))
  const file = join(folder, 'stuck.mjs')
  writeFileSync(
    file,
    `import { definePlugin, z } from 'dealgate/plugin'
    const stop = async () => { ${code} }
    export default definePlugin({ name: 'stuck', summary: 'Stuck.', options: z.object({}), create: () => ({ operations: [], stop }) })`,
  )
  return file
}

for (const [what, body] of [
  ['never ends', 'await new Promise(() => setInterval(() => {}, 1000))'],
  ['blocks the process', 'for (;;);'],
] as const) {
  t.test(`the stop of a plugin ${what}`, async (t) => {
    const file = stuckPlugin(t, body)
    const server = await startDealgate(t, { args: ['--plugin', file, '--stop-seconds', '2'] })
    const { code, signal, stderr } = await server.stop('SIGTERM')
    if (signal === null) {
      t.equal(code, 1)
      t.match(stderr, /did not stop in time/)
    } else t.equal(signal, 'SIGKILL')
  })
}

t.test('the stop of a plugin in a worker never ends', async (t) => {
  const file = stuckPlugin(t, 'for (;;);')
  const args = ['--plugin', file, '--stop-seconds', '3', '--workers', '2']
  const server = await startDealgate(t, { args })
  const pids = [
    ...new Set([...server.log.matchAll(/"pid":(\d+)[^\n]*a worker is ready/g)].map(([, pid]) => Number(pid))),
  ]
  const { code, signal } = await server.stop('SIGTERM')
  t.ok(code === 1 || signal === 'SIGKILL')
  for (const pid of pids) {
    await until(`worker ${pid} is gone`, () => {
      try {
        process.kill(pid, 0)
        return false
      } catch {
        return true
      }
    })
  }
})

t.test('SIGHUP in a terminal reloads, and the end of the terminal ends the server', { skip }, async (t) => {
  const ports = ['--port', '0', '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const terminal = atTerminal(t, ['serve', ...ports, '--data', join(temporaryFolder(t), 'data')])
  await untilShown(terminal, 'Stop with Ctrl-C')
  const { pid } = terminal
  t.teardown(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  process.kill(pid, 'SIGHUP')
  await untilShown(terminal, 'reloaded the configuration')
  t.ok(isRunning(pid))
  terminal.close()
  await until('the server has ended', () => !isRunning(pid))
})

/** False also for a process that has ended, and that its parent has not asked about. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
