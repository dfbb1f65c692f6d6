import { type Actor, actorOf, capOf, type Found } from 'dealgate/paid'
import {
  type Context,
  defineCall,
  formatAmount,
  type JobKind,
  OutcomeUnknown,
  parseAmount,
  type RunningJob,
  S3Error,
} from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { type TaskDetail, taskDetail } from '../documents.js'
import { SOURCE } from '../operations/send.js'
import { platform } from '../platform.js'
import { acting, TOKEN } from '../sign-in.js'
import { CREATE_TASK, fileSizesOf, readManifest } from './job.js'
import { isSeenBy, type MadeTask } from './made-tasks.js'
import type { TaskInput } from './reconcile.js'
import { csvPart, durationOf, MAX_DURATION, mostCost, sendForm } from './terms.js'

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
  Price: z
    .string()
    .optional()
    .describe('Of the bid that won. Decimal, as text: fil per GiB and epoch. Absent if the platform shows none.'),
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

const fil = z.string().describe('Decimal, as text: fil.')

/** What accepting a bid would cost, by the arithmetic of the caps that it then has to keep. */
export function quoteBid(deps: TaskDeps) {
  return defineCall({
    name: 'QuoteBid',
    source: SOURCE,
    summary:
      'Quotes the most that a task costs at the price of a bid, and what may still be spent today. Spends nothing.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/task/v1/tasks/{TaskUuid}/quote' },
    query: z.strictObject({
      price: z
        .string()
        .regex(/^\d{1,60}(\.\d{1,18})?$/)
        .describe('Of the bid. Decimal: fil per GiB and epoch.'),
    }),
    result: z.object({
      TaskUuid: z.string(),
      Price: z.string().describe('Decimal, as text: fil per GiB and epoch.'),
      Files: z.int().optional().describe('Absent for a task whose CSV this server does not have.'),
      Duration: z.int().optional().describe('Epochs. Absent for a task that this server did not create.'),
      Total: fil.optional().describe('Decimal, as text: fil. Absent where files or their sizes are not known.'),
      Currency: z.literal('fil'),
      DailyCap: fil.optional().describe('Decimal, as text: fil that may be spent today (UTC); absent for no cap.'),
      LeftToday: fil.optional().describe('Decimal, as text: fil of it that are left, for this task.'),
      WithinCap: z.boolean().describe('Whether the task costs no more than is left.'),
    }),
    root: 'QuoteBidResult',
    async answer({ request, query: { price } }, context) {
      const { TaskUuid: uuid = '' } = request.params
      const task = await deps.made.withUuid(uuid)
      const isSeen = task !== undefined && isSeenBy(task, context)
      const { made, csv, duration }: Partial<TaskFacts> = isSeen ? await knownOf(deps, { uuid }, context) : {}
      const sizes = csv === undefined ? [undefined] : fileSizesOf(csv)
      const total = sizes.includes(undefined)
        ? undefined
        : mostCost({ MaxPrice: price, Duration: duration ?? MAX_DURATION }, sizes)
      const tightest = await deps.ledger.tightest(made?.bucket ?? '', await capsOf(deps, context, made), made?.jobId)
      return {
        ...{ TaskUuid: uuid, Price: price, Currency: 'fil' as const },
        ...(csv !== undefined && { Files: sizes.length }),
        ...(duration !== undefined && { Duration: duration }),
        ...(total !== undefined && { Total: formatAmount(total) }),
        ...(tightest && { DailyCap: formatAmount(tightest.cap), LeftToday: formatAmount(tightest.left) }),
        // Without a known cost, a bid is refused where there is a cap.
        WithinCap: tightest === undefined || (total !== undefined && total <= tightest.left),
      }
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
        (detail) => done(deps, job, detail),
      ),
    concurrency: 2,
  }
}

async function accept(deps: TaskDeps, job: AcceptingJob): Promise<Accepted> {
  const { input, signal } = job
  const { id } = job.job
  const actor = await deps.jobTokens.actorOf(job, 'PlatformIdentityRequired')
  const before = await read(deps, job, actor)
  if (isGiven(deps, before, input)) return done(deps, job, before)
  const known = await knownOf(deps, input, job.context)
  try {
    await reserve(deps, job, known)
    await deps.sent.begin(id, { uuid: input.uuid, sent: deps.host.now() })
    await job.commit()
  } catch (error) {
    await deps.ledger.release(id, () => job.owned())
    throw error
  }
  job.report({ phase: 'Sending' })
  let message = ''
  try {
    // The last thing before the request, which cannot state the price: the platform takes the bid as it is then.
    const detail = await read(deps, job, actor)
    if (isGiven(deps, detail, input)) return await done(deps, job, detail)
    const fields: [string, string][] = [['miner_fid', input.minerId]]
    const file = csvPart(deps, known.csv)
    const form = { method: 'PUT', path: ['uuid_tasks', input.uuid], fields, file, signal } as const
    message = await acting(deps, actor, 'any', (token) =>
      sendForm(deps, { ...form, token }, (answer) => {
        // The task is there: what is missing is the call.
        if ([404, 405, 501].includes(answer.status)) throw unsupported()
        return platform.successOf(answer, { forbidden: notPoster, missing: unsupported }).message
      }),
    )
  } catch (error) {
    if (error instanceof S3Error) await deps.sent.takeBack(job, 'acceptance')
    throw error
  }
  const after = await read(deps, job, actor).catch((cause) => {
    throw new OutcomeUnknown('The bid was accepted, but its price could not be read yet.', { cause })
  })
  return done(deps, job, after, message)
}

/** The task has the provider. Throws OutcomeUnknown if what it costs cannot be recorded; it can be repeated. */
async function done(deps: TaskDeps, job: AcceptingJob, detail: TaskDetail, message = ''): Promise<Accepted> {
  const { uuid, minerId, price } = job.input
  const [won] = bidsOf(detail, minerId, 'Won')
  if (won === undefined) job.note(`The platform shows no bid of ${minerId} that has won.`)
  else if (!isSamePrice(won.Price, price)) {
    job.note(`The bid that won is of ${won.Price} fil per GiB and epoch, not of ${price}: it changed meanwhile.`)
  }
  try {
    // What is given away counts, also above the cap.
    if (won !== undefined && isAbove(won.Price, price)) {
      await reserve(deps, job, await knownOf(deps, job.input, job.context), won.Price)
    }
    await deps.sent.settle(job.job.id)
  } catch (cause) {
    throw new OutcomeUnknown('The bid was accepted, but could not be recorded.', { cause })
  }
  job.link('Task', `/-/task/v1/tasks/${encodeURIComponent(uuid)}`)
  return {
    ...{ JobId: job.job.id, TaskUuid: uuid, MinerId: minerId },
    ...(won !== undefined && { Price: won.Price }),
    Message: message,
  }
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

/**
 * Whether the task has the provider, by a bid of this price. Throws PlatformRefused if it has another, if another bid
 * has won, and if there is no such bid.
 */
function isGiven(deps: TaskDeps, detail: TaskDetail, { minerId, price }: AcceptInput): boolean {
  const { MinerId } = detail.Task
  const isFree = MinerId === null || MinerId === ''
  if (!isFree && MinerId !== minerId) throw refused(`The task has the storage provider ${MinerId} already.`)
  const bids = bidsOf(detail, minerId, isFree ? 'New' : 'Won').filter(({ Price }) => isSamePrice(Price, price))
  if (isFree ? bids.some((bid) => !isOver(bid, deps.host.now())) : bids.length > 0) return !isFree
  throw refused(
    isFree
      ? `${minerId} has no bid of ${price} fil per GiB and epoch that is open.`
      : `The task has the storage provider ${minerId} already, but not by a bid of ${price} fil per GiB and epoch.`,
  )
}

type Bid = TaskDetail['Bids'][number]

/** The bids of a provider in this state. A bidder is a user with storage providers, or is named by its provider. */
function bidsOf({ Bids }: TaskDetail, minerId: string, state: 'New' | 'Won'): Bid[] {
  return Bids.filter(
    ({ Status, Username, User }) =>
      Status === state && (Username === minerId || User?.Providers.some(({ MinerId }) => MinerId === minerId)),
  )
}

/** Whether the days are over for which a bid holds; false if the platform does not state them. */
function isOver({ CreatedAt, ExpireDays }: Bid, now: number): boolean {
  return CreatedAt !== undefined && ExpireDays !== null && Date.parse(CreatedAt) + ExpireDays * DAY_MS < now
}

const DAY_MS = 86_400_000

/** Platforms write prices in their own way. */
function isSamePrice(one: string, other: string): boolean {
  return one === other || (parseAmount(one) ?? -1n) === (parseAmount(other) ?? -2n)
}

function isAbove(one: string, other: string): boolean {
  return (parseAmount(one) ?? 0n) > (parseAmount(other) ?? 0n)
}

/** What is known of a task beyond what the platform shows. */
interface TaskFacts {
  readonly made: MadeTask | undefined
  /** The CSV of the request, or the one by which this server created the task. */
  readonly csv: string | undefined
  /** Epochs. */
  readonly duration: number | undefined
}

/** The job that created the task tells its CSV while it is on record, and the object is the same. */
async function knownOf(deps: TaskDeps, input: Pick<AcceptInput, 'uuid' | 'csv'>, context: Context): Promise<TaskFacts> {
  const made = await deps.made.withUuid(input.uuid)
  const job = made && (await deps.host.own.jobs.get(made.jobId))
  const { csv, manifest, terms } = (job?.operation === CREATE_TASK ? job.input : {}) as Partial<TaskInput>
  const duration = made?.duration ?? (terms && durationOf(terms))
  const own = input.csv ?? csv
  if (own !== undefined || manifest === undefined) return { made, csv: own, duration }
  const read = await readManifest(context, manifest).catch((error) => {
    if (error instanceof S3Error && error.status < 500) return undefined
    throw error
  })
  return { made, csv: read, duration }
}

/**
 * Reserves what the deals cost at the price of the bid, beyond what today counts for the creation of the task already.
 * Throws SpendCapReached, DealTermsInvalid.
 * @param given price of a bid that has won already: the caps refuse it no more
 */
async function reserve(deps: TaskDeps, job: AcceptingJob, { made, csv, duration }: TaskFacts, given?: string) {
  const { input, context } = job
  const caps = await capsOf(deps, context, made)
  if (caps.all === undefined && caps.bucket === undefined) return
  const terms = { MaxPrice: given ?? input.price, Duration: duration ?? MAX_DURATION }
  const amount = mostCost(terms, csv === undefined ? [undefined] : fileSizesOf(csv))
  await deps.ledger.reserve(
    { jobId: job.job.id, bucket: made?.bucket ?? '', amount, countedBy: made?.jobId },
    given === undefined ? caps : { all: undefined, bucket: undefined },
  )
}

async function capsOf(deps: TaskDeps, context: Context, made: MadeTask | undefined) {
  const ofBucket = made?.bucket === undefined ? undefined : await context.settings.get(made.bucket, 'deal')
  return { all: capOf(deps.options.maxSpendPerDay), bucket: capOf(ofBucket?.MaxSpendPerDay) }
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
