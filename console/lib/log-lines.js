// Lines of access logs in the format of S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html

const WORD = /\[([^\]]*)\]|"((?:[^"\\]|\\.)*)"|(\S+)/g
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const NAMES = [
  ...['owner', 'bucket', 'time', 'address', 'requester', 'requestId', 'operation', 'key', 'uri', 'status', 'error'],
  ...['sent', 'size', 'total', 'turnAround', 'referer', 'agent', 'version'],
]

/** The entries of a log, the newest first; lines in another form are left out. */
export function readLog(text) {
  return text
    .split('\n')
    .map(entryOf)
    .filter((entry) => entry !== undefined)
    .sort((one, other) => other.time - one.time)
}

function entryOf(line) {
  const words = [...line.matchAll(WORD)].map(([, time, quoted, word]) => time ?? quoted ?? word)
  const entry = Object.fromEntries(NAMES.map((name, i) => [name, words[i] === '-' ? undefined : words[i]]))
  const time = timeOf(entry.time ?? '')
  if (Number.isNaN(time) || entry.operation === undefined) return undefined
  const number = (name) => (entry[name] === undefined ? undefined : Number(entry[name]))
  return {
    ...entry,
    time,
    key: decoded(entry.key),
    status: number('status'),
    sent: number('sent'),
    total: number('total'),
  }
}

/** `23/Nov/2026:01:59:56 +0000`, ms since 1970. */
function timeOf(text) {
  const [, day, month, year, rest, zone] = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/.exec(text) ?? []
  const number = String(MONTHS.indexOf(month) + 1).padStart(2, '0')
  return Date.parse(`${year}-${number}-${day}T${rest}${zone?.slice(0, 3)}:${zone?.slice(3)}`)
}

/** Keys are encoded twice: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html */
function decoded(key) {
  try {
    return key && decodeURIComponent(decodeURIComponent(key))
  } catch {
    return key
  }
}
