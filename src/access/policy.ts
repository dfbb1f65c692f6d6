import { isBroad } from '../../common/cidr.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { hasPrototypeKey, isRecord, parseObject, repeatedName } from '../../common/json.js'
import type { Condition } from './language/conditions.js'
import { isOpen, type Lookup, malformed, shown, type Template } from './language/patterns.js'
import {
  applies,
  asksFor,
  assuming,
  lastingStatement,
  mayAllow,
  readStatement,
  type Statement,
} from './language/statement.js'
import type { Question, Verdict } from './question.js'

/** A parsed policy of a bucket or an identity. */
export interface Policy {
  readonly statements: readonly Statement[]
  /** What it says depends on the tags of the object as it is stored. */
  readonly byTags: boolean
}

export type PolicyOptions = ({ readonly kind: 'bucket'; readonly bucket: string } | { readonly kind: 'identity' }) & {
  /** Names of the actions of plugins, such as `deal:CreateObjectDeal`. Absent: their names are not checked. */
  readonly pluginActions?: readonly string[]
}

/** Largest policy document, bytes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html */
export const MAX_POLICY_BYTES = 20 * 1024

type Read<T> = T | { readonly problem: S3Error }

/** Parses a policy document and checks it completely. Throws S3Error MalformedPolicy. */
export function parsePolicy(text: string, options: PolicyOptions): Policy {
  const read = readPolicy(text, options)
  if ('problem' in read) throw read.problem
  const statements = read.statements.map((one) => {
    if ('problem' in one) throw one.problem
    return one
  })
  return { statements, byTags: statements.some((one) => asksFor(one, EXISTING_TAG)) }
}

/** Parses a policy. Returns the problem of the document, or those of its statements, and does not throw them. */
export function readPolicy(
  text: string,
  options: PolicyOptions,
): Read<{ readonly statements: readonly Read<Statement>[] }> {
  return reading(() => {
    const { list, variables } = readFrame(text)
    return {
      statements: list.map((one, at) =>
        reading(() => {
          if (!isRecord(one)) throw malformed('Policy has an invalid statement', shown(one))
          return readStatement(one, { ...options, variables, label: labelOf(at, one.Sid) })
        }),
      ),
    }
  })
}

function reading<T>(read: () => T): Read<T> {
  try {
    return read()
  } catch (error) {
    if (error instanceof S3Error) return { problem: error }
    throw error
  }
}

/** The document around the statements. Throws MalformedPolicy. */
function readFrame(text: string): { readonly list: readonly unknown[]; readonly variables: boolean } {
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_POLICY_BYTES) throw malformed('Policy is too large', `${bytes} bytes of at most ${MAX_POLICY_BYTES}`)
  const json = readJson(text)
  const { Version, Id, Statement: list, ...others } = json
  const unknown = Object.keys(others)[0]
  if (unknown !== undefined) throw malformed('Unknown field', shown(unknown))
  if (Version !== undefined && Version !== '2012-10-17' && Version !== '2008-10-17')
    throw malformed('The policy must contain a valid version string', shown(Version))
  if (Id !== undefined && typeof Id !== 'string') throw malformed('Invalid Id', shown(Id))
  if (list === undefined) throw malformed('Missing required field Statement')
  const statements: readonly unknown[] = Array.isArray(list) ? list : [list]
  if (statements.length === 0) throw malformed('Policy has no statement')
  return { list: statements, variables: Version === '2012-10-17' }
}

const EXISTING_TAG = 's3:existingobjecttag/'

function readJson(text: string): Readonly<Record<string, unknown>> {
  const json = parseObject(text)
  if (json === undefined) throw malformed("Policies must be valid JSON and the first byte must be '{'")
  // JSON.parse makes it a member like any other, which an object of defaults would hide.
  if (hasPrototypeKey(json)) throw malformed('Unknown field', '__proto__')
  const name = repeatedName(text)
  if (name !== undefined) throw malformed('Duplicate field', `${shown(name)} occurs twice in one object`)
  return json
}

function labelOf(index: number, sid: unknown): string {
  return typeof sid === 'string' && sid !== '' ? `statement ${index + 1} (${shown(sid)})` : `statement ${index + 1}`
}

/** Returns what the policy says about the question. A Deny that applies wins over every Allow. */
export function evaluatePolicy({ statements }: Policy, question: Question): Verdict {
  const { conditions } = question
  const known = new Map<string, readonly string[] | undefined>()
  const lookup: Lookup = (key) => {
    if (!known.has(key)) known.set(key, conditions.get(key))
    return known.get(key)
  }
  let verdict: Verdict = { effect: 'none', reason: 'no statement applies' }
  for (const statement of statements) {
    const { effect, label } = statement
    // A further Allow matters only if it names the principal better.
    if (effect === 'Allow' && verdict.effect === 'allow' && verdict.to !== 'account') continue
    const to = applies(statement, question, lookup)
    if (to === undefined) continue
    if (effect === 'Deny') return { effect: 'deny', reason: `${label} denies it` }
    if (verdict.effect === 'none' || to !== 'account') verdict = { effect: 'allow', to, reason: `${label} allows it` }
  }
  return verdict
}

/**
 * Returns what the policy says whatever a later request is like: an Allow with conditions allows nothing, a Deny with
 * conditions always denies. For what outlives the request that asked for it.
 */
export function lasting(policy: Policy): Policy {
  return { ...policy, statements: policy.statements.flatMap((statement) => lastingStatement(statement) ?? []) }
}

/** Returns what the policy allows at most or at least, whatever tags the object has. */
export function ofAnyTags(policy: Policy, how: 'most' | 'least'): Policy {
  const kept = how === 'most' ? 'Allow' : 'Deny'
  const statements = policy.statements.flatMap((statement) => {
    if (!asksFor(statement, EXISTING_TAG)) return statement
    return statement.effect === kept ? assuming(statement, EXISTING_TAG) : []
  })
  return { ...policy, statements }
}

/** True if the policy allows everybody the action on some resource, under some conditions. */
export function canOpen({ statements }: Policy, action: string): boolean {
  return statements.some((statement) => mayAllow(statement, { kind: 'anonymous' }, action))
}

/** True if a statement of the policy grants access to the public, as AWS defines it. */
export function isPublic({ statements }: Policy): boolean {
  return statements.some(isPublicStatement)
}

/** Keys whose fixed values name callers that the owner of the bucket can trust. */
const TRUSTED = ['aws:principalaccount', 'aws:principalarn', 'aws:userid']

const POSITIVE = ['StringEquals', 'StringEqualsIgnoreCase', 'StringLike', 'ArnEquals', 'ArnLike']

/**
 * True if the statement grants access to the public: to callers that neither Principal nor a condition limits to fixed
 * values.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html#access-control-block-public-access-policy-status
 */
export function isPublicStatement({ effect, principals, conditions }: Statement): boolean {
  if (effect !== 'Allow' || !principals) return false
  if (!principals.everyone && !principals.negated) return false
  return !conditions.some(isFixed)
}

function isFixed({ key, operator, qualifier, ifExists, operands }: Condition): boolean {
  // Both hold for a request that does not have the key.
  if (ifExists || qualifier === 'ForAllValues') return false
  if (key === 'aws:sourceip' && operator === 'IpAddress')
    return operands.every(({ block }) => block !== undefined && !isBroad(block))
  if (!TRUSTED.includes(key) || !POSITIVE.includes(operator)) return false
  return operands.every(({ template }) => template !== undefined && !isOpen(template) && !isUnsigned(template))
}

/** True for the `aws:userid` of every caller without a signature, in any case: StringEqualsIgnoreCase ignores it. */
function isUnsigned({ fixed }: Template): boolean {
  return fixed?.join('').toLowerCase() === 'anonymous'
}
