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
