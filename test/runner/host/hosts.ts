import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { endsWithUs, whenWeEnd } from '../../support/server/child.js'
import { callHost } from '../../support/server/hosted.js'

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

  /** Runs something that has a host of its own, and passes it the path of its socket. */
  async with<Result>(run: (socket: string) => Promise<Result>): Promise<Result> {
    const host = this.#idle.pop() ?? (await startHost(this.#program, join(this.#folder, `${++this.#made}.sock`)))
    try {
      return await run(host.socket)
    } finally {
      if (await isClean(host)) this.#idle.push(host)
      else host.process.kill('SIGKILL')
    }
  }

  stop(): void {
    for (const host of this.#idle) host.process.kill('SIGKILL')
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

/** Stops the servers that a test file has left. False if the host cannot be used again. */
async function isClean({ process, socket }: Host): Promise<boolean> {
  if (process.exitCode !== null || process.signalCode !== null) return false
  const stopped = callHost(socket, 'stop-all').then(
    ({ started = MOST_SERVERS }) => started < MOST_SERVERS,
    () => false,
  )
  return Promise.race([stopped, pause(STOP_MS, false, { ref: false })])
}
