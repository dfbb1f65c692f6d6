import type { Logger } from '../../../common/log.js'
import type { Reloaded } from '../../../plugins/server-calls/plugin.js'
import type { AuditEntry } from '../../../server/audit/audit-log.js'
import type { Config } from '../../config/config.js'
import { openLogFile } from '../observability/log-files.js'

export interface RecordReloadParts {
  readonly config: Pick<Config, 'auditLog'>
  readonly log: Logger
}

/** Reloads after a signal, and records it in the audit log. That of `POST /-/reload` has an entry as a request. */
export async function recordReload({ config, log }: RecordReloadParts, reload: () => Promise<Reloaded>): Promise<void> {
  const outcome = await reload().then(
    ({ changed }) => ({ outcome: 'ok', changed }),
    () => ({ outcome: 'failed' }),
  )
  const { auditLog } = config
  if (auditLog === undefined) return
  const audit: AuditEntry = { time: new Date().toISOString(), action: 'SIGHUP', ...outcome }
  try {
    const file = await openLogFile('--audit-log', auditLog)
    await file.write(JSON.stringify(audit), true).finally(() => file.close())
  } catch (err) {
    log.error({ err, audit }, 'the audit log cannot be written')
  }
}
