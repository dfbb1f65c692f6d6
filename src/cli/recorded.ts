import { userInfo } from 'node:os'
import type { AuditEntry } from '../server/audit/audit-log.js'
import type { Config } from './config/config.js'
import { describeError, Failure } from './failure.js'
import { openLogFile } from './serve/observability/log-files.js'

type Action<Rest extends unknown[], Result> = (config: Config, ...rest: Rest) => Promise<Result>

/** What a command has changed, for the audit log. */
export type Changed = Pick<AuditEntry, 'resource' | 'amount'>

/**
 * A command that changes access, settings or spending, with an entry in the audit log if the options name one. The file
 * is opened first: without it, the command changes nothing.
 * @param command `keys add`
 * @param changes false for flags that only show something
 */
export function recorded<Rest extends unknown[]>(
  command: string,
  action: Action<Rest, Changed>,
  changes: (...rest: Rest) => boolean = () => true,
): Action<Rest, void> {
  return async (config, ...rest) => {
    if (config.auditLog === undefined || !changes(...rest)) {
      await action(config, ...rest)
      return
    }
    const file = await openLogFile('--audit-log', config.auditLog)
    const record = (about: Changed & Pick<AuditEntry, 'outcome'>) => {
      const entry: AuditEntry = { time: new Date().toISOString(), action: command, user: userName(), ...about }
      return file.write(JSON.stringify(entry), true).catch((cause) => {
        const reason = describeError(cause)
        throw new Failure(`The audit log has no line of this command, whose outcome is ${about.outcome}: ${reason}`, {
          cause,
        })
      })
    }
    try {
      const [resource] = rest
      const changed = await action(config, ...rest).catch(async (error) => {
        await record({ ...(typeof resource === 'string' && { resource }), outcome: 'failed' })
        throw error
      })
      await record({ ...changed, outcome: 'ok' })
    } finally {
      await file.close()
    }
  }
}

/** Undefined for a user id without a name. */
function userName(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
