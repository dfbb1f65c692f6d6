import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { GatewayOptions } from '../../../services/index.js'
import { endsWithUs, killed } from '../../support/server/child.js'
import { type Client, logIn } from './client.js'

/** The services in a process of their own, killed at the end of the test at the latest. */
export async function inProcess(
  t: Test,
  data: string,
  options: Partial<GatewayOptions> = {},
): Promise<{ child: ChildProcess; client: Client }> {
  const script = fileURLToPath(new URL('./process.js', import.meta.url))
  const child = spawn(process.execPath, [script, data, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endsWithUs(child)
  t.teardown(() => killed(child))
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(chunk.toString()))
    child.once('exit', () => reject(new Error('The process ended.')))
  })
  const { url, credentials } = JSON.parse(line)
  return { child, client: await logIn(url, credentials) }
}
