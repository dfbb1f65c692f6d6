import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type Logger as Pino, pino } from 'pino'
import { LineBatch } from './files/line-batch.js'

export type Logger = Pino

/** Something with a log, such as the context of a request: gets the lines of what is done for it. */
export interface Logging {
  readonly log: Logger
}

type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug'

/** `auto`: text for a terminal, and JSON for everything else. */
type LogFormat = 'auto' | 'json' | 'text'

interface LogOptions {
  level: LogLevel
  /** Default: `json`. */
  format?: LogFormat
  /** Takes the lines. Default: standard error, which keeps standard output free for the output of commands. */
  to?: { write(line: string): void }
  /** Number of the process among those of one server; stands in each line. */
  worker?: number
}

/** The file descriptor of standard error. */
const STDERR = 2

/** Lines on standard error. Callers pass addresses and headers through `redact` first. */
export function createLogger(options: LogOptions): Logger {
  const levels = new LevelSwitch()
  const log = pino(
    {
      level: options.level,
      base: options.worker === undefined ? null : { worker: options.worker },
      timestamp: pino.stdTimeFunctions.isoTime,
      onChild: (child) => levels.add(child),
    },
    options.to ?? standardError(options.format),
  )
  levels.add(log)
  switches.set(log, levels)
  return log
}

/** The place of the first digit of the level: a line of pino begins with `{"level":30`. */
const LEVEL_AT = '{"level":'.length
const WARN = '4'

/** Lines for people appear at once; others wait for those that follow, unless they are warnings or errors. */
function standardError(format: LogFormat = 'json'): NonNullable<LogOptions['to']> {
  const lines = pino.destination({ fd: STDERR, sync: false })
  if (format === 'auto' && isatty(STDERR)) return { write: (line) => void lines.write(logText(line)) }
  const textOf = (batch: readonly string[]) => (format === 'text' ? batch.map(logText).join('') : batch.join(''))
  const batch = new LineBatch({
    write: (all) => void lines.write(textOf(all)),
    writeNow(all) {
      try {
        lines.flushSync()
      } catch {
        // It closes itself where the event loop is empty.
      }
      // What it would begin to write now, in another thread, the end of the process may overtake.
      writeLast(Buffer.from(textOf(all)))
    },
  })
  return {
    write(line) {
      batch.add(line)
      if ((line[LEVEL_AT] ?? WARN) >= WARN) batch.flush()
    },
  }
}

/** Longest wait for a reader of standard error that is behind, ms, and the pause between two attempts. */
const MAX_BEHIND_MS = 1000
const BEHIND_MS = 10

/** Writes to standard error before it returns. What its reader or a full disk does not take is lost. */
function writeLast(bytes: Buffer): void {
  let waited = 0
  for (let from = 0; from < bytes.length; ) {
    try {
      from += writeSync(STDERR, bytes, from)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || waited >= MAX_BEHIND_MS) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BEHIND_MS)
      waited += BEHIND_MS
    }
  }
}

/** Number of loggers at which those are forgotten that nothing uses any more. */
const MAX_UNCHECKED = 256

/**
 * Loggers that change their level together. A logger of pino copies the level of the one it is derived from:
 * https://getpino.io/#/docs/api?id=logger-child
 */
class LevelSwitch {
  #loggers: WeakRef<Logger>[] = []
  #full = MAX_UNCHECKED

  add(logger: Logger): void {
    this.#loggers.push(new WeakRef(logger))
    if (this.#loggers.length < this.#full) return
    this.#loggers = this.#loggers.filter((each) => each.deref() !== undefined)
    this.#full = Math.max(MAX_UNCHECKED, 2 * this.#loggers.length)
  }

  set(level: string): void {
    for (const each of this.#loggers) {
      const logger = each.deref()
      if (logger) logger.level = level
    }
  }
}

const switches = new WeakMap<Logger, LevelSwitch>()

/** Changes the level of a logger from `createLogger`, and of all that were derived from it. */
export function setLogLevel(log: Logger, level: LogLevel): void {
  switches.get(log)?.set(level)
}

const PARAMETER_NAME = /[?&]([^?&=#\s"]*)=/g
const END_OF_VALUE = /[&#\s"]|$/g

/**
 * Signature parameters of both brands and both versions, tokens, key ids in credentials, and what clients of STS put
 * into the query, as minio-go does.
 */
const SECRET =
  /^(?:(?:webidentity|access|session)?token|samlassertion|ldappassword|signature|awsaccesskeyid|x-[a-z]+-(?:signature|credential|security-token|(?:copy-source-)?server-side-encryption-customer-key))$/i

/** Removes the secrets of a URL or request target (docs/design.md, promise 10). */
export function redact(target: string): string {
  // Nearly no key of an object has a parameter, and each request asks.
  if (!target.includes('=')) return target
  let safe = ''
  let from = 0
  for (const found of target.matchAll(PARAMETER_NAME)) {
    const [whole, name = ''] = found
    // The value of another parameter may be a URL with a query of its own: nothing but the name is skipped.
    if (found.index < from || !SECRET.test(decoded(name))) continue
    const value = found.index + whole.length
    safe += `${target.slice(from, value)}REDACTED`
    END_OF_VALUE.lastIndex = value
    from = END_OF_VALUE.exec(target)?.index ?? target.length
  }
  return safe + target.slice(from)
}

/** Clients may encode any letter of a name. */
function decoded(name: string): string {
  if (!name.includes('%')) return name
  return name.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

const LEVELS: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR', 60: 'FATAL' }
const BARE = /^[\w./:@%+*,~-]+$/

/** Would move the cursor, colour the terminal, or hide and reorder text: clients choose keys and headers. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** What JSON.parse makes of an error that pino has logged. */
interface LoggedError {
  readonly stack: string
  readonly [member: string]: unknown
}

/**
 * A line of the log for people: time, level, message, and each field as `name=value`; the stacks of errors stand in
 * lines below, indented.
 * @param line JSON of pino, with its end
 */
export function logText(line: string): string {
  const { level, time, ...logged } = JSON.parse(line) as Record<string, unknown>
  const { msg, ...fields } = withMessage(logged)
  const words: string[] = []
  const stacks: string[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (!isError(value)) {
      words.push(field(name, value))
      continue
    }
    const { stack, type: _type, message: _message, ...members } = value
    words.push(...Object.entries(members).map(([member, each]) => field(`${name}.${member}`, each)))
    stacks.push(...stack.split('\n').map((each) => `    ${printable(each.trimEnd())}`))
  }
  const level5 = (LEVELS[Number(level)] ?? String(level)).padEnd(5)
  const first = [String(time), level5, ...(msg === undefined ? [] : [printable(String(msg))]), ...words].join(' ')
  return `${[first, ...stacks].join('\n')}\n`
}

/** A line of the access log has no message but one object, whose name says what the line is about. */
function withMessage(logged: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { access, ...others } = logged
  return typeof access === 'object' && !('msg' in logged) ? { msg: 'access', ...others, ...access } : logged
}

function isError(value: unknown): value is LoggedError {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string'
}

function field(name: string, value: unknown): string {
  const text = typeof value === 'string' && BARE.test(value) ? value : JSON.stringify(value)
  return `${printable(name)}=${printable(text)}`
}

/** The text with what a terminal would obey written as escapes of JSON. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (found) =>
    [...Array(found.length).keys()].map((i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}
