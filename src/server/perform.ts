import { randomUUID } from 'node:crypto'
import { S3Error } from '../../common/errors/s3-error.js'
import { Query } from '../../common/query.js'
import { authorize } from '../access/authorize.js'
import type { Decide, OwnRequest, Perform, RequestOwner } from '../api/child-request.js'
import type { Caller, Credentials, Identity } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { Reply, RequestHead, S3Request } from '../api/request.js'
import { type Addressing, refuseNoBucketName, refuseReserved } from '../http/addressing.js'
import { ownBody } from '../http/body/open-body.js'
import { errorReply, toS3Error } from '../http/error-reply.js'
import { refuseLongKey } from '../http/read-request.js'
import { authorize as authorizeCall } from '../plugins/calls/prepare.js'
import type { OperationTable } from '../plugins/table.js'
import { requestId } from './access-log.js'
import type { Audit } from './audit.js'
import type { BucketLogs } from './bucket-logs.js'
import type { Contexts } from './context.js'
import { runOperation } from './run-operation.js'

interface PerformDeps {
  readonly credentials: Credentials
  readonly contexts: Pick<Contexts, 'for'>
  readonly table: Pick<OperationTable, 'select'>
  readonly limits: Limits
  readonly addressing: Pick<Addressing, 'basePaths'>
  readonly audit: Audit
  readonly bucketLogs: Pick<BucketLogs, 'ended'> | undefined
}

/** Carries out requests of key pairs that work for them in the background, by the steps of `createHandle`. */
export function performer({
  credentials,
  contexts,
  table,
  limits,
  addressing,
  audit,
  bucketLogs,
}: PerformDeps): Perform {
  return async (owner, asked, signal) => {
    refuseNames(asked, { addressing, limits })
    const caller = callerOf(await identityOf(owner, credentials), asked)
    const head = headOf(owner.client, asked)
    const selected = table.select(head)
    const context = contexts.for(caller, selected.operation, head)
    const started = performance.now()
    const record = async (reply: Reply, failure?: S3Error) => {
      await audit({ id: head.id, head, selected, caller, reply, failure })
      const answered = performance.now()
      const { id, method, bucket, key, headers, target: url, remoteAddress: remote } = head
      const { status } = reply
      const entry = {
        ...{ requestId: id, operation: selected.operation.name, method, bucket, key, status, remote, cut: false },
        ...{ bytesIn: 0, bytesOut: 0, ms: answered - started, ...(failure && { error: failure.code }) },
      }
      const length = caller.payload.bytes.length
      const incoming = { method, url, headers }
      bucketLogs?.ended(entry, { incoming, head, caller, context, reply, started, answered, length })
    }
    try {
      await authorize(selected, head, context)
      const { plugin, params } = selected
      const body = ownBody(head, caller.payload.bytes, limits)
      const request = { ...head, plugin, params, body, signal } as S3Request
      const reply = await runOperation(selected.operation, request, context)
      await record(reply)
      return reply
    } catch (thrown) {
      const failure = toS3Error(thrown)
      await record(errorReply(failure, { id: head.id, resource: head.path }), failure)
      throw failure
    }
  }
}

/** Decides about requests by the steps of `performer`, without carrying them out. */
export function decider(deps: Pick<PerformDeps, 'contexts' | 'table' | 'limits' | 'addressing'>): Decide {
  return async ({ identity, client }, asked) => {
    refuseNames(asked, deps)
    const caller = callerOf(identity, asked)
    const head = headOf(client, asked)
    const selected = deps.table.select(head)
    const { operation, plugin, params } = selected
    const context = deps.contexts.for(caller, operation, head)
    await authorize(selected, head, context)
    if (!operation.call) return
    const body = ownBody(head, caller.payload.bytes, deps.limits)
    const signal = new AbortController().signal
    await authorizeCall(operation.call, { ...head, plugin, params, body, signal } as S3Request, context)
  }
}

/** The names may come from a document that a client has written. Throws as for a request that names them. */
function refuseNames(
  { bucket, key }: OwnRequest,
  { addressing, limits }: Pick<PerformDeps, 'addressing' | 'limits'>,
): void {
  refuseNoBucketName(bucket)
  refuseReserved(bucket, addressing.basePaths, '')
  if (key !== undefined) refuseLongKey(key, limits.maxKeyBytes)
}

/** The key pair as it is now. */
async function identityOf({ accessKeyId, session }: RequestOwner, credentials: Credentials): Promise<Identity> {
  const found = await credentials(accessKeyId)
  if (!found) throw new S3Error('InvalidAccessKeyId')
  return session ? { ...found, session } : found
}

type BufferedCaller = Caller & { readonly payload: { readonly kind: 'buffered'; readonly bytes: Buffer } }

function callerOf(identity: Identity, { headers = {}, body = '' }: OwnRequest): BufferedCaller {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  // All that the server states itself counts as signed.
  const proof = { headers: Object.keys(headers), signature: randomUUID() }
  return { identity, presigned: false, payload: { kind: 'buffered', bytes }, proof }
}

function headOf(
  { remoteAddress, secure, host }: RequestOwner['client'],
  { method, bucket, key, query = {}, headers = {}, body = '', own }: OwnRequest,
): RequestHead {
  const path = `/${bucket}${key === undefined ? '' : `/${encodeURIComponent(key)}`}`
  const rawQuery = Object.entries(query)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&')
  const all = { ...headers, 'content-length': String(Buffer.byteLength(body)) }
  return {
    id: requestId(),
    ...{ method, target: `${path}?${rawQuery}`, rawPath: path, path, rawQuery, query: new Query(rawQuery) },
    ...{
      headers: all,
      rawHeaders: Object.entries(all).flat(),
      secure,
      host,
      hostBucket: undefined,
      signedHosts: [host],
    },
    ...{ remoteAddress, secrets: [], resource: key === undefined ? 'bucket' : 'object', bucket, key },
    ...(own && { own }),
  }
}
