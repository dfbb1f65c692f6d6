import type { PolicyEntry, PublicPolicy } from '../../api/gateway.js'
import { compareUtf8 } from '../../common/byte-order.js'
import { allows, type PublicAction } from '../../gateway/account/policies.js'
import {
  type GrantedRight,
  LIST_ACTION,
  LOCATION_ACTION,
  notPossible,
  type ObjectAction,
  parsePolicy,
  READ_ACTIONS,
  type Right,
  readStatement,
  UPLOADS_ACTION,
  WRITE_ACTIONS,
} from './policy-document.js'
import type { PublicAccess } from './public-access-block.js'

interface OutStatement {
  readonly Effect: 'Allow'
  readonly Principal: { readonly AWS: readonly string[] }
  readonly Action: readonly string[]
  readonly Resource: readonly string[]
  readonly Condition?: object
}

/** Returns a policy document that grants the same as the gateway's rules, which must not be empty. */
export function fromAccess({ entries, hidden }: PublicAccess, bucket: string): string {
  const readable = entries.filter(({ policy }) => policy !== 'writeonly').map(({ prefix }) => prefix)
  const writable = entries.filter(({ policy }) => policy !== 'readonly').map(({ prefix }) => prefix)
  const arn = `arn:aws:s3:::${bucket}`
  const below = (prefixes: readonly string[]) => prefixes.map((prefix) => `${arn}/${prefix}*`)
  const hiddenReads = hidden.filter(({ action }) => action === 'get').map(({ prefix }) => prefix)
  const hiddenLists = hidden.filter(({ action }) => action === 'list').map(({ prefix }) => prefix)
  const statements = [
    ...listing(hiddenLists, arn),
    hiddenReads.length > 0 ? allow(READ_ACTIONS, below(hiddenReads)) : undefined,
    ...listing(readable, arn),
    readable.length > 0 ? allow(READ_ACTIONS, below(readable)) : undefined,
    writable.length > 0 ? allow([UPLOADS_ACTION], [arn]) : undefined,
    writable.length > 0 ? allow(WRITE_ACTIONS, below(writable)) : undefined,
  ]
  return JSON.stringify({ Version: '2012-10-17', Statement: statements.filter((one) => one !== undefined) })
}

/** Returns statements that allow listing with exactly these prefixes; '' allows any. */
function listing(prefixes: readonly string[], arn: string): (OutStatement | undefined)[] {
  const bound = prefixes.filter((prefix) => prefix !== '')
  return [
    prefixes.includes('') ? allow([LIST_ACTION], [arn]) : undefined,
    bound.length > 0
      ? { ...allow([LIST_ACTION], [arn]), Condition: { StringEquals: { 's3:prefix': bound } } }
      : undefined,
  ]
}

function allow(actions: readonly string[], resources: readonly string[]): OutStatement {
  return { Effect: 'Allow', Principal: { AWS: ['*'] }, Action: actions, Resource: resources }
}

/**
 * Converts a policy document to the rules of the gateway that grant exactly the same. In UTF-8 byte order of the
 * prefix, without redundant rules.
 * @throws S3Error MalformedPolicy, or NotImplemented for what rules cannot express, naming the statement
 */
export function toEntries(text: string, bucket: string): PolicyEntry[] {
  const asked = parsePolicy(text).flatMap((statement) => readStatement(statement, bucket))
  const given = asked.filter(({ twin }) => !twin).map(({ right }) => right)
  const isAsked = (right: Right) => given.some((one) => covers(one, right))
  const entries = rulesFor(prefixesOf(given), isAsked)
  for (const one of asked) if (!gives(entries, one.right)) throw ungranted(one, bucket, isAsked)
  return entries
}

/** Returns the rights that the rule `readonly` or `writeonly` of a prefix grants. */
function partsOf(policy: 'readonly' | 'writeonly', prefix: string): Right[] {
  if (policy === 'readonly') {
    const list: Right = { kind: 'list', prefix: prefix === '' ? undefined : prefix }
    return [...READ_ACTIONS.map((action): Right => ({ kind: 'object', action, prefix })), list]
  }
  return [...WRITE_ACTIONS.map((action): Right => ({ kind: 'object', action, prefix })), { kind: 'uploads' }]
}

/** Sorts shorter prefixes first, because a rule for a prefix may make one below it redundant. */
function prefixesOf(rights: readonly Right[]): string[] {
  const all = rights.flatMap((right) =>
    right.kind === 'object' || (right.kind === 'list' && right.prefix !== undefined) ? [right.prefix as string] : [],
  )
  return [...new Set(all)].sort((a, b) => a.length - b.length)
}

function rulesFor(prefixes: readonly string[], isAsked: (right: Right) => boolean): PolicyEntry[] {
  const entries: PolicyEntry[] = []
  for (const prefix of prefixes) {
    const wanted = (policy: 'readonly' | 'writeonly') => {
      const parts = partsOf(policy, prefix)
      return parts.every(isAsked) && !parts.every((part) => gives(entries, part))
    }
    const policy = policyOf(wanted('readonly'), wanted('writeonly'))
    if (policy !== undefined) entries.push({ prefix, policy })
  }
  return entries.sort((a, b) => compareUtf8(a.prefix, b.prefix))
}

function policyOf(read: boolean, write: boolean): PublicPolicy | undefined {
  if (read && write) return 'readwrite'
  if (read) return 'readonly'
  return write ? 'writeonly' : undefined
}

/** Returns the error that names the rights that the gateway would grant in addition, and the policy does not. */
function ungranted({ right, label }: GrantedRight, bucket: string, isAsked: (right: Right) => boolean) {
  const prefix = right.kind === 'object' ? right.prefix : right.kind === 'list' ? (right.prefix ?? '') : ''
  const reads =
    right.kind === 'list' || (right.kind === 'object' && (READ_ACTIONS as readonly string[]).includes(right.action))
  const missing = partsOf(reads ? 'readonly' : 'writeonly', prefix).filter(
    (part) => !isAsked(part) && !covers(right, part),
  )
  const others = missing.map((part) => describeRight(part, bucket)).join(', ')
  return notPossible(
    label,
    `the gateway cannot grant ${describeRight(right, bucket)} without granting ${others || 'more'}, which the policy does not: allow that too, or leave this out`,
  )
}

/** Returns true if the first right implies the other. */
function covers(one: Right, other: Right): boolean {
  if (one.kind === 'object')
    return other.kind === 'object' && one.action === other.action && other.prefix.startsWith(one.prefix)
  if (one.kind === 'list') return other.kind === 'list' && (one.prefix === undefined || one.prefix === other.prefix)
  return one.kind === other.kind
}

/** Returns true if these rules of the gateway grant everybody the right. */
function gives(entries: readonly PolicyEntry[], right: Right): boolean {
  switch (right.kind) {
    case 'object':
      return allows(entries, gatewayAction(right.action), right.prefix)
    case 'list':
      return allows(entries, 'list', right.prefix ?? '')
    case 'uploads':
      return entries.some(({ policy }) => policy !== 'readonly')
    case 'location':
      return entries.length > 0
  }
}

function gatewayAction(action: ObjectAction): PublicAction {
  return (READ_ACTIONS as readonly string[]).includes(action) ? 'get' : 'put'
}

/** Formats a right in the terms of a policy document. */
function describeRight(right: Right, bucket: string): string {
  const arn = `arn:aws:s3:::${bucket}`
  switch (right.kind) {
    case 'object':
      return `${right.action} on ${arn}/${right.prefix}*`
    case 'list':
      return `${LIST_ACTION} on ${arn}${right.prefix === undefined ? '' : ` with the condition that s3:prefix is "${right.prefix}"`}`
    case 'uploads':
      return `${UPLOADS_ACTION} on ${arn}`
    case 'location':
      return `${LOCATION_ACTION} on ${arn}`
  }
}
