import { pino } from 'pino'
import type { Logger } from '../../../common/log.js'

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly [name: string]: unknown
}

/** A log from level debug, and its lines. */
export function keptLog(): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return { log, lines }
}
