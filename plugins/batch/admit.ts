import {
  type Context,
  type Decide,
  type Job,
  type OwnRequest,
  type RequestOwner,
  S3Error,
  type S3Request,
} from 'dealgate/plugin'
import pMap from 'p-map'
import type { BatchOrder, Row } from './order.js'
import type { BatchRecord, BatchRecords } from './records.js'
import { reportFolder } from './report.js'
import { ownerGuard } from './task.js'
import { requestsOf } from './task-requests.js'

/** Decisions at the same time: some ask the gateway for the owner of a bucket. */
const CONCURRENCY = 8

interface AdmitDeps {
  readonly records: Pick<BatchRecords, 'get' | 'rows'>
  readonly decide: Decide
}

/** The client of a request, whose address conditions of policies see. */
export function clientOf({ remoteAddress, secure, host }: S3Request): RequestOwner['client'] {
  return { remoteAddress, secure, host }
}

/**
 * Throws AccessDenied unless the caller may itself send the requests that the job has still to send: those that read
 * its manifest or list its bucket, those of its tasks, and those that write its report. Of the tasks, the first hundred
 * that are on record are decided on here, or the prefixes of a filter before its objects are known. Each further task
 * is decided on when it is sent, also for the session and from the address of this caller.
 */
export async function requireHeld(
  { records, decide }: AdmitDeps,
  job: Pick<Job<BatchOrder>, 'id' | 'input'>,
  request: S3Request,
  { caller }: Context,
): Promise<void> {
  if (!caller) throw new S3Error('AccessDenied')
  const record = await records.get(job.id)
  const by = { identity: caller.identity, client: clientOf(request) }
  const rows = (await rowsOnRecord(records, job.id, record)) ?? placesOf(job.input)
  const asked = [...ownRequests(job, record), ...rows.flatMap((row) => requestsOf(job.input.operation, row))]
  await pMap(asked, (one) => decide(by, one).catch(passOthers), { concurrency: CONCURRENCY })
}

/** The task meets a refusal that is not about rights, and reports it. */
function passOthers(thrown: unknown): void {
  if (thrown instanceof S3Error && thrown.status < 500 && thrown.status !== 403) return
  throw thrown
}

function* ownRequests(
  { id, input }: Pick<Job<BatchOrder>, 'id' | 'input'>,
  record: BatchRecord,
): Generator<OwnRequest> {
  const { manifest, filter, report } = input
  if (report && record.report === undefined)
    yield {
      method: 'PUT',
      bucket: report.bucket,
      key: `${reportFolder(report, id)}/manifest.json`,
      headers: ownerGuard(report),
    }
  if (record.prepared) return
  if (manifest) {
    const { bucket, key, versionId } = manifest
    yield { method: 'GET', bucket, key, ...(versionId !== undefined && { query: { versionId } }) }
  }
  if (!filter) return
  const kind: Readonly<Record<string, string>> = filter.versions === 'Current' ? { 'list-type': '2' } : { versions: '' }
  for (const prefix of prefixesOf(filter))
    yield { method: 'GET', bucket: filter.bucket, query: { ...kind, prefix }, headers: ownerGuard(filter) }
}

function prefixesOf({ prefixes }: { readonly prefixes: readonly string[] }): readonly string[] {
  return prefixes.length > 0 ? prefixes : ['']
}

/** The next rows of a job, if it has prepared them. */
async function rowsOnRecord(
  records: AdmitDeps['records'],
  id: string,
  { prepared, cleared, listing, done }: BatchRecord,
): Promise<readonly Row[] | undefined> {
  if (!prepared || cleared) return undefined
  if (done >= listing.chunks) return []
  return records.rows(id, done)
}

/**
 * In place of objects that are not known yet: what is allowed for all keys that begin with a text is so for the text.
 */
function placesOf({ filter }: BatchOrder): readonly Row[] {
  return filter ? prefixesOf(filter).map((prefix): Row => [filter.bucket, prefix]) : []
}
