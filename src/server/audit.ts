import type { S3Error } from '../../common/errors/s3-error.js'
import { type Logger, redact } from '../../common/log.js'
import type { MaybePromise } from '../../common/maybe-promise.js'
import { givesMore } from '../access/required-actions.js'
import type { FormFacts, Jobs } from '../api/context.js'
import type { Caller, Session } from '../api/identity.js'
import type { Reply, RequestHead } from '../api/request.js'
import type { Selected } from '../plugins/table.js'
import { type Change, type Changes, kindOf } from './manage/changes.js'

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

interface Served {
  readonly id: string
  readonly head: RequestHead | undefined
  readonly selected: Selected | undefined
  readonly caller: Caller | undefined
  readonly form?: FormFacts | undefined
  readonly reply: Reply
  readonly failure: S3Error | undefined
}

interface Audited extends Served {
  readonly head: RequestHead
  readonly selected: Selected
}

/** Records a request, before its answer is sent. */
export type Audit = (served: Served) => MaybePromise<void>

/** True for operations that change access or settings, or can spend money. */
function isAudited({ operation }: Selected): boolean {
  return !READS.has(operation.on.method) && !CONTENT.has(operation.name)
}

/** True for a write of an object whose headers change who may access it, or delete what is to be retained. */
function changesAccess({ method, headers }: Pick<RequestHead, 'method' | 'headers'>): boolean {
  if (READS.has(method)) return false
  return givesMore(headers) || headers['x-amz-bypass-governance-retention'] !== undefined
}

/** The versions that a request has removed for good, or was to; undefined if it names none. */
function versionsOf({ operation }: Selected, { query }: RequestHead, { removals }: Reply): string[] | undefined {
  const id = operation.name === 'DeleteObject' ? query.get('versionId') : undefined
  if (id !== undefined) return [`version ${id.slice(0, MAX_ID)}`]
  const named = removals?.filter(({ versionId }) => versionId !== undefined) ?? []
  if (named.length === 0) return undefined
  return named
    .filter(({ error }) => error === undefined)
    .map(({ key, versionId = '' }) => `version ${versionId} of ${redact(key)}`)
}

/** Characters of an id, which a client may have made up. */
const MAX_ID = 40

/**
 * Records requests of audited operations: in the log, also refused ones, and among the changes what they changed. The
 * answer is sent even if that fails. The entry is on the disk before that, except for the refusal of an unsigned
 * request: a client without a key must not make the disk work.
 */
export function auditOf(audit: AuditLog | undefined, changes: Pick<Changes, 'add'>, log: Logger): Audit {
  return (served) => {
    const { head, selected, form, reply } = served
    if (!head || !selected) return undefined
    const versions = versionsOf(selected, head, reply)
    const changing = changesAccess(head) || (form !== undefined && changesAccess({ ...head, ...form }))
    if (!isAudited(selected) && !changing && !versions) return undefined
    return record({ ...served, head, selected }, versions)
  }

  async function record(
    { id, head, selected, form, reply, failure, ...served }: Audited,
    versions: readonly string[] | undefined,
  ): Promise<void> {
    const caller = served.caller ?? form?.caller
    const key = head.key ?? form?.key
    const session = caller?.identity.session
    const entry = {
      time: new Date().toISOString(),
      action: selected.operation.name,
      plugin: selected.plugin,
      accessKeyId: caller?.identity.accessKeyId,
      session: sessionName(session),
      requestId: id,
      remote: head.remoteAddress,
      bucket: head.bucket,
      key: key === undefined ? undefined : redact(key),
      resource: selected.params.AccessKeyId ?? selected.params.AccessKey,
      changed: failure ? undefined : (reply.changed ?? versions),
      outcome: failure?.code ?? (isLate(reply) ? 'begun' : 'ok'),
      status: reply.status,
    }
    const durable = caller !== undefined || failure === undefined
    await audit
      ?.write(entry, { durable })
      .catch((err) => log.error({ err, requestId: id, audit: entry }, 'the audit log cannot be written'))
    const kind = failure === undefined && isAudited(selected) ? kindOf(selected, caller) : undefined
    if (kind === undefined) return
    await changes
      .add(kind, entry)
      .catch((err) => log.error({ err, requestId: id, audit: entry }, 'a change cannot be recorded'))
  }
}

function sessionName(session: Session | undefined): string | undefined {
  return session && (session.role === undefined ? session.name : `${session.role}/${session.name}`)
}

function isLate({ body }: Reply): boolean {
  return typeof body === 'object' && 'late' in body
}

/** A change of access, settings or spending, or an order that can spend money. */
export interface AuditEntry extends Change {
  readonly plugin?: string | undefined
  /** User of the operating system, for a command such as `dealgate keys add`. */
  readonly user?: string | undefined
  /** What a command has spent, in coins. */
  readonly amount?: string | undefined
  /** `ok`, `begun` for an answer that comes later, the S3 error code, or `failed` for a command. */
  readonly outcome: string
  readonly status?: number | undefined
  readonly jobId?: string | undefined
}

interface AuditWriting {
  /** The entry is on the disk when `write` resolves. Default true; false for refused requests of unknown clients. */
  readonly durable?: boolean
}

/** Takes the entries. */
export interface AuditLog {
  write(entry: AuditEntry, writing?: AuditWriting): Promise<void>
}

/** Records each job that is created: jobs are what spends money. */
export function auditedJobs<T extends Jobs>(jobs: T, audit: AuditLog, log: Logger): T {
  const create: Jobs['create'] = async (asked) => {
    const job = await jobs.create(asked)
    const entry = {
      time: new Date().toISOString(),
      action: `job ${asked.kind}`,
      accessKeyId: asked.accessKeyId || undefined,
      session: sessionName(asked.session),
      resource: asked.resource,
      outcome: 'ok',
      jobId: job.id,
    }
    await audit.write(entry).catch((err) => log.error({ err, audit: entry }, 'the audit log cannot be written'))
    return job
  }
  return { ...jobs, create }
}
