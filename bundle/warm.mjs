// `node bundle/warm.mjs [folder]`: starts the program of the bundle once, which keeps its compiled code for the next
// starts by this version of Node.js: for images, where the folder of the program is written only while they are built.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const [app = 'dist/app'] = process.argv.slice(2)
const data = mkdtempSync(join(tmpdir(), 'dealgate-warm-'))
const ports = ['--port', '--gateway-port', '--platform-port', '--payment-port'].flatMap((flag) => [flag, '0'])
// No option of this environment may have a say.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DEALGATE_')))
const server = spawn(
  process.execPath,
  [resolve(app, 'cli.js'), 'serve', '--data', data, '--log-level', 'warn', ...ports],
  {
    cwd: data,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
const ended = once(server, 'exit')
// It prints when it is ready, and keeps its code before it heeds the signal.
server.stdout.once('data', () => server.kill('SIGTERM'))
const [code] = await ended
rmSync(data, { recursive: true, force: true })
process.exitCode = code ?? 1
