import { givesMore } from '../../access/door/asked-by.js'
import type { Caller } from '../../auth/caller.js'
import type { S3Error } from '../../common/errors/s3-error.js'
import { type Logger, redact } from '../../common/log.js'
import type { Selected } from '../../plugins/table/table.js'
import type { RequestHead } from '../../request/s3-request.js'
import type { Reply } from '../../response/reply.js'
import type { AuditLog } from './audit-log.js'

/** Operations that write objects and nothing else. What they order besides, such as deals, is a job. */
const CONTENT = new Set([
  'PutObject',
  'PostObject',
  'CopyObject',
  'DeleteObject',
  'DeleteObjects',
  'CreateMultipartUpload',
  'UploadPart',
  'UploadPartCopy',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
  'PutObjectTagging',
  'DeleteObjectTagging',
])

/** Preflights of browsers are POST-like requests that change nothing. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** What a browser form says in place of the head of its request. */
export interface FormFacts {
  /** The signer of the form, or of the request. */
  readonly caller: Caller | undefined
  readonly key: string
  readonly headers: RequestHead['headers']
}

export interface Served {
  readonly id: string
  readonly head: RequestHead | undefined
  readonly selected: Selected | undefined
  readonly caller: Caller | undefined
  readonly form?: FormFacts | undefined
  readonly reply: Reply
  readonly failure: S3Error | undefined
}

/** Records a request, before its answer is sent. */
export type Audit = (served: Served) => Promise<void>

/** True for operations that change access or settings, or can spend money. */
export function isAudited({ operation }: Selected): boolean {
  return !READS.has(operation.on.method) && !CONTENT.has(operation.name)
}

/** True for a write of an object whose headers change who may access it, or delete what is to be retained. */
function changesAccess({ method, headers }: Pick<RequestHead, 'method' | 'headers'>): boolean {
  if (READS.has(method)) return false
  return givesMore(headers) || headers['x-amz-bypass-governance-retention'] !== undefined
}

/**
 * Records requests of audited operations, also refused ones. The answer is sent even if the log cannot be written. The
 * entry is on the disk before that, except for the refusal of an unsigned request: a client without a key must not
 * make the disk work.
 */
export function auditOf(audit: AuditLog, log: Logger): Audit {
  return async ({ id, head, selected, form, reply, failure, ...served }) => {
    if (!head || !selected) return
    if (!isAudited(selected) && !changesAccess(head) && !(form && changesAccess({ ...head, ...form }))) return
    const caller = served.caller ?? form?.caller
    const key = head.key ?? form?.key
    const session = caller?.identity.session
    const entry = {
      time: new Date().toISOString(),
      action: selected.operation.name,
      plugin: selected.plugin,
      accessKeyId: caller?.identity.accessKeyId,
      session: session && `${session.role}/${session.name}`,
      requestId: id,
      remote: head.remoteAddress,
      bucket: head.bucket,
      key: key === undefined ? undefined : redact(key),
      outcome: failure?.code ?? (isLate(reply) ? 'begun' : 'ok'),
      status: reply.status,
    }
    const durable = caller !== undefined || failure === undefined
    await audit
      .write(entry, { durable })
      .catch((err) => log.error({ err, requestId: id, audit: entry }, 'the audit log cannot be written'))
  }
}

function isLate({ body }: Reply): boolean {
  return typeof body === 'object' && 'late' in body
}
