import {
  type AnyOperation,
  type Context,
  defineOperation,
  hasEnded,
  type Reply,
  reply,
  S3Error,
  type S3Request,
  xml,
} from 'dealgate/plugin'
import { type BatchJob, type BatchJobs, priorityOf, STATUSES, statusOf, tagsOf as tagsOfJob } from './batch-jobs.js'
import { readCreateJob } from './control-create-job.js'
import { refused, tagsOf } from './control-values.js'
import { MANIFEST_FORMATS } from './order.js'

const API = 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_'
const PATH = '/v20180820/jobs'

const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
const CONTROL_NAMESPACE = 'http://awss3control.amazonaws.com/doc/2018-08-20/'

/** All calls of S3 Control carry it, and no other. */
const ACCOUNT = 'x-amz-account-id'

const MAX_TAGS = 50

/** Errors that S3 Control has other names for. */
const NAMES: Readonly<Record<string, string>> = {
  IdempotencyParameterMismatch: 'IdempotencyException',
  InvalidArgument: 'InvalidRequest',
}

/** The calls of S3 Control about jobs: https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops.html */
export function controlOperations(jobs: BatchJobs): readonly AnyOperation[] {
  const find = (request: S3Request, context: Context) => jobs.get(request.params.JobId ?? '', context)
  const define = (
    { name, method, path, params, lists }: ControlCall,
    run: (request: S3Request<'service'>, context: Context) => Promise<Reply>,
  ) =>
    defineOperation({
      ...{ name, source: `${API}${name}.html`, access: 'signed', action: `s3:${name}` },
      on: {
        method,
        resource: 'service',
        path: `${PATH}${path}`,
        header: ACCOUNT,
        params: params ?? [],
        lists: lists ?? [],
      },
      run: async (request, context) => {
        await requireOwnAction(name, request, context)
        return run(request, context).catch(renamed)
      },
    })
  return [
    define({ name: 'CreateJob', method: 'POST', path: '' }, async (request, context) => {
      const id = await jobs.create(
        request,
        context,
        readCreateJob(await xml.read(request, context, 'CreateJobRequest')),
      )
      return answer('CreateJobResult', xml.element('JobId', id))
    }),
    define({ name: 'DescribeJob', method: 'GET', path: '/{JobId}' }, async (request, context) =>
      answer('DescribeJobResult', `<Job>${described(await find(request, context), context)}</Job>`),
    ),
    define(
      {
        ...{ name: 'ListJobs', method: 'GET', path: '' },
        ...{ params: ['jobStatuses', 'nextToken', 'maxResults'], lists: ['jobStatuses'] },
      },
      async ({ query }, context) => {
        const statuses = query.entries.flatMap(([name, value]) => (name === 'jobStatuses' ? [value] : []))
        if (statuses.some((word) => !(STATUSES as readonly string[]).includes(word)))
          throw refused('A job has no such status.')
        const most = /^\d{1,4}$/.test(query.get('maxResults') ?? '1000') ? Number(query.get('maxResults') ?? 1000) : -1
        if (most < 0 || most > 1000) throw refused('maxResults is a number from 0 to 1000.')
        const before = query.get('nextToken')
        if (before !== undefined && !/^j-[0-9A-Z]{26}$/.test(before))
          throw new S3Error('InvalidNextTokenException', { status: 400, message: 'There is no such nextToken.' })
        const found = await jobs.list(context, { before, limit: most + 1, statuses })
        const shown = found.slice(0, most)
        const next = found.length > most ? shown.at(-1)?.job.id : undefined
        const members = shown.map((batch) => `<member>${listed(batch)}</member>`).join('')
        return answer('ListJobsResult', `${xml.element('NextToken', next)}<Jobs>${members}</Jobs>`)
      },
    ),
    define(
      {
        ...{ name: 'UpdateJobStatus', method: 'POST', path: '/{JobId}/status' },
        params: ['requestedJobStatus', 'statusUpdateReason'],
      },
      async (request, context) => {
        const batch = await find(request, context)
        const wanted = request.query.get('requestedJobStatus')
        const reason = request.query.get('statusUpdateReason')
        if (reason !== undefined && (reason.length < 1 || reason.length > 256))
          throw refused('statusUpdateReason has 1 to 256 characters.')
        if (wanted === 'Cancelled') await jobs.cancel(batch, context, reason)
        else if (wanted === 'Ready') await jobs.confirm(batch, request, context, reason)
        else throw refused('requestedJobStatus is Cancelled or Ready.')
        const status = wanted === 'Ready' ? 'Ready' : statusOf((await find(request, context)).job)
        const shown = wanted === 'Cancelled' && status !== 'Cancelled' ? 'Cancelling' : status
        const { id } = batch.job
        return answer(
          'UpdateJobStatusResult',
          `${xml.element('JobId', id)}${xml.element('Status', shown)}${xml.element('StatusUpdateReason', reason)}`,
        )
      },
    ),
    define(
      { name: 'UpdateJobPriority', method: 'POST', path: '/{JobId}/priority', params: ['priority'] },
      async (request, context) => {
        const batch = await find(request, context)
        const text = request.query.get('priority') ?? ''
        if (!/^\d{1,10}$/.test(text) || Number(text) > 2_147_483_647)
          throw refused('priority is a number from 0 to 2147483647.')
        const priority = Number(text)
        await jobs.prioritize(batch, request, context, priority)
        return answer(
          'UpdateJobPriorityResult',
          `${xml.element('JobId', batch.job.id)}${xml.element('Priority', priority)}`,
        )
      },
    ),
    define({ name: 'GetJobTagging', method: 'GET', path: '/{JobId}/tagging' }, async (request, context) => {
      const tags = tagsOfJob(await find(request, context))
      const members = tags.map(
        ({ key, value }) => `<member>${xml.element('Key', key)}${xml.element('Value', value)}</member>`,
      )
      return answer('GetJobTaggingResult', `<Tags>${members.join('')}</Tags>`)
    }),
    define({ name: 'PutJobTagging', method: 'PUT', path: '/{JobId}/tagging' }, async (request, context) => {
      const batch = await find(request, context)
      const tags = tagsOf((await xml.read(request, context, 'PutJobTaggingRequest')).children.get('Tags')?.[0])
      if (tags.length > MAX_TAGS)
        throw new S3Error('TooManyTagsException', { status: 400, message: `A job has at most ${MAX_TAGS} tags.` })
      await jobs.update(batch, (record) => ({ ...record, tags }), 'any')
      return answer('PutJobTaggingResult', '')
    }),
    define({ name: 'DeleteJobTagging', method: 'DELETE', path: '/{JobId}/tagging' }, async (request, context) => {
      await jobs.update(await find(request, context), (record) => ({ ...record, tags: [] }), 'any')
      return answer('DeleteJobTaggingResult', '')
    }),
  ]
}

/** What a call does, in the calls of our own: a key pair that may make some of them needs the action for it. */
const SAME: Readonly<Record<string, string>> = {
  CreateJob: 'CreateBatchJob',
  DescribeJob: 'DescribeBatchJob',
  ListJobs: 'ListBatchJobs',
  UpdateJobPriority: 'UpdateBatchJobPriority',
  GetJobTagging: 'DescribeBatchJob',
  PutJobTagging: 'TagBatchJob',
  DeleteJobTagging: 'TagBatchJob',
}

/** Policies have decided about the action of S3. The rights of a key pair know those of calls alone. */
async function requireOwnAction(name: string, { query }: S3Request, { caller, checks }: Context): Promise<void> {
  if (!caller?.identity.rights) return
  const ready = query.get('requestedJobStatus') === 'Ready'
  await checks.requireAction(`batch:${SAME[name] ?? (ready ? 'RunBatchJob' : 'CancelBatchJob')}`)
}

interface ControlCall {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Behind that of all jobs. */
  readonly path: string
  readonly params?: readonly string[]
  readonly lists?: readonly string[]
}

function renamed(thrown: unknown): never {
  const name = thrown instanceof S3Error ? NAMES[thrown.code] : undefined
  if (name === undefined || !(thrown instanceof S3Error)) throw thrown
  throw new S3Error(name, { status: thrown.status === 409 ? 400 : thrown.status, message: thrown.message })
}

function answer(root: string, content: string): Reply {
  return reply.xml(`${XML_DECLARATION}<${root} xmlns="${CONTROL_NAMESPACE}">${content}</${root}>`)
}

function described(batch: BatchJob, context: Context): string {
  const { job, record } = batch
  const { input, failure } = job
  const failures = failure
    ? `<FailureReasons><member>${xml.element('FailureCode', failure.code.slice(0, 64))}${xml.element('FailureReason', failure.message.slice(0, 256))}</member></FailureReasons>`
    : ''
  const { Operation, Manifest, ManifestGenerator, Report, RoleArn } = input.control ?? {}
  return [
    xml.element('JobId', job.id),
    xml.element('ConfirmationRequired', input.confirmationRequired),
    xml.element('Description', input.description || undefined),
    xml.element('JobArn', `arn:aws:s3:${context.server.region}:${context.canonicalId}:job/${job.id}`),
    xml.element('Status', statusOf(job)),
    ...[Manifest ?? manifestElement(batch), Operation, ManifestGenerator],
    xml.element('Priority', priorityOf(batch)),
    progressOf(batch),
    xml.element('StatusUpdateReason', record.reason),
    ...[failures, Report ?? reportElement(batch)],
    ...timesOf(batch),
    RoleArn,
    record.suspended === undefined
      ? ''
      : `${xml.element('SuspendedDate', new Date(record.suspended).toISOString())}${xml.element('SuspendedCause', 'Awaiting confirmation')}`,
  ].join('')
}

/** The manifest of a job that `POST /-/batch/v1` has created. */
function manifestElement({ job: { input } }: BatchJob): string {
  const { manifest } = input
  if (!manifest) return ''
  const fields = manifest.fields.map((field) => xml.element('member', field)).join('')
  const spec = `${xml.element('Format', manifest.format)}${manifest.format === MANIFEST_FORMATS[0] ? `<Fields>${fields}</Fields>` : ''}`
  const location = `${xml.element('ObjectArn', `arn:aws:s3:::${manifest.bucket}/${manifest.key}`)}${xml.element('ETag', manifest.etag ?? '')}`
  return `<Manifest><Spec>${spec}</Spec><Location>${location}</Location></Manifest>`
}

function reportElement({ job: { input } }: BatchJob): string {
  const { report } = input
  const where = report
    ? `${xml.element('Bucket', `arn:aws:s3:::${report.bucket}`)}${xml.element('Prefix', report.prefix || undefined)}${xml.element('ReportScope', report.scope)}`
    : ''
  return `<Report>${xml.element('Enabled', report !== undefined)}${where}</Report>`
}

function listed(batch: BatchJob): string {
  const { job } = batch
  const { control, description, operation } = job.input
  return [
    xml.element('JobId', job.id),
    xml.element('Description', description || undefined),
    xml.element('Operation', control?.name ?? operation.name),
    xml.element('Priority', priorityOf(batch)),
    xml.element('Status', statusOf(job)),
    ...timesOf(batch),
    progressOf(batch),
  ].join('')
}

function timesOf({ job }: BatchJob): string[] {
  const time = (ms: number) => new Date(ms).toISOString()
  return [
    xml.element('CreationTime', time(job.created)),
    hasEnded(job.status) ? xml.element('TerminationDate', time(job.updated)) : '',
  ]
}

function progressOf({ job, record }: BatchJob): string {
  const { total, succeeded, failed } = job.progress.tasks
  const counts = [
    xml.element('TotalNumberOfTasks', total),
    xml.element('NumberOfTasksSucceeded', succeeded),
    xml.element('NumberOfTasksFailed', failed),
    `<Timers>${xml.element('ElapsedTimeInActiveSeconds', Math.floor(record.active / 1000))}</Timers>`,
  ]
  return `<ProgressSummary>${counts.join('')}</ProgressSummary>`
}
