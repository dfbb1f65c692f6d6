import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endsWithUs, killed, whenWeEnd } from './child.js'

/** A command to run, as a process would get it. */
export interface ShortCommand {
  readonly args: readonly string[]
  /** The whole environment. */
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

export interface CommandResult {
  readonly code: number
}

export interface CommandOutput extends CommandResult {
  readonly stdout: string
  readonly stderr: string
}

/** The commands that a host runs: they read no input, and end what they start; `serve`, which cannot start here. */
const SHORT = /^(account|keys|presign|state|backup|restore|wallet|completion|doctor|serve|services|plugin new)\b/
/** Node would keep the plugin of one command for the next. */
const LOADS = /^--(plugin|config|workers)\b/

/** A process that runs short commands of a test file, one at a time. */
class CommandHost {
  readonly #folder = mkdtempSync(join(tmpdir(), 'dealgate-commands-'))
  readonly #process: ChildProcess
  readonly #forget: () => void
  busy = false

  constructor(bundle: string) {
    const files = [this.#file('stdout'), this.#file('stderr')].map((path) => openSync(path, 'a'))
    this.#process = spawn(process.execPath, [join(bundle, 'command-host.js'), join(bundle, 'cli.js')], {
      stdio: ['ignore', ...files, 'ipc'],
    })
    for (const file of files) closeSync(file)
    endsWithUs(this.#process)
    this.#forget = whenWeEnd(() => this.#remove())
    this.#ref(false)
  }

  async run(command: ShortCommand): Promise<CommandOutput> {
    this.busy = true
    this.#ref(true)
    const over = new AbortController()
    try {
      this.#process.send(command)
      const [result] = await Promise.race([
        once(this.#process, 'message', over),
        once(this.#process, 'exit', over).then(() => []),
      ])
      if (result === undefined) throw new Error(`the host of commands ended:\n${this.#read('stderr')}`)
      const { code } = result as CommandResult
      return { code, stdout: this.#read('stdout'), stderr: this.#read('stderr') }
    } finally {
      over.abort()
      this.#ref(false)
      this.busy = false
    }
  }

  async end(): Promise<void> {
    await killed(this.#process)
    this.#forget()
    this.#remove()
  }

  /** A host that runs nothing keeps no test file open. */
  #ref(on: boolean): void {
    for (const each of [this.#process, this.#process.channel]) on ? each?.ref() : each?.unref()
  }

  #file(name: string): string {
    return join(this.#folder, name)
  }

  #read(name: string): string {
    return readFileSync(this.#file(name), 'utf8')
  }

  #remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

let host: CommandHost | undefined

/**
 * Runs a short command in the process for those of this test file; undefined where it must be a process of its own:
 * outside of `npm test`, beside another command, or with variables that node reads when it starts.
 */
export function runShort(command: ShortCommand, own: Record<string, string>): Promise<CommandOutput> | undefined {
  const { COMMANDS_UNDER_TEST: folder } = process.env
  if (!folder || host?.busy || !SHORT.test(command.args.join(' '))) return undefined
  if (command.args.some((arg) => LOADS.test(arg)) || 'DEALGATE_PLUGIN' in own) return undefined
  if (Object.keys(own).some((name) => name.startsWith('NODE_'))) return undefined
  host ??= new CommandHost(folder)
  return host.run(command)
}

/** Ends the process that has run the short commands of a test file. */
export async function endShortCommands(): Promise<void> {
  const ended = host
  host = undefined
  await ended?.end()
}
