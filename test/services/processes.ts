import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { SignIn } from '../../services/platform/users.js'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs, killed } from '../support/server/child.js'
import { type Answer, type Call, send } from './platform/platform-client.js'

/** A service in a process of its own, with a folder of its own. */
export interface ServiceProcess {
  readonly url: string
  /** The first user, if this process made it. */
  readonly made: SignIn | undefined
  /** Sends a request; the answer must be JSON. */
  call(method: string, path: string, call?: Call): Promise<Answer>
  /** Stops it as it is, and lets it go on. */
  freeze(): void
  goOn(): void
  kill(): Promise<void>
}

/** Starts it; it is killed at the end of the test at the latest. */
export async function startProcess(
  t: Test,
  service: 'platform' | 'payment',
  options: Readonly<Record<string, unknown>>,
): Promise<ServiceProcess> {
  const script = fileURLToPath(new URL('./one-process.js', import.meta.url))
  const child: ChildProcess = spawn(
    process.execPath,
    ['--conditions=dealgate-source', script, service, temporaryFolder(t), JSON.stringify(options)],
    // A network that names no database has none: a server of its own would outlive a process that is killed.
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, DEALGATE_ENGINE: '' } },
  )
  endsWithUs(child)
  t.teardown(() => killed(child))
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(chunk.toString()))
    child.once('exit', () => reject(new Error('The process ended.')))
  })
  const { url, made } = JSON.parse(line)
  return {
    url,
    made,
    call: (method, path, more) => send(url, method, path, more),
    freeze: () => child.kill('SIGSTOP'),
    goOn: () => child.kill('SIGCONT'),
    kill: () => killed(child),
  }
}
