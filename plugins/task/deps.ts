import { PaidService } from 'dealgate/paid'
import type { PluginHost } from 'dealgate/plugin'
import { MadeTasks, type TaskAttempt } from './create/made-tasks.js'
import type { TaskOptions } from './options.js'
import type { OwnerUser } from './owner-user.js'
import { type Logins, openLogins, Tokens } from './sign-in.js'

export class TaskDeps extends PaidService<TaskAttempt> {
  readonly options: TaskOptions
  readonly logins: Logins
  readonly tokens: Tokens
  readonly owner: OwnerUser | undefined
  readonly made: MadeTasks

  /** @param host need not have started yet */
  constructor(options: TaskOptions, host: PluginHost) {
    super(host, {
      plugin: 'task',
      service: 'task platform',
      url: () => options.platformUrl ?? host.platformUrl,
      timeoutSeconds: options.timeoutSeconds,
      missing: 'This server was started without a task platform: see --platform-url.',
      spending: { cost: 'The task could cost', all: 'all tasks and deals together' },
      patienceSeconds: options.reconcileAfterSeconds,
    })
    this.options = options
    this.logins = openLogins(host)
    // Another platform than the one that the server was started with does not know its owner.
    this.owner = options.platformUrl === undefined ? options.owner : undefined
    this.tokens = new Tokens(this)
    this.made = new MadeTasks(host)
  }
}
