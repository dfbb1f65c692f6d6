import { type Logger as Pino, pino } from 'pino'

export type Logger = Pino

export interface LogOptions {
  level: 'silent' | 'error' | 'warn' | 'info' | 'debug'
  /** File descriptor; default 2, so that standard output stays free for what the user asked for. */
  fd?: number
}

/** JSON lines on standard error. Whoever logs an address or header passes it through `redact` first. */
export function createLogger(options: LogOptions): Logger {
  return pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: options.fd ?? 2, sync: false }),
  )
}

/** Signature parameters of both brands and both versions, tokens, and the key id in credentials. */
const SECRET_PARAMETER =
  /([?&](?:token|signature|awsaccesskeyid|x-[a-z]+-(?:signature|credential|security-token))=)[^&#\s"]*/gi

/** A URL or request target without its secrets (DESIGN section 4, promise 10). */
export function redact(target: string): string {
  return target.replace(SECRET_PARAMETER, '$1REDACTED')
}
