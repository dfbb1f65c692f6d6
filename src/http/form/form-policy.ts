import { S3Error } from '../../../common/errors/s3-error.js'
import { hasLoneSurrogate, isDeeper } from '../../../common/json.js'

/** A parsed policy document: the conditions on a form. */
export interface FormPolicy {
  /** ms since 1970. */
  readonly expiration: number
  readonly conditions: readonly Condition[]
  /** Allowed size of the file in bytes, from content-length-range. */
  readonly size: { readonly min: number; readonly max: number }
}

interface Condition {
  readonly kind: 'eq' | 'starts-with'
  /** Lower-case, without `$`. */
  readonly field: string
  readonly value: string
}

/**
 * Parses a policy document: base64 of JSON.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
 * @throws S3Error InvalidPolicyDocument
 */
export function readPolicy(base64: string): FormPolicy {
  const document = parse(base64)
  if (typeof document.expiration !== 'string') throw invalid('Policy missing expiration.')
  if (!Array.isArray(document.conditions)) throw invalid('Policy missing conditions.')
  const conditions: Condition[] = []
  let size = { min: 0, max: Number.MAX_SAFE_INTEGER }
  for (const item of document.conditions as unknown[]) {
    if (Array.isArray(item) && isOperator(item[0], 'content-length-range')) size = narrower(size, readRange(item))
    else conditions.push(...readConditions(item))
  }
  return { expiration: readTime(document.expiration), conditions, size }
}

/** Nesting: the document, its conditions, the members of a condition. */
const MAX_LEVELS = 3

function parse(base64: string): { expiration?: unknown; conditions?: unknown } {
  if (!/^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$/.test(base64)) throw invalid('Invalid Base64.')
  let json: string
  let document: unknown
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'))
    // S3 escapes a dollar sign as `\$`, which is not valid JSON.
    json = text.replace(/(\\\\)|\\\$/g, (_, pair: string | undefined) => pair ?? '$')
    document = JSON.parse(json)
  } catch (cause) {
    throw invalid('Invalid JSON.', cause)
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) throw invalid('Invalid JSON.')
  if (hasLoneSurrogate(json)) throw invalid('An escape is no Unicode character.')
  // Error messages contain the condition, and JSON.stringify fails at an unbounded depth.
  if (isDeeper(document, MAX_LEVELS)) throw invalid('The document is nested too deeply.')
  return document
}

function readTime(text: string): number {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw invalid(`Invalid 'expiration' value: '${text.slice(0, 80)}'`)
  return time
}

/** `["eq", "$key", "value"]` or `{"key": "value"}`. */
function readConditions(item: unknown): Condition[] {
  if (Array.isArray(item)) {
    const [operator, name, value] = item as unknown[]
    const kind = (['eq', 'starts-with'] as const).find((known) => isOperator(operator, known))
    if (!kind || item.length !== 3) throw invalidCondition(item)
    return [{ kind, field: readName(name, item), value: readValue(value, item) }]
  }
  if (typeof item !== 'object' || item === null) throw invalidCondition(item)
  const members = Object.entries(item)
  if (members.length === 0) throw invalidCondition(item)
  return members.map(([name, value]) => ({ kind: 'eq', field: name.toLowerCase(), value: readValue(value, item) }))
}

function isOperator(given: unknown, known: string): boolean {
  return typeof given === 'string' && given.toLowerCase() === known
}

function readName(name: unknown, item: unknown): string {
  const field = typeof name === 'string' ? /^\\?\$(.+)$/s.exec(name)?.[1] : undefined
  if (field === undefined) throw invalidCondition(item)
  return field.toLowerCase()
}

function readValue(value: unknown, item: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw invalidCondition(item)
}

function readRange(item: readonly unknown[]): FormPolicy['size'] {
  const [min, max] = item.slice(1).map((bound) => (/^\d{1,15}$/.test(String(bound)) ? Number(bound) : Number.NaN))
  if (item.length !== 3 || min === undefined || max === undefined || !(min <= max)) throw invalidCondition(item)
  return { min, max }
}

function narrower(a: FormPolicy['size'], b: FormPolicy['size']): FormPolicy['size'] {
  return { min: Math.max(a.min, b.min), max: Math.min(a.max, b.max) }
}

function invalidCondition(item: unknown): S3Error {
  return invalid(`Invalid condition: ${JSON.stringify(item)?.slice(0, 200)}`)
}

function invalid(why: string, cause?: unknown): S3Error {
  return new S3Error('InvalidPolicyDocument', { message: `Invalid Policy: ${why}`, cause })
}

/** Fields that need no condition. Unlike in S3, checksums are among them: with one, a form can only do less. */
const FREE =
  /^(x-amz-signature|x-cloud-signature|signature|awsaccesskeyid|file|policy|x-ignore-.*|content-md5|x-amz-checksum-(?!mode|type).*)$/

/**
 * Checks a form against the policy: the form meets every condition, and a condition names every field.
 * @param fields all fields of the form, and the bucket that it was sent to as `bucket`
 * @param now ms since 1970
 * @param mostAheadMs how far in the future the policy may expire: a signature of version 2 has no time of its own
 * @throws S3Error AccessDenied
 */
export function checkPolicy(
  policy: FormPolicy,
  fields: ReadonlyMap<string, string>,
  now: number,
  mostAheadMs = Number.POSITIVE_INFINITY,
): void {
  if (now > policy.expiration) throw denied('Policy expired.')
  if (policy.expiration - now > mostAheadMs) {
    throw denied(
      'With signature version 2, a policy must expire within seven days: sign with AWS4-HMAC-SHA256, or anew.',
    )
  }
  const named = new Set<string>()
  for (const condition of policy.conditions) {
    named.add(condition.field)
    if (meets(condition, fields.get(condition.field) ?? '')) continue
    const { kind, field, value } = condition
    throw denied(`Policy Condition failed: ${JSON.stringify([kind, `$${field}`, value])}`)
  }
  const extra = [...fields.keys()].filter((name) => !named.has(name) && !FREE.test(name))
  if (extra.length > 0) throw denied(`Extra input fields: ${extra.join(', ')}`)
}

/** True for a field whose exact value the policy states. The sender of the form chooses all other values. */
export function isFixed({ conditions }: FormPolicy, field: string): boolean {
  return conditions.some((condition) => condition.kind === 'eq' && condition.field === field)
}

function meets({ kind, field, value }: Condition, given: string): boolean {
  if (kind === 'eq') return given === value
  // The condition applies to each item of a list of content types.
  if (field === 'content-type') return given.split(',').every((type) => type.trim().startsWith(value))
  return given.startsWith(value)
}

function denied(why: string): S3Error {
  return new S3Error('AccessDenied', { message: `Invalid according to Policy: ${why}` })
}
