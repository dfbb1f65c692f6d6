import { type AnyOperation, type Context, defineCall, hasEnded, PageOf, type S3Request, z } from 'dealgate/plugin'
import { type BatchJob, type BatchJobs, priorityOf, STATUSES, statusOf, tagsOf } from './batch-jobs.js'
import { OPERATIONS, orderSchema, readOrder, tagPairs } from './native-order.js'

const SOURCE = 'docs/batch.md'
const ALL = '/-/batch/v1'
const ONE = `${ALL}/{JobId}`

const count = z.int().min(0)
const tag = z.object({ Key: z.string(), Value: z.string() })

const batchDocument = z.object({
  JobId: z.string(),
  Operation: z.enum(OPERATIONS),
  Status: z.enum(STATUSES),
  Waiting: z.string().optional().describe('What a job waits for that no client has paused.'),
  Description: z.string().optional(),
  Priority: z.int(),
  ConfirmationRequired: z.boolean(),
  DryRun: z.boolean(),
  Resource: z.string().describe('The manifest, or the bucket of the filter.'),
  TotalNumberOfTasks: count,
  NumberOfTasksSucceeded: count,
  NumberOfTasksFailed: count,
  Bytes: count.optional().describe('Of the objects of a filter, and after an estimate.'),
  Price: z.string().optional().describe('Decimal, as text: fil for all deals, after an estimate.'),
  NotEstimated: count.optional().describe('Tasks that would fail, after an estimate.'),
  CreationTime: z.string(),
  TerminationTime: z.string().optional(),
  ElapsedTimeInActiveSeconds: count,
  Failures: z
    .array(
      z.object({
        ...{ Bucket: z.string(), Key: z.string(), VersionId: z.string().optional() },
        ...{ ErrorCode: z.string(), Message: z.string() },
      }),
    )
    .meta({ element: 'Failure' })
    .describe('The first hundred failed tasks; the report has all.'),
  FailureReasons: z
    .array(z.object({ FailureCode: z.string(), FailureReason: z.string() }))
    .meta({ element: 'member' })
    .describe('Why the job as a whole has failed.'),
  Report: z.object({ Bucket: z.string(), Key: z.string() }).optional().describe('The manifest of the report.'),
  Tags: z.array(tag).meta({ element: 'Tag' }),
})

function documentOf(batch: BatchJob): z.output<typeof batchDocument> {
  const { job, record } = batch
  const { input: order, progress } = job
  const status = statusOf(job)
  const waiting = status === 'Paused' && progress.phase !== 'Paused' ? progress.phase : undefined
  const { price, chunks, failed } = record.estimated
  return {
    ...{ JobId: job.id, Operation: order.operation.name, Status: status, Priority: priorityOf(batch) },
    ...(waiting !== undefined && { Waiting: waiting }),
    ...(order.description !== '' && { Description: order.description }),
    ...{ ConfirmationRequired: order.confirmationRequired, DryRun: order.dryRun, Resource: job.resource },
    TotalNumberOfTasks: progress.tasks.total,
    NumberOfTasksSucceeded: progress.tasks.succeeded,
    NumberOfTasksFailed: progress.tasks.failed,
    ...((chunks > 0 || order.filter) && { Bytes: record.bytes }),
    ...(price !== undefined && { Price: price }),
    ...(chunks > 0 && { NotEstimated: failed }),
    CreationTime: new Date(job.created).toISOString(),
    ...(hasEnded(job.status) && { TerminationTime: new Date(job.updated).toISOString() }),
    ElapsedTimeInActiveSeconds: Math.floor(record.active / 1000),
    Failures: [...record.failures],
    FailureReasons: job.failure ? [{ FailureCode: job.failure.code, FailureReason: job.failure.message }] : [],
    ...(record.report && { Report: { Bucket: record.report.bucket, Key: record.report.key } }),
    Tags: tagsOf(batch).map(({ key, value }) => ({ Key: key, Value: value })),
  }
}

const shared = { source: SOURCE, access: 'signed', result: batchDocument, root: 'BatchJob' } as const

/** The calls of batch jobs. */
export function batchCalls(jobs: BatchJobs, now: () => number): readonly AnyOperation[] {
  const find = ({ params }: Pick<S3Request, 'params'>, context: Context) => jobs.get(params.JobId ?? '', context)
  const describe = async (request: S3Request, context: Context) => documentOf(await find(request, context))
  /** A call that changes one job, and answers with what it has become. */
  const change = (
    name: string,
    summary: string,
    path: string,
    does: (batch: BatchJob, context: Context, request: S3Request) => Promise<unknown>,
  ) =>
    defineCall({
      ...{ ...shared, name, summary, on: { method: 'POST', resource: 'service', path: `${ONE}/${path}` } },
      async answer({ request }, context) {
        await does(await find(request, context), context, request)
        return describe(request, context)
      },
    })
  return [
    defineCall({
      ...shared,
      name: 'CreateBatchJob',
      summary: 'Does one thing to many objects, which a manifest lists or a filter chooses.',
      on: { method: 'POST', resource: 'service', path: ALL },
      body: orderSchema,
      status: () => 202,
      jobId: ({ JobId }) => JobId,
      async answer({ request, body }, context) {
        const id = await jobs.create(request, context, { order: readOrder(body, now()), body })
        return documentOf(await jobs.get(id, context))
      },
    }),
    defineCall({
      ...{ source: SOURCE, access: 'signed', name: 'ListBatchJobs', summary: 'Lists batch jobs, newest first.' },
      on: { method: 'GET', resource: 'service', path: ALL },
      query: z.strictObject({ status: z.enum(STATUSES).optional().describe('Lists jobs in this state only.') }),
      result: z.object({ Jobs: z.array(batchDocument).meta({ element: 'BatchJob' }) }),
      pages: 'Jobs',
      async answer({ query, page }, context) {
        const statuses = query.status === undefined ? undefined : [query.status]
        const found = await jobs.list(context, { before: page.from, limit: page.limit + 1, statuses })
        const shown = found.slice(0, page.limit)
        return { Jobs: new PageOf(shown.map(documentOf), found.length > page.limit ? shown.at(-1)?.job.id : undefined) }
      },
    }),
    defineCall({
      ...{ ...shared, name: 'DescribeBatchJob', summary: 'Returns the state, progress and outcome of a batch job.' },
      on: { method: 'GET', resource: 'service', path: ONE },
      answer: ({ request }, context) => describe(request, context),
    }),
    change('RunBatchJob', 'Confirms a batch job that waits for it.', 'run', (batch, context, request) =>
      jobs.confirm(batch, request, context),
    ),
    change(
      'CancelBatchJob',
      'Ends a batch job behind the tasks in progress, with a report.',
      'cancel',
      (batch, context) => jobs.cancel(batch, context),
    ),
    change('PauseBatchJob', 'Pauses a batch job behind the tasks in progress.', 'pause', (batch) => jobs.pause(batch)),
    change(
      'ResumeBatchJob',
      'Lets a paused batch job go on, or one that waits look again.',
      'resume',
      (batch, context, request) => jobs.resume(batch, request, context),
    ),
    defineCall({
      ...{ ...shared, name: 'UpdateBatchJobPriority', summary: 'Changes the priority of a batch job.' },
      on: { method: 'POST', resource: 'service', path: `${ONE}/priority` },
      body: z.strictObject({ Priority: z.int().min(0).max(2_147_483_647) }),
      async answer({ request, body: { Priority: priority } }, context) {
        await jobs.prioritize(await find(request, context), request, context, priority)
        return describe(request, context)
      },
    }),
    defineCall({
      ...{ ...shared, name: 'TagBatchJob', summary: 'Replaces the tags of a batch job.' },
      on: { method: 'POST', resource: 'service', path: `${ONE}/tags` },
      body: z.strictObject({ Tags: z.array(tag).max(50).meta({ element: 'Tag' }) }),
      async answer({ request, body }, context) {
        await jobs.update(await find(request, context), (record) => ({ ...record, tags: tagPairs(body.Tags) }), 'any')
        return describe(request, context)
      },
    }),
  ]
}
