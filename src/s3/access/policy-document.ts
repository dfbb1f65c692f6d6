import { z } from 'zod'
import { actionsOf, type KnownAction } from '../../access/language/patterns.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { hasPrototypeKey, repeatedName } from '../../common/json.js'

/** Largest policy document, bytes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html */
export const MAX_POLICY_BYTES = 20 * 1024

const texts = z.union([z.string().transform((text) => [text]), z.array(z.string()).min(1)])

const statement = z.strictObject({
  Sid: z.string().optional(),
  Effect: z.enum(['Allow', 'Deny']),
  Principal: z.union([z.string(), z.record(z.string(), texts)]).optional(),
  NotPrincipal: z.unknown().optional(),
  Action: texts.optional(),
  NotAction: z.unknown().optional(),
  Resource: texts.optional(),
  NotResource: z.unknown().optional(),
  Condition: z.record(z.string(), z.record(z.string(), z.union([texts, z.boolean(), z.number()]))).optional(),
})

const document = z.strictObject({
  Version: z.enum(['2012-10-17', '2008-10-17']).optional(),
  Id: z.string().optional(),
  Statement: z.union([z.array(statement).min(1), statement.transform((one) => [one])]),
})

interface Statement extends z.output<typeof statement> {
  /** For messages: `statement 2 ("Sid")`. */
  readonly label: string
}

/** Parses a policy document to its statements and checks only their structure. Throws MalformedPolicy. */
export function parsePolicy(text: string): Statement[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (cause) {
    throw new S3Error('MalformedPolicy', { message: 'The policy is not in valid JSON format.', cause })
  }
  // zod drops this name from records (https://github.com/colinhacks/zod), so a condition of that name would be lost.
  if (hasPrototypeKey(json)) throw new S3Error('MalformedPolicy', { message: 'The policy holds a member "__proto__".' })
  const name = repeatedName(text)
  if (name !== undefined)
    throw new S3Error('MalformedPolicy', { message: `The policy holds an object with ${JSON.stringify(name)} twice.` })
  const result = document.safeParse(json)
  if (!result.success) throw badDocument(result.error, json)
  return result.data.Statement.map((one, index) => ({ ...one, label: labelOf(index, one.Sid) }))
}

function labelOf(index: number, sid: string | undefined): string {
  return sid === undefined || sid === '' ? `statement ${index + 1}` : `statement ${index + 1} ("${sid}")`
}

function badDocument(error: z.ZodError, json: unknown): S3Error {
  const issue = error.issues[0]
  // Of alternative forms, the one with the deepest error path describes the problem best.
  const inner =
    issue?.code === 'invalid_union' ? issue.errors.flat().sort((a, b) => b.path.length - a.path.length)[0] : undefined
  const path = [...(issue?.path ?? []), ...(inner?.path ?? [])]
  const what = inner?.message ?? issue?.message ?? 'not a policy'
  return new S3Error('MalformedPolicy', { message: `${placeOf(path, json)}: ${what}` })
}

/** `statement 2 ("Sid"), Effect` */
function placeOf(path: readonly PropertyKey[], json: unknown): string {
  const [first, ...rest] = path.map(String)
  if (first === undefined) return 'The policy'
  if (first !== 'Statement') return [first, ...rest].join('.')
  const index = /^\d+$/.test(rest[0] ?? '') ? Number(rest.shift()) : 0
  const list = (json as { Statement?: unknown }).Statement
  const one: unknown = Array.isArray(list) ? list[index] : list
  const sid =
    typeof one === 'object' && one !== null && 'Sid' in one && typeof one.Sid === 'string' ? one.Sid : undefined
  return [labelOf(index, sid), ...rest].join(', ')
}

/** The S3 policy actions that a rule of the gateway grants. */
export const READ_ACTIONS = ['s3:GetObject'] as const

export const WRITE_ACTIONS = [
  's3:AbortMultipartUpload',
  's3:DeleteObject',
  's3:ListMultipartUploadParts',
  's3:PutObject',
] as const

export type ObjectAction = (typeof READ_ACTIONS)[number] | (typeof WRITE_ACTIONS)[number]

export const LIST_ACTION = 's3:ListBucket'

export const UPLOADS_ACTION = 's3:ListBucketMultipartUploads'

/** Granted by every rule of the gateway (minio-go pkg/policy/bucket-policy.go, `commonBucketActions`). */
export const LOCATION_ACTION = 's3:GetBucketLocation'

/** Actions that equal another action if objects have only one version. */
const TWINS: Readonly<Record<string, string>> = {
  's3:GetObjectVersion': 's3:GetObject',
  's3:DeleteObjectVersion': 's3:DeleteObject',
  's3:ListBucketVersions': LIST_ACTION,
}

/** A right that a statement grants. */
export interface GrantedRight {
  readonly right: Right
  /** The action equals another one (TWINS), so that the right must exist, but need not be granted separately. */
  readonly twin: boolean
  /** Name of the statement, for messages. */
  readonly label: string
}

const OBJECT_ACTIONS: readonly string[] = [...READ_ACTIONS, ...WRITE_ACTIONS]

/**
 * Reads the rights that a statement grants everybody. Throws MalformedPolicy for statements that S3 refuses as well,
 * NotImplemented for rights that the gateway's rules cannot express.
 */
export function readStatement(statement: Statement, bucket: string): GrantedRight[] {
  const { label } = statement
  refuseUnsupported(statement)
  const resources = (statement.Resource ?? []).map((arn) => readResource(arn, bucket, label))
  const asked: GrantedRight[] = []
  for (const word of statement.Action ?? []) {
    const actions = actionsOf(word)
    if (actions.length === 0) throw malformed(label, `there is no action ${word}`)
    const apt = actions.filter((action) => resources.some(({ on }) => on === action.on))
    if (apt.length === 0) throw malformed(label, `${word} applies to none of its resources`)
    for (const action of apt) {
      for (const resource of resources) {
        if (resource.on !== action.on) continue
        for (const right of rightsOf(action, resource, statement)) asked.push({ ...right, label })
      }
    }
  }
  return asked
}

function refuseUnsupported(statement: Statement): void {
  const { label } = statement
  for (const name of ['NotPrincipal', 'NotAction', 'NotResource'] as const) {
    if (statement[name] !== undefined) throw notPossible(label, `${name} cannot be expressed in the gateway's rules`)
  }
  if (statement.Effect !== 'Allow')
    throw notPossible(label, 'the gateway only has rules that allow, so Deny cannot be expressed')
  if (statement.Principal === undefined) throw malformed(label, 'Principal is missing')
  if (!isEverybody(statement.Principal))
    throw notPossible(label, 'the gateway\'s rules are for everybody: Principal must be "*" or {"AWS":"*"}')
  if (statement.Action === undefined) throw malformed(label, 'Action is missing')
  if (statement.Resource === undefined) throw malformed(label, 'Resource is missing')
}

function isEverybody(principal: NonNullable<Statement['Principal']>): boolean {
  if (typeof principal === 'string') return principal === '*'
  const { AWS, ...others } = principal
  return AWS !== undefined && Object.keys(others).length === 0 && AWS.every((name) => name === '*')
}

type ReadResource = { readonly on: 'bucket' } | { readonly on: 'object'; readonly prefix: string }

function readResource(arn: string, bucket: string, label: string): ReadResource {
  const name = /^arn:aws:s3:::(.+)$/s.exec(arn)?.[1]
  if (name === undefined) throw malformed(label, `the resource ${arn} is not of the form arn:aws:s3:::bucket/key`)
  if (name === bucket) return { on: 'bucket' }
  if (!name.startsWith(`${bucket}/`)) throw malformed(label, `the resource ${arn} is not this bucket, ${bucket}`)
  const keys = name.slice(bucket.length + 1)
  const prefix = keys.slice(0, -1)
  if (!keys.endsWith('*') || /[*?]|\$\{/.test(prefix)) {
    throw notPossible(
      label,
      `the gateway's rules apply to all keys with a prefix: the resource ${arn} must end in * and have no other wildcard or variable`,
    )
  }
  return { on: 'object', prefix }
}

function rightsOf(action: KnownAction, resource: ReadResource, statement: Statement): Omit<GrantedRight, 'label'>[] {
  const { label, Condition } = statement
  const base = TWINS[action.name] ?? action.name
  const twin = base !== action.name
  if (Condition !== undefined && base !== LIST_ACTION) {
    throw notPossible(
      label,
      `the gateway's rules have no conditions except that of ${LIST_ACTION} on s3:prefix; ${action.name} has one`,
    )
  }
  if (resource.on === 'object' && OBJECT_ACTIONS.includes(base)) {
    return [{ right: { kind: 'object', action: base as ObjectAction, prefix: resource.prefix }, twin }]
  }
  if (base === LIST_ACTION) {
    return prefixesOf(statement).map((prefix) => ({ right: { kind: 'list', prefix }, twin }))
  }
  if (base === UPLOADS_ACTION) return [{ right: { kind: 'uploads' }, twin }]
  if (base === LOCATION_ACTION) return [{ right: { kind: 'location' }, twin }]
  throw notPossible(label, `the gateway cannot grant ${action.name} to everybody`)
}

/**
 * Returns the prefixes to which `{"StringEquals": {"s3:prefix": ...}}` restricts listing; [undefined] without a
 * condition.
 */
function prefixesOf({ Condition, label }: Statement): (string | undefined)[] {
  if (Condition === undefined) return [undefined]
  const operators = Object.entries(Condition)
  const [operator, keys] = operators[0] ?? []
  const [key, values] = Object.entries(keys ?? {})[0] ?? []
  const single = operators.length === 1 && Object.keys(keys ?? {}).length === 1
  if (!single || operator !== 'StringEquals' || key?.toLowerCase() !== 's3:prefix' || !Array.isArray(values)) {
    throw notPossible(label, 'the only supported condition is {"StringEquals": {"s3:prefix": "..."}}')
  }
  if (values.some((prefix) => prefix === '' || /[*?]|\$\{/.test(prefix))) {
    throw notPossible(label, 's3:prefix must be the beginning of a key, without wildcards and variables')
  }
  return values
}

function malformed(label: string, why: string): S3Error {
  return new S3Error('MalformedPolicy', { message: `In ${label}: ${why}.` })
}

export function notPossible(label: string, why: string): S3Error {
  return new S3Error('NotImplemented', { message: `In ${label}: ${why}.` })
}

/** The smallest right that a policy can grant everybody. */
export type Right =
  /** An action on every object whose key has the prefix. */
  | { readonly kind: 'object'; readonly action: ObjectAction; readonly prefix: string }
  /** Listing with exactly this prefix; undefined for any. */
  | { readonly kind: 'list'; readonly prefix: string | undefined }
  /** Listing the multipart uploads. */
  | { readonly kind: 'uploads' }
  | { readonly kind: 'location' }
