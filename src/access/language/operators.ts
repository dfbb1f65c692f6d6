import { type Cidr, contains, readCidr } from '../../../common/cidr.js'
import {
  charsOf,
  type Lookup,
  matchesTokens,
  readTemplate,
  resolveTemplate,
  type Template,
  type TemplateOptions,
  type Token,
} from './patterns.js'

/** Reads an integer or decimal number; undefined for anything else. */
function readNumber(text: string): number | undefined {
  return /^[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})$/.test(text) ? Number(text) : undefined
}

const DATE =
  /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d))?)?)?$/

/**
 * Reads a date in one of the W3C forms of ISO 8601, or in seconds since 1970, to milliseconds; undefined for anything
 * else: for days that no month has, for zones of a day or more, and for dates outside of the years 0 to 9999, which no
 * text of four digits can state. A number of four digits is a year.
 *
 * https://www.w3.org/TR/NOTE-datetime
 */
export function readDate(text: string): number | undefined {
  const match = DATE.exec(text)
  if (!match) return /^\d{5,13}(\.\d{1,9})?$/.test(text) ? Math.floor(Number(text) * 1000) : undefined
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = match
  const instant = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  // Date.parse takes February 30 for the first days of March.
  if (Number.isNaN(instant) || new Date(instant).getUTCDate() !== Number(day)) return undefined
  const at = instant + Math.floor(Number(`0${fraction}`) * 1000) - offsetOf(zone)
  return at >= FIRST && at <= LAST ? at : undefined
}

const FIRST = Date.parse('0000-01-01T00:00:00Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

function offsetOf(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}

/**
 * Compares a value of the request with one of the policy; undefined if that is not possible, because the one is of
 * another type or the other has a variable without a value.
 */
type Test = (value: string, lookup: Lookup) => boolean | undefined

interface Operator {
  readonly negated: boolean
  /**
   * Reads a value of the policy; undefined if it is not of the type of the operator.
   * @throws S3Error MalformedPolicy for a broken variable
   */
  read(text: string, variables: boolean, label: string): Operand | undefined
}

export interface Operand {
  readonly test: Test
  /** The value of the operators for texts and ARNs. */
  readonly template?: Template
  /** The value of the operators for addresses. */
  readonly block?: Cidr
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html */
const operators: ReadonlyMap<string, Operator> = new Map([
  ...both('StringEquals', 'StringNotEquals', texts({ wildcards: false })),
  ...both('StringEqualsIgnoreCase', 'StringNotEqualsIgnoreCase', texts({ wildcards: false, ignoreCase: true })),
  ...both('StringLike', 'StringNotLike', texts({ wildcards: true })),
  ...both(
    'NumericEquals',
    'NumericNotEquals',
    ordered(readNumber, (value, limit) => value === limit),
  ),
  only(
    'NumericLessThan',
    ordered(readNumber, (value, limit) => value < limit),
  ),
  only(
    'NumericLessThanEquals',
    ordered(readNumber, (value, limit) => value <= limit),
  ),
  only(
    'NumericGreaterThan',
    ordered(readNumber, (value, limit) => value > limit),
  ),
  only(
    'NumericGreaterThanEquals',
    ordered(readNumber, (value, limit) => value >= limit),
  ),
  ...both(
    'DateEquals',
    'DateNotEquals',
    ordered(readDate, (value, limit) => value === limit),
  ),
  only(
    'DateLessThan',
    ordered(readDate, (value, limit) => value < limit),
  ),
  only(
    'DateLessThanEquals',
    ordered(readDate, (value, limit) => value <= limit),
  ),
  only(
    'DateGreaterThan',
    ordered(readDate, (value, limit) => value > limit),
  ),
  only(
    'DateGreaterThanEquals',
    ordered(readDate, (value, limit) => value >= limit),
  ),
  only('Bool', booleans),
  only('BinaryEquals', binaries),
  ...both('IpAddress', 'NotIpAddress', addresses),
  ...both('ArnEquals', 'ArnNotEquals', arns),
  ...both('ArnLike', 'ArnNotLike', arns),
])

/** Returns the operator with this name, without a qualifier and without IfExists; undefined if there is none. */
export function operatorNamed(name: string): Operator | undefined {
  return operators.get(name)
}

type Read = Operator['read']

function only(name: string, read: Read): [string, Operator] {
  return [name, { negated: false, read }]
}

function both(name: string, negation: string, read: Read): [string, Operator][] {
  return [only(name, read), [negation, { negated: true, read }]]
}

function texts({ wildcards, ignoreCase }: { readonly wildcards: boolean; readonly ignoreCase?: boolean }): Read {
  const fold = (text: string) => (ignoreCase ? text.toLowerCase() : text)
  return (text, variables, label) => {
    const template = readTemplate(text, { wildcards, variables }, label)
    const test: Test = (value, lookup) => {
      const tokens = resolveTemplate(template, lookup)
      if (!tokens) return undefined
      return wildcards ? matchesTokens(tokens, charsOf(value)) : fold(tokens.join('')) === fold(value)
    }
    return { test, template }
  }
}

function ordered<T>(read: (text: string) => T | undefined, compare: (value: T, limit: T) => boolean): Read {
  return (text) => {
    const limit = read(text)
    if (limit === undefined) return undefined
    return {
      test: (value) => {
        const one = read(value)
        return one === undefined ? undefined : compare(one, limit)
      },
    }
  }
}

function booleans(text: string): Operand | undefined {
  const wanted = text.toLowerCase()
  if (wanted !== 'true' && wanted !== 'false') return undefined
  return { test: (value) => value.toLowerCase() === wanted }
}

function binaries(text: string): Operand | undefined {
  const read = (base64: string) => {
    const bytes = Buffer.from(base64, 'base64')
    return bytes.toString('base64') === base64 ? bytes : undefined
  }
  const wanted = read(text)
  if (!wanted) return undefined
  return { test: (value) => read(value)?.equals(wanted) }
}

function addresses(text: string): Operand | undefined {
  const block = readCidr(text)
  return block && { test: (value) => contains(block, value), block }
}

/** Compares the six parts of an ARN one by one, so that a `*` does not reach beyond its colon. */
function arns(text: string, variables: boolean, label: string): Operand | undefined {
  const options: TemplateOptions = { wildcards: true, variables }
  const template = readTemplate(text, options, label)
  const parts = arnParts(template.parts)
  if (!parts) return undefined
  const test: Test = (value, lookup) => {
    const given = arnParts(Array.from(value))
    if (!given) return undefined
    const tokens = parts.map((part) => resolveTemplate(templateOf(part), lookup))
    if (tokens.some((one) => one === undefined)) return undefined
    return tokens.every((one, at) => matchesTokens(one as readonly Token[], given[at] ?? []))
  }
  return { test, template }
}

function templateOf(parts: Template['parts']): Template {
  const isFixed = parts.every((part) => typeof part !== 'object')
  return { parts, fixed: isFixed ? (parts as readonly Token[]) : undefined }
}

/** Splits at the first five colons; undefined if there are fewer. */
function arnParts<T>(chars: readonly T[]): T[][] | undefined {
  const parts: T[][] = [[]]
  for (const char of chars) {
    if (char === ':' && parts.length < 6) parts.push([])
    else parts.at(-1)?.push(char)
  }
  return parts.length === 6 ? parts : undefined
}
