import {
  type Actor,
  actorOf,
  capOf,
  defineCall,
  type Found,
  type JobKind,
  parseAmount,
  type RunningJob,
  S3Error,
} from 'dealgate'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { type TaskDetail, taskDetail } from '../documents.js'
import { SOURCE } from '../operations/send.js'
import { platform } from '../platform.js'
import { acting, TOKEN } from '../sign-in.js'
import { fileSizesOf, readManifest } from './job.js'
import type { TaskInput } from './reconcile.js'
import { csvPart, mostCost, sendForm } from './terms.js'

const ACCEPT = 'task:AcceptBid'

interface AcceptInput {
  readonly uuid: string
  readonly minerId: string
  /** Decimal: fil per GiB and epoch, as the bid has it. */
  readonly price: string
  /** The CSV of the deals, from the request. */
  readonly csv?: string
  /** The token that the request carried, sealed. */
  readonly bearer?: string
}

type AcceptingJob = RunningJob<AcceptInput>

const accepted = z.object({
  JobId: z.string(),
  TaskUuid: z.string(),
  MinerId: z.string(),
  Price: z.string().describe('Of the bid. Decimal, as text: fil per GiB and epoch.'),
  Message: z.string(),
})

type Accepted = z.output<typeof accepted>

export function acceptBid(deps: TaskDeps) {
  return defineCall({
    name: 'AcceptBid',
    source: SOURCE,
    summary: 'Gives a public task of the caller to a storage provider that has bid for it.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/task/v1/tasks/{TaskUuid}/accept' },
    body: z.strictObject({
      MinerId: z.string().min(1).max(100).describe('The provider whose bid it is.'),
      Price: z.string().min(1).max(100).describe('Of the bid: with another price by now, it is refused.'),
      File: z.string().optional().describe('The CSV of the deals, for a platform that wants it again.'),
    }),
    result: accepted,
    job: ACCEPT,
    spends: true,
    async order({ request, body }, context) {
      const { TaskUuid: uuid = '' } = request.params
      if (body.File !== undefined) fileSizesOf(body.File)
      const actor = actorOf(context, request, TOKEN)
      await acting(deps, actor, 'any', async () => undefined)
      const input: AcceptInput = {
        ...{ uuid, minerId: body.MinerId, price: body.Price },
        ...(body.File !== undefined && { csv: body.File }),
        ...(await deps.jobTokens.seal(actor)),
      }
      return { resource: `/-/task/v1/tasks/${uuid}`, input }
    },
  })
}

/** Names the provider of a task once or not at all: if the answer is lost, the task itself tells what came of it. */
export function acceptBids(deps: TaskDeps): JobKind<AcceptInput, Accepted> {
  return {
    name: ACCEPT,
    run: (job) => accept(deps, job),
    reconcile: (job) =>
      deps.sent.reconcile(
        job,
        async () => findGiven(deps, job, await deps.jobTokens.actorOf(job, 'PlatformIdentityRequired')),
        async () => done(deps, job),
      ),
    concurrency: 2,
  }
}

async function accept(deps: TaskDeps, job: AcceptingJob): Promise<Accepted> {
  const { input, signal } = job
  const { id } = job.job
  const actor = await deps.jobTokens.actorOf(job, 'PlatformIdentityRequired')
  const detail = await read(deps, job, actor)
  const { MinerId } = detail.Task
  if (MinerId === input.minerId) return done(deps, job)
  if (MinerId !== null && MinerId !== '') throw refused(`The task has the storage provider ${MinerId} already.`)
  if (!hasBid(detail, input))
    throw refused(`${input.minerId} has no bid of ${input.price} fil per GiB and epoch that is open.`)
  const csv = input.csv ?? (await ownCsv(deps, job))
  try {
    await reserve(deps, job, detail, csv)
    await deps.sent.begin(id, { uuid: input.uuid, sent: deps.host.now() })
    await job.commit()
  } catch (error) {
    await deps.ledger.release(id, () => job.owned())
    throw error
  }
  job.report({ phase: 'Sending' })
  try {
    const fields: [string, string][] = [['miner_fid', input.minerId]]
    const form = { method: 'PUT', path: ['uuid_tasks', input.uuid], fields, file: csvPart(deps, csv), signal } as const
    const message = await acting(deps, actor, 'any', (token) =>
      sendForm(deps, { ...form, token }, (answer) => {
        // The task is there: what is missing is the call.
        if ([404, 405, 501].includes(answer.status)) throw unsupported()
        return platform.successOf(answer, { forbidden: notPoster, missing: unsupported }).message
      }),
    )
    return await done(deps, job, message)
  } catch (error) {
    if (error instanceof S3Error) await deps.sent.takeBack(job, 'acceptance')
    throw error
  }
}

async function done(deps: TaskDeps, job: AcceptingJob, message = ''): Promise<Accepted> {
  const { uuid, minerId, price } = job.input
  await deps.sent.settle(job.job.id)
  job.link('Task', `/-/task/v1/tasks/${encodeURIComponent(uuid)}`)
  return { JobId: job.job.id, TaskUuid: uuid, MinerId: minerId, Price: price, Message: message }
}

/** Throws S3Error NoSuchTask. */
async function read(deps: TaskDeps, { input: { uuid }, signal }: AcceptingJob, actor: Actor): Promise<TaskDetail> {
  const missing = () => new S3Error('NoSuchTask', { fields: { TaskUuid: uuid } })
  return acting(deps, actor, 'any', async (token) =>
    platform.dataOf(await deps.client.send({ method: 'GET', path: ['tasks', uuid], token, signal }), taskDetail.read, {
      missing,
    }),
  )
}

async function findGiven(deps: TaskDeps, job: AcceptingJob, actor: Actor): Promise<Found<TaskDetail>> {
  const detail = await read(deps, job, actor)
  return detail.Task.MinerId === job.input.minerId ? detail : 'none'
}

/** A bidder is a user with storage providers, or is named by its provider. */
function hasBid({ Bids }: TaskDetail, { minerId, price }: AcceptInput): boolean {
  return Bids.some(
    ({ Status, Price, Username, User }) =>
      Status === 'New' &&
      Number(Price) === Number(price) &&
      (Username === minerId || User?.Providers.some(({ MinerId }) => MinerId === minerId)),
  )
}

/** The CSV by which this server created the task, while its job is on record and the object is the same. */
async function ownCsv(deps: TaskDeps, { input, context }: AcceptingJob): Promise<string | undefined> {
  const made = await deps.made.withUuid(input.uuid)
  const job = made && (await deps.host.own.jobs.get(made.jobId))
  const { csv, manifest } = (job?.input ?? {}) as Partial<TaskInput>
  if (csv !== undefined || manifest === undefined) return csv
  return readManifest(context, manifest).catch((error) => {
    if (error instanceof S3Error && error.status < 500) return undefined
    throw error
  })
}

/**
 * Reserves what the deals cost at the price of the bid. A task of this server was counted with its MaxPrice when it was
 * created. Throws SpendCapReached, DealTermsInvalid.
 */
async function reserve(deps: TaskDeps, job: AcceptingJob, { Task }: TaskDetail, csv: string | undefined) {
  const { input, context } = job
  const made = await deps.made.withUuid(input.uuid)
  const [most, price] = [Task.MaxPrice ?? '', input.price].map(parseAmount)
  if (made && input.csv === undefined && most !== undefined && price !== undefined && price <= most) return
  const ofBucket = made?.bucket === undefined ? undefined : await context.settings.get(made.bucket, 'deal')
  const caps = { all: capOf(deps.options.maxSpendPerDay), bucket: capOf(ofBucket?.MaxSpendPerDay) }
  if (caps.all === undefined && caps.bucket === undefined) return
  const amount = mostCost({ MaxPrice: input.price }, csv === undefined ? [undefined] : fileSizesOf(csv))
  await deps.ledger.reserve({ jobId: job.job.id, bucket: made?.bucket ?? '', amount }, caps)
}

function refused(message: string): S3Error {
  return new S3Error('PlatformRefused', { status: 409, message })
}

function notPoster(message: string): S3Error {
  return new S3Error('AccessDenied', { message: `The task platform says: ${message}` })
}

function unsupported(): S3Error {
  return new S3Error('NotImplemented', {
    message:
      'This task platform has no call by which a poster names the provider of a task (PUT /uuid_tasks). Accept the bid at the platform itself.',
  })
}
