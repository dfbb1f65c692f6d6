import { createHash, type Hash, randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { HttpError } from '../../http/errors.js'
import type { Provider } from '../../network/network.js'
import type { UploadedFile } from '../body.js'
import type { PlatformContext } from '../context.js'
import { readTaskCsv, TaskFileError, type TaskRow } from '../csv.js'
import type { PlatformLimits } from '../limits.js'
import { assignmentMail } from '../mail-delivery.js'
import { expiryOf, firstDue } from '../scheduler.js'
import type { PlatformTables } from '../store.js'
import { pieceSizeOf } from '../units.js'
import type { Task, TaskTerms } from './task.js'
import type { DealFacts, OpenTasks } from './task-table.js'

const BLOCKS_PER_TURN = 16

interface TaskRequest {
  readonly user: number
  readonly terms: TaskTerms
  /** The UUID that the client chose. */
  readonly uuid: string | undefined
  /** The CSV with the deals; a public task may have none. */
  readonly file: UploadedFile | undefined
  /** The provider of a private task. */
  readonly provider: Provider | undefined
}

export interface PostResult {
  readonly task: Task
  /** True when a mail to the provider is on its way. */
  readonly mailed: boolean
}

/**
 * Posts a task with the deals of its CSV. It is durable when the promise resolves; when it rejects, there is no task. A
 * repeated request with the same UUID gives the task of the first. Throws HttpError 400 for the CSV, 409 for a UUID
 * that another request has used, and for more open tasks or deals than a user may have.
 */
export async function postTask(context: PlatformContext, request: TaskRequest): Promise<PostResult> {
  const rows = rowsOf(request.file)
  try {
    return await postRows(context, request, rows)
  } finally {
    await rows.return(undefined)
  }
}

async function postRows(
  context: PlatformContext,
  request: TaskRequest,
  rows: AsyncGenerator<TaskRow[], undefined>,
): Promise<PostResult> {
  const first = await rows.next()
  const uuid = uuidOf(request, first.value?.[0])
  refuseOtherProvider(request, first.value?.[0])
  const digest = await digestOf(request)
  const before = await context.db.read.tasks.findByUuid(uuid)
  if (before !== undefined) return repeated(before, request, digest)
  await refuseBeyondQuota(context.db.read, context.limits, request.user, 0)
  const draft = await addDraft(context, request, uuid, digest)
  try {
    const facts = await addDeals(context, draft, request.provider, first, rows)
    return await post(context, draft, request, { uuid, digest, ...facts })
  } catch (error) {
    await removeDraft(context, draft)
    throw error
  }
}

/** The reason of the refusal matters more than a draft that stays: the next start removes it. */
export async function removeDraft({ market, log }: PlatformContext, draft: number): Promise<void> {
  try {
    await market.drafts.remove(draft)
  } catch (err) {
    log.warn({ err, draft }, 'Could not remove the draft of a task. The next start removes it.')
  }
}

/** Throws HttpError 400 for a CSV that cannot be used. */
export async function* rowsOf(file: UploadedFile | undefined): AsyncGenerator<TaskRow[], undefined> {
  try {
    if (file !== undefined) yield* readTaskCsv(inChunks(file.content))
  } catch (error) {
    throw error instanceof TaskFileError ? new HttpError(400, error.message) : error
  }
  return undefined
}

/** Block by block: the deals of each are added in one transaction. */
async function* inChunks(blocks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* blocks
}

function uuidOf({ uuid }: TaskRequest, row: TaskRow | undefined): string {
  if (uuid !== undefined && row?.uuid !== undefined && uuid !== row.uuid) {
    throw new HttpError(400, 'Row 2, column uuid: it contradicts the field uuid of the form.')
  }
  return uuid ?? row?.uuid ?? randomUUID()
}

/** All rows name the same provider, or none does: the reader checks that. */
function refuseOtherProvider({ terms }: TaskRequest, row: TaskRow | undefined): void {
  if (row?.minerId === undefined || row.minerId === terms.minerId) return
  throw new HttpError(
    400,
    terms.minerId === null
      ? 'Row 2, column miner_id: it contradicts is_public = 1: bids decide on the provider of a public task.'
      : 'Row 2, column miner_id: it contradicts the field miner_id of the form.',
  )
}

/**
 * @param added deals of the task that is to be posted, as far as they are known
 * @param replaced what the user has open that this task takes the place of
 */
export async function refuseBeyondQuota(
  { tasks }: Pick<PlatformTables, 'tasks'>,
  { maxOpenTasks, maxOpenDeals }: PlatformLimits,
  user: number,
  added: number,
  replaced: OpenTasks = { tasks: 0, deals: 0 },
): Promise<void> {
  const all = await tasks.openOf(user)
  const open = { tasks: all.tasks - replaced.tasks, deals: all.deals - replaced.deals }
  const later = 'Post it when others are done or have expired.'
  if (open.tasks >= maxOpenTasks) {
    throw new HttpError(409, `You have ${open.tasks} open tasks, and may have at most ${maxOpenTasks}. ${later}`)
  }
  if (open.deals + added > maxOpenDeals) {
    const sum = `You have ${open.deals} open deals, and may have at most ${maxOpenDeals}`
    throw new HttpError(409, added === 0 ? `${sum}. ${later}` : `${sum}: this task has ${added} more. ${later}`)
  }
}

async function digestOf({ terms, file }: TaskRequest): Promise<string> {
  const prices = { minPrice: String(terms.minPrice), maxPrice: String(terms.maxPrice) }
  const digest = createHash('sha256').update(JSON.stringify({ ...terms, ...prices }))
  await addFile(digest, file)
  return digest.digest('hex')
}

export async function addFile(digest: Hash, file: UploadedFile | undefined): Promise<void> {
  for (const [n, block] of file?.content.entries() ?? []) {
    digest.update(block)
    if ((n + 1) % BLOCKS_PER_TURN === 0) await setImmediate()
  }
}

function repeated(before: { task: Task; digest: string }, { user, provider }: TaskRequest, digest: string): PostResult {
  const { task } = before
  if (task.user !== user || before.digest !== digest) {
    throw new HttpError(409, `Another task has the UUID ${task.uuid}. Give each task one of its own.`)
  }
  return { task, mailed: provider !== undefined && assignmentMail(task, task.deals, provider) !== undefined }
}

export function addDraft(
  { db, network, seconds }: PlatformContext,
  { user, terms, file }: Pick<TaskRequest, 'user' | 'terms' | 'file'>,
  uuid: string,
  digest: string,
): Promise<number> {
  const createdEpoch = network.epoch()
  const expiresEpoch = terms.expireDays === null ? null : expiryOf(createdEpoch, terms.expireDays, network.epochSeconds)
  const due = terms.minerId === null ? firstDue({ ...terms, createdEpoch, expiresEpoch }) : null
  const fileName = file === undefined || file.name === '' ? `${uuid}.csv` : file.name
  return db.transaction(({ tasks }) =>
    tasks.draft({
      ...terms,
      uuid,
      user,
      digest,
      fileName,
      created: seconds(),
      createdEpoch,
      expiresEpoch,
      due,
    }),
  )
}

export async function addDeals(
  { db, network, seconds }: PlatformContext,
  draft: number,
  provider: Provider | undefined,
  first: IteratorResult<TaskRow[], undefined>,
  rows: AsyncGenerator<TaskRow[], undefined>,
): Promise<DealFacts> {
  let facts: DealFacts = { deals: 0, smallest: null, largest: null, sent: 0 }
  for (let next = first; !next.done; next = await rows.next()) {
    const added = next.value
    const isSent = async ({ dealCid }: TaskRow): Promise<boolean> =>
      provider !== undefined &&
      dealCid !== undefined &&
      (await network.offline?.knows(provider.minerId, dealCid)) === true
    const sent = await Promise.all(added.map(isSent))
    await db.transaction(async ({ deals }) => {
      for (const [n, row] of added.entries()) await deals.add(draft, row, seconds(), sent[n] === true)
    })
    facts = added.reduce(withRow, { ...facts, sent: facts.sent + sent.filter(Boolean).length })
  }
  return facts
}

function withRow({ deals, smallest, largest, sent }: DealFacts, { fileSize }: TaskRow): DealFacts {
  if (fileSize === undefined) return { deals: deals + 1, smallest, largest, sent }
  const size = pieceSizeOf(fileSize)
  return {
    deals: deals + 1,
    smallest: Math.min(smallest ?? size, size),
    largest: Math.max(largest ?? size, size),
    sent,
  }
}

async function post(
  context: PlatformContext,
  draft: number,
  request: TaskRequest,
  { uuid, digest, ...facts }: DealFacts & { uuid: string; digest: string },
): Promise<PostResult> {
  const { market, db, limits, seconds } = context
  const result = await db.transaction(async (tables) => {
    const { tasks, mails } = tables
    // Another request with this UUID may have been faster.
    const before = await tasks.findByUuid(uuid)
    if (before !== undefined) return repeated(before, request, digest)
    await refuseBeyondQuota(tables, limits, request.user, facts.deals)
    await tasks.post(draft, facts)
    const task = (await tasks.find(draft)) as Task
    const mail = request.provider && assignmentMail(task, facts.deals, request.provider)
    if (mail !== undefined) await mails.add(mail, seconds())
    return { task, mailed: mail !== undefined }
  })
  if (result.task.id !== draft) await removeDraft(context, draft)
  else if (request.provider !== undefined) market.onAssigned()
  return result
}
