import { S3Error, unless } from '../../common/errors/s3-error.js'
import { Query } from '../../common/query.js'
import { authorize } from '../access/authorize.js'
import type { Context } from '../api/context.js'
import type { Gateway, PolicyEntry } from '../api/gateway.js'
import type { Caller, Identity } from '../api/identity.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import { allows, type PublicAction } from '../gateway/account/policies.js'
import { actionNames } from '../plugins/actions.js'
import { authorize as authorizeCall } from '../plugins/calls/prepare.js'
import type { OperationTable, Row } from '../plugins/table.js'
import type { Contexts } from './context.js'
import { denying } from './ended-request.js'

/** What a request would be. */
interface Simulated {
  /** Undefined: the request is not signed. */
  readonly identity: Identity | undefined
  /** Such as `s3:GetObject`. */
  readonly action: string
  readonly bucket: string
  readonly key: string | undefined
  /** The request whose address and time conditions see. */
  readonly from: RequestHead
}

interface Simulation {
  readonly allowed: boolean
  /** The statement, ACL, right or rule that decides. */
  readonly reason: string
}

/**
 * Finds out whether a request would be allowed, by the steps that every request passes. Changes nothing.
 * @param owner the gateway as the account that owns the bucket reaches it
 * @throws S3Error InvalidArgument for an action that no operation has on such a resource, NoSuchBucket
 */
export type Simulate = (asked: Simulated, owner: Pick<Gateway, 'listPolicies'>) => Promise<Simulation>

type Checks = Context['checks']

interface SimulateDeps {
  readonly contexts: Pick<Contexts, 'ofRequest'>
  readonly table: Pick<OperationTable, 'rows'>
}

export function simulator({ contexts, table }: SimulateDeps): Simulate {
  return async ({ identity, ...asked }, owner) => {
    const { action, bucket, key } = asked
    const row = rowOf(table.rows, action, key === undefined ? 'bucket' : 'object')
    const { operation } = row
    const head = headOf(operation, asked)
    const caller: Caller | undefined = identity && {
      ...{ identity, presigned: false, payload: { kind: 'unsigned' } },
      ...{ signatureVersion: 'AWS4-HMAC-SHA256', authType: 'REST-HEADER' },
    }
    let reason: string | undefined
    try {
      const context = contexts.ofRequest(operation, caller, head)
      try {
        await authorize(row, head, context)
        if (operation.call) await authorizeCall(operation.call, { ...head, plugin: row.plugin } as never, context)
      } finally {
        reason = context.authorizer.reason
      }
      if (context.authorizer.granted(action, bucket, key)) return { allowed: true, reason: reason ?? '' }
      if (caller && (await owns(context.checks, bucket)))
        return { allowed: true, reason: reason ?? 'the account owns the bucket, and nothing limits the key pair' }
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
      return { allowed: false, reason: denying(reason) ?? error.message }
    }
    const allowed = ruleAllows(action, key, await owner.listPolicies(bucket))
    // A policy that the gateway has as its rules, too, leaves the decision to them.
    const said = reason !== undefined && /: allow: /.test(reason) === allowed ? reason : undefined
    return { allowed, reason: said ?? (allowed ? RULE_ALLOWS : NOTHING_ALLOWS) }
  }
}

/** The plainest operation with this action: others add conditions of their own, such as the source of a copy. */
function rowOf(rows: readonly Row[], action: string, resource: 'bucket' | 'object'): Row {
  const wanted = action.toLowerCase()
  const found = rows.filter(({ plugin, operation: { action: own, on } }) => {
    if (on.resource !== resource || (typeof own === 'object' && 'each' in own)) return false
    return actionNames(own, plugin).some((name) => name.toLowerCase() === wanted)
  })
  const special = ({ operation: { on } }: Row) => (on.query ?? []).length + (on.header === undefined ? 0 : 1)
  const plainest = found.toSorted((one, other) => special(one) - special(other))[0]
  if (plainest) return plainest
  throw new S3Error('InvalidArgument', {
    message: `No operation on ${resource === 'bucket' ? 'a bucket' : 'an object'} has this action. Actions on objects need a key, others none.`,
    fields: { ArgumentName: 'action', ArgumentValue: action.slice(0, 100) },
  })
}

/** A request without headers; its query names the operation. */
function headOf({ on }: AnyOperation, { from, bucket, key }: Omit<Simulated, 'identity'>): RequestHead {
  const path = `/${bucket}${key === undefined ? '' : `/${encodeURIComponent(key)}`}`
  const rawQuery = (on.query ?? []).map((name) => `${name}=`).join('&')
  return {
    ...{ id: from.id, host: from.host, hostBucket: undefined, signedHosts: from.signedHosts, secure: from.secure },
    ...{ method: on.method, target: `${path}?${rawQuery}`, rawPath: path, path, rawQuery, query: new Query(rawQuery) },
    ...{ headers: {}, rawHeaders: [], secrets: [], remoteAddress: from.remoteAddress },
    ...{ resource: key === undefined ? 'bucket' : 'object', bucket, key },
  }
}

function owns(checks: Checks, bucket: string): Promise<boolean> {
  return unless(
    'AccessDenied',
    checks.requireOwner(bucket).then(() => true),
    false,
  )
}

const BY_RULES: Readonly<Record<string, PublicAction>> = {
  's3:listbucket': 'list',
  's3:getobject': 'get',
  's3:putobject': 'put',
  's3:deleteobject': 'delete',
}

const RULE_ALLOWS = 'a rule of the gateway allows it to everybody'
const NOTHING_ALLOWS = 'no policy, ACL or rule of the gateway allows it'

/** The rules of the gateway are the same for everybody but the owner. */
function ruleAllows(action: string, key: string | undefined, entries: readonly PolicyEntry[]): boolean {
  const rule = BY_RULES[action.toLowerCase()]
  return rule !== undefined && allows(entries, rule, key ?? '')
}
