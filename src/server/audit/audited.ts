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

export interface Served {
  readonly id: string
  readonly head: RequestHead | undefined
  readonly selected: Selected | undefined
  readonly caller: Caller | undefined
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
function changesAccess({ method, headers }: RequestHead): boolean {
  if (READS.has(method)) return false
  return givesMore(headers) || headers['x-amz-bypass-governance-retention'] !== undefined
}

/** Records requests of audited operations, also refused ones. The answer is sent even if the log cannot be written. */
export function auditOf(audit: AuditLog, log: Logger): Audit {
  return async ({ id, head, selected, caller, reply, failure }) => {
    if (!head || !selected || !(isAudited(selected) || changesAccess(head))) return
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
      key: head.key === undefined ? undefined : redact(head.key),
      outcome: failure?.code ?? (isLate(reply) ? 'begun' : 'ok'),
      status: reply.status,
    }
    await audit.write(entry).catch((err) => log.error({ err, audit: entry }, 'the audit log cannot be written'))
  }
}

function isLate({ body }: Reply): boolean {
  return typeof body === 'object' && 'late' in body
}
