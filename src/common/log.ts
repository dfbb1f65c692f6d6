import { type Logger as Pino, pino } from 'pino'

export type Logger = Pino

export interface LogOptions {
  level: 'silent' | 'error' | 'warn' | 'info' | 'debug'
  /** Takes the lines. Default: standard error, which keeps standard output free for the output of commands. */
  to?: { write(line: string): void }
  /** Number of the process among those of one server; stands in each line. */
  worker?: number
}

/** JSON lines on standard error. Callers pass addresses and headers through `redact` first. */
export function createLogger(options: LogOptions): Logger {
  return pino(
    {
      level: options.level,
      base: options.worker === undefined ? null : { worker: options.worker },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    options.to ?? pino.destination({ fd: 2, sync: false }),
  )
}

/** Signature parameters of both brands and both versions, tokens, and key ids in credentials. */
const SECRET_PARAMETER =
  /([?&](?:token|signature|awsaccesskeyid|x-[a-z]+-(?:signature|credential|security-token))=)[^&#\s"]*/gi

/** Removes the secrets of a URL or request target (DESIGN section 4, promise 10). */
export function redact(target: string): string {
  // Nearly no key of an object has a parameter, and each request asks.
  if (!target.includes('=')) return target
  return target.replace(SECRET_PARAMETER, '$1REDACTED')
}
