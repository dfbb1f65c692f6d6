import { Attempts, type ExceededCap, FIL_LEDGER, formatAmount, type PluginHost, S3Error, SpendLedger } from 'dealgate'
import { MadeTasks } from './create/made-tasks.js'
import { Logins } from './login.js'
import type { TaskOptions } from './options.js'
import { PlatformClient } from './platform-client.js'
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
  #client: PlatformClient | undefined

  /** @param host need not have started yet */
  constructor(options: TaskOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.logins = new Logins(host)
    this.tokens = new Tokens(this)
    this.attempts = new Attempts(() => host.now())
    this.made = new MadeTasks(host)
    this.ledger = openLedger(host)
  }

  /** Throws S3Error NotImplemented if the server has no task platform. */
  get client(): PlatformClient {
    const { platformUrl, timeoutSeconds } = this.options
    const url = platformUrl ?? this.host.platformUrl
    if (url === undefined) {
      throw new S3Error('NotImplemented', {
        message: 'This server was started without a task platform: see --platform-url.',
      })
    }
    this.#client ??= new PlatformClient(url, timeoutSeconds * 1000)
    return this.#client
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.close()
  }
}

/** The ledger of fil, which the plugin `deal` shares. Throws SpendCapReached for a task that would exceed a cap. */
export function openLedger({ state, now }: PluginHost): SpendLedger {
  return new SpendLedger({ state, now, name: FIL_LEDGER, exceeded })
}

function exceeded({ cap, spent, amount, bucket }: ExceededCap): S3Error {
  const of = bucket === undefined ? 'all tasks and deals together' : `the bucket ${bucket}`
  return new S3Error('SpendCapReached', {
    message:
      `The task could cost ${formatAmount(amount)} fil. The daily cap of ${of} is ${formatAmount(cap)} fil (UTC), of ` +
      `which ${formatAmount(spent)} are spent. Wait until tomorrow, or raise the cap.`,
  })
}
