import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { CleanupStack } from '../../common/cleanup-stack.js'
import { LineBatch } from '../../common/files/line-batch.js'
import type { Logger } from '../../common/log.js'
import { openingFailure } from '../../common/opening-failure.js'
import type { AuditLog } from '../../src/server/audit.js'
import type { ScrapeFor } from '../../src/server/metrics/metrics-plugin.js'
import { describeError, Failure, listenFailure } from '../command.js'
import type { Config } from '../config/config.js'
import { serveMetrics } from '../process/metrics-server.js'
import { LineFile } from './line-file.js'

interface LogFilesOptions {
  readonly config: Pick<Config, 'accessLogFile' | 'accessLogFormat' | 'auditLog'>
  readonly log: Logger
  readonly cleanup: CleanupStack
}

interface LogFiles {
  readonly accessFormat: 'json' | 's3'
  /** Takes the lines of the access log; absent for the log of the server. */
  readonly accessLine?: (line: string) => void
  readonly audit?: AuditLog
}

/** The signal after which a program that rotates logs expects new files. */
const REOPEN = 'SIGUSR2'

/** Opens the log files that the options name, and again at SIGUSR2. Throws Failure. */
export async function openLogFiles({ config, log, cleanup }: LogFilesOptions): Promise<LogFiles> {
  const { accessLogFile, accessLogFormat: accessFormat, auditLog } = config
  const open = async (flag: string, path: string) => {
    const file = await openLogFile(flag, path)
    cleanup.defer(() => file.close())
    return file
  }
  const access = accessLogFile === undefined ? undefined : await open('--access-log-file', accessLogFile)
  const audit = auditLog === undefined ? undefined : await open('--audit-log', auditLog)
  const lines = access && accessLines(access, log)
  cleanup.defer(() => lines?.flush())
  cleanup.defer(
    onReopen(() => {
      lines?.flush()
      for (const file of [access, audit])
        file?.reopen().catch((err) => log.error({ err }, 'a log file could not be opened again'))
    }),
  )
  return {
    accessFormat,
    ...(lines && { accessLine: (line) => lines.add(line) }),
    ...(audit && {
      audit: { write: (entry, writing) => audit.write(JSON.stringify(entry), writing?.durable ?? true) },
    }),
  }
}

export function openLogFile(flag: string, path: string): Promise<LineFile> {
  return LineFile.open({ path }).catch((cause) => {
    // A file that is appended to is made, unless its folder is missing.
    const noFolder = (cause as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync(dirname(path))
    const reason = noFolder
      ? `there is no folder ${dirname(path)}. Make it.`
      : (openingFailure(path, cause, `name another file with ${flag}`) ?? `${describeError(cause)}.`)
    throw new Failure(`Cannot write to the file of ${flag}: ${reason}`, { cause })
  })
}

/** The log of the server says once that lines are lost, and how many were, when the file takes lines again. */
function accessLines(file: LineFile, log: Logger): LineBatch {
  let lost = 0
  return new LineBatch({
    write: (lines) =>
      void file.writeAll(lines).then(
        () => {
          if (lost > 0) log.warn({ lost }, 'the access log is written again, without some lines')
          lost = 0
        },
        (err) => {
          if (lost === 0) log.error({ err }, 'the access log cannot be written')
          lost += lines.length
        },
      ),
    writeNow(lines) {
      try {
        file.writeNow(lines)
      } catch (err) {
        log.error({ err }, 'the last lines of the access log cannot be written')
      }
    },
  })
}

/** @returns ends that */
export function onReopen(reopen: () => void): () => void {
  // Windows has no such signal.
  if (process.platform === 'win32') return () => {}
  process.on(REOPEN, reopen)
  return () => process.off(REOPEN, reopen)
}

interface MetricsPortOptions {
  readonly config: Pick<Config, 'metricsHost' | 'metricsPort'>
  readonly scrape: ScrapeFor
  readonly log: Logger
  readonly cleanup: CleanupStack
}

/** Serves the metrics on a port of their own if there is one, and resolves to their address. Throws Failure. */
export async function openMetricsPort({
  config,
  scrape,
  log,
  cleanup,
}: MetricsPortOptions): Promise<string | undefined> {
  const { metricsHost: host, metricsPort: port } = config
  if (port === undefined) return undefined
  const served = await serveMetrics({ host, port, scrape, log }).catch((error) => {
    throw listenFailure(error, { host, port }, { host: '--metrics-host', port: '--metrics-port' })
  })
  cleanup.defer(() => served.close())
  return served.url
}
