import {
  Attempts,
  JobTokens,
  OptionalService,
  openFilLedger,
  type PluginHost,
  SentRequests,
  type ServiceClient,
  type SpendLedger,
} from 'dealgate'
import { MadeTasks, type TaskAttempt } from './create/made-tasks.js'
import type { TaskOptions } from './options.js'
import { type Logins, openLogins, Tokens } from './sign-in.js'

/** Shared by the operations and jobs of this plugin. */
export class TaskDeps {
  readonly options: TaskOptions
  readonly host: PluginHost
  readonly logins: Logins
  readonly tokens: Tokens
  readonly jobTokens: JobTokens
  readonly attempts: Attempts
  readonly made: MadeTasks
  readonly ledger: SpendLedger
  readonly sent: SentRequests<TaskAttempt>
  readonly #service: OptionalService

  /** @param host need not have started yet */
  constructor(options: TaskOptions, host: PluginHost) {
    this.options = options
    this.host = host
    this.logins = openLogins(host)
    this.tokens = new Tokens(this)
    this.jobTokens = new JobTokens(host, 'task:job-bearer')
    this.attempts = new Attempts(() => host.now())
    this.made = new MadeTasks(host)
    this.ledger = openFilLedger(host, { cost: 'The task could cost', all: 'all tasks and deals together' })
    this.sent = new SentRequests(host, {
      records: 'task-attempts',
      ledger: this.ledger,
      patienceSeconds: options.reconcileAfterSeconds,
    })
    const { platformUrl, timeoutSeconds } = options
    this.#service = new OptionalService(
      () => ({ service: 'task platform', url: platformUrl ?? host.platformUrl, timeoutMs: timeoutSeconds * 1000 }),
      'This server was started without a task platform: see --platform-url.',
    )
  }

  /** Throws S3Error NotImplemented if the server has no task platform. */
  get client(): ServiceClient {
    return this.#service.client
  }

  close(): Promise<void> {
    return this.#service.close()
  }
}
