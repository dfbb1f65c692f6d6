import { createHash } from 'node:crypto'
import { S3Error } from 'dealgate/plugin'
import { csvLine, encodeKey } from './csv.js'
import type { ReportOrder, Row, TaskResult } from './order.js'
import type { BatchRecord, BatchRun } from './records.js'
import { endOf } from './replies.js'
import { ownerGuard, type Send } from './task.js'
import { UNAVAILABLE } from './work.js'

/** Bytes of a file of results, beyond which the next one begins: it is in memory as a whole. */
const FILE_BYTES = 8 * 1024 * 1024

const SCHEMA = 'Bucket, Key, VersionId, TaskStatus, HTTPStatusCode, ErrorCode, ResultMessage'

const STATUSES = ['succeeded', 'failed'] as const

type TaskStatus = (typeof STATUSES)[number]

interface ResultsFile {
  readonly TaskExecutionStatus: TaskStatus
  readonly Bucket: string
  readonly MD5Checksum: string
  readonly Key: string
}

/**
 * Writes the report: files of results, and then the manifest that names them. What is written again after a restart has
 * the same keys.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-examples-reports.html
 * @returns the key of the manifest
 */
export async function writeReport(
  run: BatchRun,
  order: ReportOrder,
  record: BatchRecord,
  { send, now }: { readonly send: Send; readonly now: number },
): Promise<string> {
  const folder = reportFolder(order, run.id)
  const { bucket, scope } = order
  const results: ResultsFile[] = []
  const put = async (key: string, body: Buffer, type: string) => {
    const md5 = createHash('md5').update(body).digest()
    const headers = { ...ownerGuard(order), 'content-type': type, 'content-md5': md5.toString('base64') }
    await endOf(await send({ method: 'PUT', bucket, key, headers, body }))
    return md5.toString('hex')
  }
  const files = STATUSES.filter((status) => status === 'failed' || scope === 'AllTasks').map((status) => {
    let lines: string[] = []
    let bytes = 0
    let number = 0
    const flush = async () => {
      if (lines.length === 0) return
      const name = createHash('sha1').update(`${run.id} ${status} ${number++}`).digest('hex')
      const key = `${folder}/results/${name}.csv`
      const MD5Checksum = await put(key, Buffer.from(lines.join('')), 'text/csv; charset=utf-8')
      results.push({ TaskExecutionStatus: status, Bucket: bucket, MD5Checksum, Key: key })
      lines = []
      bytes = 0
    }
    const add = async (line: string) => {
      lines.push(line)
      bytes += Buffer.byteLength(line)
      if (bytes >= FILE_BYTES) await flush()
    }
    return { status, add, flush }
  })
  for await (const [row, result] of resultsOf(run, record))
    await files.find(({ status }) => status === statusOf(result))?.add(lineOf(row, result))
  for (const { flush } of files) await flush()
  const { succeeded, failed, listing } = record
  const document = {
    Format: 'Report_CSV_20180820',
    ReportCreationDate: new Date(now).toISOString(),
    Results: results,
    ReportSchema: SCHEMA,
    Summary: { TotalNumberOfTasks: listing.rows, NumberOfTasksSucceeded: succeeded, NumberOfTasksFailed: failed },
  }
  const manifest = Buffer.from(`${JSON.stringify(document, undefined, 2)}\n`)
  const key = `${folder}/manifest.json`
  // The model of the service names the one, its guide the other.
  for (const name of [`${folder}/report.json`, key]) await put(name, manifest, 'application/json')
  return key
}

/** The keys of the report of a job begin with it and `/`. */
export function reportFolder({ prefix }: Pick<ReportOrder, 'prefix'>, jobId: string): string {
  return `${prefix === '' ? '' : `${prefix}/`}job-${jobId}`
}

async function* resultsOf(run: BatchRun, { listing }: BatchRecord): AsyncGenerator<[Row, TaskResult]> {
  for (let number = 0; number < listing.chunks; number++) {
    const { rows, results } = await run.chunk(number)
    if (!results) return
    for (const [at, row] of rows.entries()) {
      const result = results[at]
      if (result) yield [row, result]
    }
  }
}

function statusOf({ ok }: TaskResult): TaskStatus {
  return ok ? 'succeeded' : 'failed'
}

function lineOf([bucket, key, versionId = '']: Row, result: TaskResult): string {
  const { status, code = '', message = '' } = result
  return csvLine([bucket, encodeKey(key), versionId, statusOf(result), String(status), code, message])
}

/** Throws what ends the job, whose report could not be written. */
export function reportFailed(thrown: unknown): never {
  if (!(thrown instanceof S3Error) || UNAVAILABLE.includes(thrown.code)) throw thrown
  const { code, message } = thrown
  throw new S3Error('ReportNotWritten', {
    status: 409,
    message: `The report could not be written: ${code}: ${message}`,
  })
}
