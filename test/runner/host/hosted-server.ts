import { closeSync, openSync, writeSync } from 'node:fs'
import { describeError, exitCodeOf } from '../../../src/cli/command.js'
import type { Config } from '../../../src/cli/config/config.js'
import { type Actions, createProgram } from '../../../src/cli/program.js'
import { workersOf } from '../../../src/cli/serve/server-options.js'
import { startServicesAlone } from '../../../src/cli/serve/services.js'
import { startServer } from '../../../src/cli/serve/start-server.js'
import { CleanupStack } from '../../../src/common/cleanup-stack.js'
import { createLogger, type Logger } from '../../../src/common/log.js'

/** A command to run, as a process would get it. */
export interface HostedCommand {
  /** `serve` or `services`, and its options. */
  readonly args: readonly string[]
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
  /** Absolute path of the file that gets standard error. */
  readonly log: string
}

type Start = (config: Config, log: Logger, cleanup: CleanupStack) => Promise<string>

/** `dealgate serve` or `dealgate services` in this process. */
export class HostedServer {
  readonly #cleanup = new CleanupStack()
  readonly #file: number
  #open = true
  #log: Logger | undefined

  constructor(file: string) {
    this.#file = openSync(file, 'a')
  }

  /** Resolves to standard output when the server is ready. A failed start writes its reason to the log, and rejects. */
  async start({ args, env }: HostedCommand): Promise<string> {
    try {
      const { start, config } = commandOf(args, env)
      this.#log = createLogger({ level: config.logLevel, to: { write: (line) => this.#write(line) } })
      return await start(config, this.#log, this.#cleanup)
    } catch (error) {
      this.#log?.debug({ err: error }, 'failed')
      await this.stop().catch(() => {})
      throw Object.assign(new Error(describeError(error)), { exitCode: exitCodeOf(error) })
    }
  }

  async stop(): Promise<void> {
    try {
      await this.#cleanup.close()
    } finally {
      // Its number may belong to another file afterwards.
      if (this.#open) closeSync(this.#file)
      this.#open = false
    }
  }

  #write(line: string): void {
    if (this.#open) writeSync(this.#file, line)
  }
}

/** The command line and the environment as the program reads them. Throws what the program throws. */
function commandOf(args: readonly string[], env: HostedCommand['env']): { start: Start; config: Config } {
  let found: { start: Start; config: Config } | undefined
  const keep = (start: Start) => async (config: Config) => {
    found = { start, config }
  }
  // The other commands are never run here.
  const actions = { serve: keep(startServer), services: keep(startServicesAlone) } as Partial<Actions> as Actions
  const { env: ours } = process
  process.env = { ...env }
  try {
    createProgram(actions).parse([process.execPath, 'dealgate', ...args])
  } finally {
    process.env = ours
  }
  if (found === undefined) throw new Error(`${args[0]} cannot run in a host`)
  if (workersOf(found.config) > 1) throw new Error('a server with workers is a process: start it with ownProcess')
  return found
}
