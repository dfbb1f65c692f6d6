import { Attempts, openFilLedger, type PluginHost, S3Error, ServiceClient, type SpendLedger } from 'dealgate'
import { MadeTasks } from './create/made-tasks.js'
import { Logins } from './login.js'
import type { TaskOptions } from './options.js'
import { Tokens } from './tokens.js'

/** Shared by the operations and jobs of this plugin. */
export class TaskParts {
  readonly options: TaskOptions
  readonly host: PluginHost
  readonly logins: Logins
  readonly tokens: Tokens
  readonly attempts: Attempts
  readonly made: MadeTasks
  readonly ledger: SpendLedger
  #client: ServiceClient | undefined

  /** @param host need not have started yet */
  constructor(options: TaskOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.logins = new Logins(host)
    this.tokens = new Tokens(this)
    this.attempts = new Attempts(() => host.now())
    this.made = new MadeTasks(host)
    this.ledger = openFilLedger(host, { cost: 'The task could cost', all: 'all tasks and deals together' })
  }

  /** Throws S3Error NotImplemented if the server has no task platform. */
  get client(): ServiceClient {
    const { platformUrl, timeoutSeconds } = this.options
    const url = platformUrl ?? this.host.platformUrl
    if (url === undefined) {
      throw new S3Error('NotImplemented', {
        message: 'This server was started without a task platform: see --platform-url.',
      })
    }
    this.#client ??= new ServiceClient({ service: 'task platform', url, timeoutMs: timeoutSeconds * 1000 })
    return this.#client
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.close()
  }
}
