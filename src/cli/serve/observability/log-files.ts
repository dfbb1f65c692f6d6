import { LineFile } from '../../../common/files/line-file.js'
import type { Logger } from '../../../common/log.js'
import type { AuditLog } from '../../../server/audit/audit-log.js'
import type { CleanupStack } from '../../../server/cleanup-stack.js'
import type { Config } from '../../config/config.js'
import { describeError, Failure } from '../../failure.js'

export interface LogFilesParts {
  readonly config: Pick<Config, 'accessLogFile' | 'accessLogFormat' | 'auditLog'>
  readonly log: Logger
  readonly cleanup: CleanupStack
}

export interface LogFiles {
  readonly accessFormat: 'json' | 's3'
  /** Takes the lines of the access log; absent for the log of the server. */
  readonly accessLine?: (line: string) => void
  readonly audit?: AuditLog
}

/** The signal after which a program that rotates logs expects new files. */
const REOPEN = 'SIGUSR2'

/** Opens the log files that the options name, and again at SIGUSR2. Throws Failure. */
export async function openLogFiles({ config, log, cleanup }: LogFilesParts): Promise<LogFiles> {
  const { accessLogFile, accessLogFormat: accessFormat, auditLog } = config
  const open = async (flag: string, path: string, durable: boolean) => {
    const file = await LineFile.open({ path, durable }).catch((cause) => {
      throw new Failure(`Cannot write to the file of ${flag}: ${describeError(cause)}.`, { cause })
    })
    cleanup.defer(() => file.close())
    return file
  }
  const access = accessLogFile === undefined ? undefined : await open('--access-log-file', accessLogFile, false)
  const audit = auditLog === undefined ? undefined : await open('--audit-log', auditLog, true)
  cleanup.defer(
    onReopen(() => {
      for (const file of [access, audit])
        file?.reopen().catch((err) => log.error({ err }, 'a log file could not be opened again'))
    }),
  )
  return {
    accessFormat,
    ...(access && {
      accessLine: (line: string) =>
        void access.write(line).catch((err) => log.error({ err }, 'the access log cannot be written')),
    }),
    ...(audit && { audit: { write: (entry) => audit.write(JSON.stringify(entry)) } }),
  }
}

/** @returns ends that */
export function onReopen(reopen: () => void): () => void {
  // Windows has no such signal.
  if (process.platform === 'win32') return () => {}
  process.on(REOPEN, reopen)
  return () => process.off(REOPEN, reopen)
}
