import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { endsWithUs, killed } from '../../support/server/child.js'
import type { FileResult } from '../run-file.js'

/** A worker ends after so many files: what they leave behind stays in its memory. */
const MOST_FILES = 40

interface Worker {
  readonly process: ChildProcess
  files: number
}

/** Processes that run test files: each runs one file at a time, and then another. */
export class Workers {
  readonly #program: string
  readonly #env: Readonly<Record<string, string>>
  readonly #idle: Worker[] = []

  /**
   * @param program the bundle of `worker.ts`
   * @param env further variables of its environment
   */
  constructor(program: string, env: Readonly<Record<string, string>>) {
    this.#program = program
    this.#env = env
  }

  /**
   * Passes a worker to `run`. One whose file failed runs no other.
   * @param alone a worker of its own
   */
  async with(alone: boolean, run: (worker: ChildProcess) => Promise<FileResult>): Promise<FileResult> {
    const worker = (alone ? undefined : this.#idle.pop()) ?? { process: this.#start(), files: 0 }
    worker.files++
    const result = await run(worker.process)
    if (!alone && result.counts.fail === 0 && worker.files < MOST_FILES) this.#idle.push(worker)
    else await ended(worker.process)
    return result
  }

  async stop(): Promise<void> {
    await Promise.all(this.#idle.map(({ process }) => killed(process)))
  }

  #start(): ChildProcess {
    const child = spawn(process.execPath, ['--conditions=dealgate-source', this.#program], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: { ...process.env, ...this.#env, TAP: '1' },
    })
    endsWithUs(child)
    return child
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
  await exit
  clearTimeout(timer)
}
