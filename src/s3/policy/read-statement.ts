import { S3Error } from '../../common/errors/s3-error.js'
import {
  actionsOf,
  type KnownAction,
  LIST_ACTION,
  LOCATION_ACTION,
  type ObjectAction,
  READ_ACTIONS,
  TWINS,
  UPLOADS_ACTION,
  WRITE_ACTIONS,
} from './actions.js'
import type { Statement } from './parse-document.js'
import type { Right } from './rights.js'

/** A right that a statement grants. */
export interface Asked {
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
export function readStatement(statement: Statement, bucket: string): Asked[] {
  const { label } = statement
  refuseUnsupported(statement)
  const resources = (statement.Resource ?? []).map((arn) => readResource(arn, bucket, label))
  const asked: Asked[] = []
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

type Place = { readonly on: 'bucket' } | { readonly on: 'object'; readonly prefix: string }

function readResource(arn: string, bucket: string, label: string): Place {
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

function rightsOf(action: KnownAction, resource: Place, statement: Statement): Omit<Asked, 'label'>[] {
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

export function malformed(label: string, why: string): S3Error {
  return new S3Error('MalformedPolicy', { message: `In ${label}: ${why}.` })
}

export function notPossible(label: string, why: string): S3Error {
  return new S3Error('NotImplemented', { message: `In ${label}: ${why}.` })
}
