import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { until } from '../support/waiting.js'
import { atTerminal, withoutTerminal as skip, untilShown } from './terminal.js'

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
