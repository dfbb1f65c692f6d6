import { compareUtf8 } from '../../common/byte-order.js'
import type { PolicyEntry, PublicPolicy } from '../../gateway/gateway.js'
import { READ_ACTIONS, WRITE_ACTIONS } from './actions.js'
import { parsePolicy } from './parse-document.js'
import { type Asked, notPossible, readStatement } from './read-statement.js'
import { covers, describeRight, gives, type Right } from './rights.js'

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
function ungranted({ right, label }: Asked, bucket: string, isAsked: (right: Right) => boolean) {
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
