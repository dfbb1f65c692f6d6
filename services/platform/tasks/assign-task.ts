import { createHash } from 'node:crypto'
import { HttpError } from '../../http/errors.js'
import type { Provider } from '../../network/network.js'
import type { UploadedFile } from '../body.js'
import type { PlatformContext } from '../context.js'
import type { TaskRow } from '../csv.js'
import { assignmentMail } from '../mail-delivery.js'
import type { PlatformTables } from '../store.js'
import { addDeals, addDraft, addFile, type PostResult, refuseBeyondQuota, removeDraft, rowsOf } from './create-task.js'
import type { Task } from './task.js'
import type { DealFacts } from './task-table.js'

interface Assignment {
  readonly task: Task
  /** The provider that the poster chooses. */
  readonly provider: Provider
  /** The CSV with the deals, which replace those of the task; undefined: these stay. */
  readonly file: UploadedFile | undefined
}

interface Redefined extends Assignment {
  readonly file: UploadedFile
}

/**
 * Gives a task to the provider that its poster names, with the deals of a CSV. Both are durable when the promise
 * resolves; when it rejects, the task is as before. A repeated request gives the same result. Throws HttpError 400
 * for the CSV, 409 for a task that has a provider, and for more open deals than a user may have.
 */
export async function assignTask(context: PlatformContext, assignment: Assignment): Promise<PostResult> {
  const { file } = assignment
  if (file === undefined) return assign(context, assignment, { digest: await digestOf(assignment) })
  const rows = rowsOf(file)
  try {
    return await assignRows(context, { ...assignment, file }, rows)
  } finally {
    await rows.return(undefined)
  }
}

async function assignRows(
  context: PlatformContext,
  assignment: Redefined,
  rows: AsyncGenerator<TaskRow[], undefined>,
): Promise<PostResult> {
  const { task, provider, file } = assignment
  const first = await rows.next()
  refuseOtherTask(assignment, first.value?.[0])
  const digest = await digestOf(assignment)
  const before = await repeated(context.db.read, assignment, digest)
  if (before !== undefined) return before
  const draft = await addDraft(context, { user: task.user, terms: task, file }, task.uuid, digest)
  try {
    const facts = await addDeals(context, draft, provider, first, rows)
    return await assign(context, assignment, { digest, drafted: { draft, facts } })
  } finally {
    // After a success, it has the former deals.
    await removeDraft(context, draft)
  }
}

function refuseOtherTask({ task, provider }: Assignment, row: TaskRow | undefined): void {
  if (row?.uuid !== undefined && row.uuid !== task.uuid) {
    throw new HttpError(400, 'Row 2, column uuid: it contradicts the UUID in the path.')
  }
  if (row?.minerId !== undefined && row.minerId !== provider.minerId) {
    throw new HttpError(400, 'Row 2, column miner_id: it contradicts the field miner_fid of the form.')
  }
}

async function digestOf({ provider, file }: Assignment): Promise<string> {
  const digest = createHash('sha256').update(`${provider.minerId}\n`)
  if (file !== undefined) await addFile(digest, file)
  return digest.digest('hex')
}

/** Undefined for a task without a provider. Throws HttpError 409 unless this request has named the provider. */
async function repeated(
  { tasks }: PlatformTables,
  { task: { id }, provider }: Assignment,
  digest: string,
): Promise<PostResult | undefined> {
  const task = (await tasks.find(id)) as Task
  if (task.minerId === null) return undefined
  if ((await tasks.assignmentOf(id)) !== digest) {
    throw new HttpError(409, `The task has the storage provider ${task.minerId} already.`)
  }
  return { task, mailed: assignmentMail(task, task.deals, provider) !== undefined }
}

async function assign(
  context: PlatformContext,
  assignment: Assignment,
  { digest, drafted }: { digest: string; drafted?: { draft: number; facts: DealFacts } },
): Promise<PostResult> {
  const { market, db, limits, seconds } = context
  const { provider, file } = assignment
  const { id } = assignment.task
  const result = await db.transaction(async (tables) => {
    const { tasks, bids, mails } = tables
    // A bid may have won meanwhile, or another request may have been faster.
    const before = await repeated(tables, assignment, digest)
    if (before !== undefined) return before
    const former = (await tasks.find(id)) as Task
    const open = former.status === 'Created' ? { tasks: 1, deals: former.deals } : { tasks: 0, deals: 0 }
    const deals = drafted?.facts.deals ?? former.deals
    await refuseBeyondQuota(tables, limits, former.user, deals, open)
    if (drafted) await tasks.takeDeals(id, drafted.draft, drafted.facts)
    await tasks.giveTo(id, provider.minerId, file?.name || former.fileName, digest)
    const offers = await bids.ofTask(id)
    const bid = offers.find(({ minerId, status }) => minerId === provider.minerId && status === 'New')
    if (bid === undefined) await bids.close(id)
    else await bids.win(bid, seconds())
    const task = (await tasks.find(id)) as Task
    const mail = assignmentMail(task, deals, provider)
    if (mail !== undefined) await mails.add(mail, seconds())
    return { task, mailed: mail !== undefined }
  })
  market.onAssigned()
  return result
}
