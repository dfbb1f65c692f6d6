import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endsWithUs, killed, whenWeEnd } from '../../support/server/child.js'
import { callHost } from '../../support/server/hosted.js'
import type { FileResult } from '../run-file.js'

/** A host ends after so many servers, because some of what they leave behind stays in its memory. */
const MOST_SERVERS = 100
/** Time limit of the stop of all servers that a test file has left, ms. */
const STOP_MS = 15_000

/** Processes that run servers for test files: each serves one file at a time, and then another. */
export class Hosts {
  readonly #program: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'dealgate-hosts-'))
  readonly #idle: Host[] = []
  #made = 0

  /** @param program the bundle of `host.ts` */
  constructor(program: string) {
    this.#program = program
    whenWeEnd(() => this.#remove())
  }

  /** Runs a file that has a host of its own, and passes it the path of its socket. */
  async with(run: (socket: string) => Promise<FileResult>): Promise<FileResult> {
    const host = this.#idle.pop() ?? (await startHost(this.#program, join(this.#folder, `${++this.#made}.sock`)))
    const result = await run(host.socket)
    const { clean, cpuMs } = await stopAll(host)
    if (clean) this.#idle.push(host)
    else await killed(host.process)
    return { ...result, cpuMs: result.cpuMs + cpuMs }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#idle.map(({ process }) => killed(process)))
    this.#remove()
  }

  #remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

interface Host {
  readonly process: ChildProcess
  readonly socket: string
}

async function startHost(program: string, socket: string): Promise<Host> {
  const child = spawn(process.execPath, [program, socket], { stdio: ['pipe', 'pipe', 'inherit'] })
  endsWithUs(child)
  const ready = await Promise.race([once(child.stdout, 'data').then(() => true), once(child, 'exit')])
  if (ready !== true) throw new Error('the host of servers ended')
  return { process: child, socket }
}

interface Stopped {
  /** False if the host cannot be used again. */
  readonly clean: boolean
  readonly cpuMs: number
}

/** Stops the servers that a test file has left. */
async function stopAll({ process, socket }: Host): Promise<Stopped> {
  const failed: Stopped = { clean: false, cpuMs: 0 }
  if (process.exitCode !== null || process.signalCode !== null) return failed
  const stopped = callHost(socket, 'stop-all').then(
    ({ started = MOST_SERVERS, cpuMs = 0 }) => ({ clean: started < MOST_SERVERS, cpuMs }),
    () => failed,
  )
  return Promise.race([stopped, pause(STOP_MS, failed, { ref: false })])
}
