import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { isInstalled } from '../support/programs/run.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI, environment } from '../support/server/cli.js'
import { until } from '../support/waiting.js'

// `script` gives the server a terminal: https://man7.org/linux/man-pages/man1/script.1.html

const skip = process.platform !== 'linux' || !isInstalled('script') ? 'needs script of util-linux' : false

t.test('SIGHUP in a terminal reloads, and the end of the terminal ends the server', { skip }, async (t) => {
  const ports = ['--port', '0', '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const args = [process.execPath, ...CLI, 'serve', ...ports, '--data', join(temporaryFolder(t), 'data')]
  const command = `echo "pid=$$"; exec ${args.map((arg) => `'${arg}'`).join(' ')}`
  const terminal = spawn('script', ['-qfc', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environment({ SHELL: '/bin/sh' }),
  })
  endsWithUs(terminal)
  let shown = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  await until('the server is ready', () => shown.includes('Stop with Ctrl-C'))
  const pid = Number(/pid=(\d+)/.exec(shown)?.[1])
  t.teardown(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  process.kill(pid, 'SIGHUP')
  await until('the configuration is reloaded', () => shown.includes('reloaded the configuration'))
  t.ok(isRunning(pid))
  terminal.kill('SIGKILL')
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
