import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** True when the program can be started; a test of it is skipped otherwise, or fails with REQUIRE_CLIENTS=1. */
export function isInstalled(program: string): boolean {
  const found = spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0
  if (!found && process.env.REQUIRE_CLIENTS === '1') throw new Error(`${program} is not installed`)
  return found
}

/** Runs a client program to its end, in an environment without settings of the user's own. */
export async function run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const [code] = await once(child, 'close')
  return { code, ...output }
}
