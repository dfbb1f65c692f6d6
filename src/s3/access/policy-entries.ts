import { compareUtf8 } from '../../../common/byte-order.js'
import { actionsOf } from '../../access/language/patterns.js'
import type { PolicyEntry, PublicPolicy } from '../../api/gateway.js'
import { allows, type PublicAction } from '../../gateway/account/policies.js'
import type { PublicAccess } from './public-access-block.js'

/** The S3 policy actions that a rule of the gateway grants. */
const READ_ACTIONS = ['s3:GetObject'] as const

const WRITE_ACTIONS = [
  's3:AbortMultipartUpload',
  's3:DeleteObject',
  's3:ListMultipartUploadParts',
  's3:PutObject',
] as const

type ObjectAction = (typeof READ_ACTIONS)[number] | (typeof WRITE_ACTIONS)[number]

const LIST_ACTION = 's3:ListBucket'

const UPLOADS_ACTION = 's3:ListBucketMultipartUploads'

/** Granted by every rule of the gateway (minio-go pkg/policy/bucket-policy.go, `commonBucketActions`). */
const LOCATION_ACTION = 's3:GetBucketLocation'

/** Actions that equal another action if objects have only one version. */
const TWINS: Readonly<Record<string, string>> = {
  's3:GetObjectVersion': 's3:GetObject',
  's3:DeleteObjectVersion': 's3:DeleteObject',
  's3:ListBucketVersions': LIST_ACTION,
}

const OBJECT_ACTIONS: readonly string[] = [...READ_ACTIONS, ...WRITE_ACTIONS]

/** The smallest right that a policy can grant everybody. */
type Right =
  /** An action on every object whose key has the prefix. */
  | { readonly kind: 'object'; readonly action: ObjectAction; readonly prefix: string }
  /** Listing with exactly this prefix; undefined for any. */
  | { readonly kind: 'list'; readonly prefix: string | undefined }
  /** Listing the multipart uploads. */
  | { readonly kind: 'uploads' }
  | { readonly kind: 'location' }

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

/** A statement of a policy document that `parsePolicy` accepts. */
interface InStatement {
  readonly Sid?: string
  readonly Effect: string
  readonly Principal?: string | Readonly<Record<string, string | readonly string[]>>
  readonly Action?: string | readonly string[]
  readonly Resource?: string | readonly string[]
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

interface RequestedRight {
  readonly right: Right
  /** The action equals another one (TWINS), so that the right must exist, but need not be granted separately. */
  readonly twin: boolean
}

/**
 * Converts a policy document to the rules of the gateway that grant exactly the same; undefined if no rules do. In
 * UTF-8 byte order of the prefix, without redundant rules.
 * @param text a document that `parsePolicy` accepts
 */
export function toEntries(text: string, bucket: string): PolicyEntry[] | undefined {
  const { Statement } = JSON.parse(text) as { Statement: InStatement | readonly InStatement[] }
  const asked = joined([Statement].flat(), (statement) => requestedRights(statement, bucket))
  if (asked === undefined) return undefined
  const given = asked.filter(({ twin }) => !twin).map(({ right }) => right)
  const entries = rulesFor(prefixesOf(given), (right) => given.some((one) => covers(one, right)))
  return asked.every(({ right }) => gives(entries, right)) ? entries : undefined
}

/** Joins the lists of all; undefined if one has none. */
function joined<T, R>(all: readonly T[], listOf: (one: T) => readonly R[] | undefined): R[] | undefined {
  const lists = all.map(listOf)
  return lists.includes(undefined) ? undefined : lists.flatMap((list) => list ?? [])
}

/** Returns the rights that a statement grants everybody; undefined if rules of the gateway cannot express it. */
function requestedRights(statement: InStatement, bucket: string): RequestedRight[] | undefined {
  const { Sid, Effect, Principal, Action = [], Resource = [], Condition, ...others } = statement
  if (Effect !== 'Allow' || !isEverybody(Principal) || Object.keys(others).length > 0) return undefined
  const resources = joined([Resource].flat(), (arn) => targetOf(arn, bucket))
  const listed = Condition === undefined ? [undefined] : listedPrefixes(Condition)
  if (resources === undefined || listed === undefined) return undefined
  return joined([Action].flat(), (word) => {
    const apt = actionsOf(word).flatMap((action) =>
      resources.filter(({ on }) => on === action.on).map((resource) => ({ action, resource })),
    )
    if (apt.length === 0) return undefined
    return joined(apt, ({ action, resource }) => {
      const base = TWINS[action.name] ?? action.name
      if (Condition !== undefined && base !== LIST_ACTION) return undefined
      return rightsOf(base, resource, listed)?.map((right) => ({ right, twin: base !== action.name }))
    })
  })
}

function isEverybody(principal: InStatement['Principal']): boolean {
  if (typeof principal !== 'object') return principal === '*'
  const { AWS = [], ...others } = principal
  const names = [AWS].flat()
  return names.length > 0 && Object.keys(others).length === 0 && names.every((name) => name === '*')
}

type RuleTarget = { readonly on: 'bucket' } | { readonly on: 'object'; readonly prefix: string }

/** Rules apply to the bucket, and to all keys with a prefix. */
function targetOf(arn: string, bucket: string): [RuleTarget] | undefined {
  const name = /^arn:aws:s3:::(.+)$/s.exec(arn)?.[1]
  if (name === bucket) return [{ on: 'bucket' }]
  if (!name?.startsWith(`${bucket}/`) || !name.endsWith('*')) return undefined
  const prefix = name.slice(bucket.length + 1, -1)
  return isOpen(prefix) ? undefined : [{ on: 'object', prefix }]
}

/** True for a text with a wildcard or a variable. */
function isOpen(text: string): boolean {
  return /[*?]|\$\{/.test(text)
}

function rightsOf(action: string, target: RuleTarget, listed: readonly (string | undefined)[]): Right[] | undefined {
  if (target.on === 'object' && OBJECT_ACTIONS.includes(action))
    return [{ kind: 'object', action: action as ObjectAction, prefix: target.prefix }]
  if (action === LIST_ACTION) return listed.map((prefix) => ({ kind: 'list', prefix }))
  if (action === UPLOADS_ACTION) return [{ kind: 'uploads' }]
  return action === LOCATION_ACTION ? [{ kind: 'location' }] : undefined
}

/** The prefixes to which `{"StringEquals": {"s3:prefix": ...}}` restricts listing; undefined for other conditions. */
function listedPrefixes(condition: NonNullable<InStatement['Condition']>): string[] | undefined {
  const [operator, ...operators] = Object.entries(condition)
  const [key, ...keys] = Object.entries(operator?.[1] ?? {})
  if (operator?.[0] !== 'StringEquals' || key?.[0].toLowerCase() !== 's3:prefix') return undefined
  if (operators.length > 0 || keys.length > 0) return undefined
  const prefixes = [key[1]].flat()
  return prefixes.every((prefix) => typeof prefix === 'string' && prefix !== '' && !isOpen(prefix))
    ? (prefixes as string[])
    : undefined
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
