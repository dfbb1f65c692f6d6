import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { whenWeEnd } from '../support/server/child.js'
import { CLI } from '../support/server/cli.js'
import { HostedRun, hostUnderTest } from '../support/server/hosted.js'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How long a command, or the start of a server, may take before the test gives up, ms. */
const PATIENCE_MS = 120_000

const RUN = 'cd "$PWD" && set -a && eval "$1"; code=$?; env -0 >"$2"; exit $code'

/** The variable with which `dealgate` says what it would run, in two files of this name. */
const ASKED = 'WHAT_WOULD_RUN'

/** Writes a program `dealgate` for a reader. */
export async function writeDealgate(path: string): Promise<void> {
  const command = [process.execPath, ...CLI].map((part) => `'${part}'`).join(' ')
  const says = `printf '%s\\0' "$@" >"$${ASKED}.args"; env -0 >"$${ASKED}.env"; exit`
  await writeFile(path, `#!/bin/sh\nif [ "$${ASKED}" ]; then ${says}; fi\nexec ${command} "$@"\n`, { mode: 0o755 })
}

/** A shell that a reader types commands into one after the other: variables and the working folder stay. */
export class Shell {
  readonly #folder: string
  readonly #ownProcess: boolean
  #env: Record<string, string>
  #server: ChildProcess | undefined
  /** The server, where it is no process of its own. */
  #hosted: HostedRun | undefined

  /** @param ownProcess the page looks at its server as a process */
  constructor(folder: string, env: Readonly<Record<string, string>>, ownProcess = false) {
    this.#folder = folder
    this.#ownProcess = ownProcess
    this.#env = { ...env, PWD: folder }
  }

  /** Runs a command to its end. */
  async run(text: string): Promise<Ended> {
    const kept = join(this.#folder, '.environment')
    const child = this.#spawn(['-c', RUN, 'bash', text, kept])
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), PATIENCE_MS)
    const output = collect(child)
    const [code] = await once(child, 'close')
    clearTimeout(timer)
    this.#env = await readEnvironment(kept)
    return { code, ...output }
  }

  /**
   * Starts a server in another shell, in place of the one before; once it is ready, its `eval` line is pasted into
   * this one. The server is in a process of the runner if that has one for servers.
   */
  async serve(text: string): Promise<void> {
    await this.stop()
    const host = this.#ownProcess ? undefined : hostUnderTest()
    await this.#export(host === undefined ? await this.#start(text) : await this.#startAt(host, text))
  }

  /** Starts what a command line would start, as the shell has read it. */
  async #startAt(host: string, text: string): Promise<string> {
    const asked = join(this.#folder, '.server')
    const child = this.#spawn(['-c', 'eval "$1"', 'bash', text], { [ASKED]: asked })
    const output = collect(child)
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`${text}: ${output.stderr}`)
    // `printf` prints an empty argument if there is none.
    const given = (await readFile(`${asked}.args`, 'utf8')).split('\0').filter((arg) => arg !== '')
    const options = given[0] === 'serve' ? given.slice(1) : given
    const { [ASKED]: _, ...env } = await readEnvironment(`${asked}.env`)
    this.#hosted = new HostedRun(host)
    // The host has another working folder.
    const args = ['serve', '--data', join(this.#folder, 'dealgate-data'), ...options]
    if ((await this.#hosted.start(args, env)) === undefined)
      throw new Error(`${text}: ended\n${this.#hosted.log.slice(-5000)}`)
    return this.#hosted.stdout
  }

  async #start(text: string): Promise<string> {
    const child = this.#spawn(['-c', 'eval "$1"', 'bash', text])
    this.#server = child
    const output = collect(child)
    await new Promise<void>((resolve, reject) => {
      const fail = (why: string) => {
        clearTimeout(timer)
        reject(new Error(`${text}: ${why}\n${output.stdout}${output.stderr.slice(-5000)}`))
      }
      const timer = setTimeout(() => fail('is not ready'), PATIENCE_MS)
      child.stdout?.on('data', () => {
        if (output.stdout.includes('Stop with Ctrl-C.')) resolve(clearTimeout(timer))
      })
      child.once('exit', () => fail('ended'))
    })
    return output.stdout
  }

  async #export(printed: string): Promise<void> {
    const [line] = /^ *eval ".* keys env .*"$/m.exec(printed) ?? []
    if (line === undefined) return
    // A process of the runner has another program than a reader.
    const { code, stderr } = await this.run(
      this.#ownProcess ? line : line.replace(/\$\(.* keys env/, '$(dealgate keys env'),
    )
    if (code !== 0) throw new Error(`${line}: ${stderr}`)
  }

  /** Ends the server that runs, as Ctrl-C does, and waits for its end. */
  async stop(): Promise<void> {
    if (this.#hosted?.running) await this.#hosted.stop()
    const child = this.#server
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const end = once(child, 'close')
    endGroup(child, 'SIGINT')
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), PATIENCE_MS)
    await end
    clearTimeout(timer)
  }

  /** In a process group of its own: what a command starts ends with it. */
  #spawn(args: readonly string[], further: Record<string, string> = {}): ChildProcess {
    const cwd = this.#env.PWD ?? this.#folder
    const env = { ...this.#env, ...further }
    const child = spawn('bash', args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    child.once(
      'exit',
      whenWeEnd(() => endGroup(child, 'SIGKILL')),
    )
    return child
  }
}

/** What `env -0` has printed. */
async function readEnvironment(file: string): Promise<Record<string, string>> {
  const entries = (await readFile(file, 'utf8')).split('\0').filter((entry) => entry.includes('='))
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  )
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  return output
}

function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended.
  }
}
