import { type Context, type Expansion, type ExpansionSubject, repeatable, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from './deps.js'
import { bid, platformDeal, type TaskDetail, task, taskDetail, withUuid } from './documents.js'
import { platform } from './platform.js'
import { acting } from './sign-in.js'

/** Newest tasks of a bucket that are searched for a deal. */
const SEARCHED = 20
/** Deals of a task that are searched. */
const DEALS = 1000

/** A task, its bids, and its own view of the deal. */
const expandedTask = z.object({
  ...task.shown.shape,
  Bids: z.array(bid.shown).meta({ element: 'Bid' }),
  AverageBid: z.string().nullable(),
  Deal: platformDeal.shown.optional(),
})

type Details = (uuid: string) => Promise<TaskDetail | undefined>

/** `expand=task`: the task by which a deal was made, as it is now, with its bids and its own view of the deal. */
export function taskExpansion(deps: TaskDeps): Expansion {
  return {
    name: 'task',
    member: 'Task',
    summary: 'The task by which the deal was made, with its bids.',
    result: expandedTask,
    join: async (deals, context) => {
      const details = detailsFor(deps, context)
      const ofBuckets = new Map<string, Promise<readonly string[]>>()
      const uuidsOf = (bucket: string) => {
        const known = ofBuckets.get(bucket) ?? tasksOf(deps, context, bucket)
        ofBuckets.set(bucket, known)
        return known
      }
      return Promise.all(deals.map((deal) => joined(deal, details, uuidsOf)))
    },
  }
}

async function joined(
  { bucket, dealCid, taskUuid }: ExpansionSubject,
  details: Details,
  uuidsOf: (bucket: string) => Promise<readonly string[]>,
): Promise<object | undefined> {
  for (const uuid of taskUuid === undefined ? await uuidsOf(bucket) : [taskUuid]) {
    const detail = await details(uuid)
    const deal = detail?.Deals.find((one) => one.DealCid === dealCid)
    if (!detail || (!deal && taskUuid === undefined)) continue
    return {
      ...withUuid(detail.Task, uuid),
      Bids: detail.Bids,
      AverageBid: detail.AverageBid,
      ...(deal && { Deal: deal }),
    }
  }
  return undefined
}

/** UUIDs of tasks that were created from the bucket, for a caller who may read all of it. */
async function tasksOf(deps: TaskDeps, { checks }: Context, bucket: string): Promise<readonly string[]> {
  try {
    checks.requireWholeBucket(bucket, 'read')
  } catch {
    return []
  }
  const made = await deps.made.ofBucket(bucket)
  return made.slice(0, SEARCHED).flatMap(({ uuid }) => (uuid === undefined || uuid === '' ? [] : [uuid]))
}

/** Gets each task once; undefined for one that the platform does not show to the caller. */
function detailsFor(deps: TaskDeps, { caller }: Context): Details {
  const known = new Map<string, Promise<TaskDetail | undefined>>()
  const actor = { identity: caller?.identity, bearer: undefined }
  const get = async (uuid: string) => {
    try {
      return await acting(deps, actor, 'optional', async (token) => {
        const answer = await deps.client.send({ method: 'GET', path: ['tasks', uuid], query: { limit: DEALS }, token })
        return platform.dataOf(answer, taskDetail.read, { missing: () => new S3Error('NoSuchTask') })
      })
    } catch (error) {
      if (error instanceof S3Error && error.code === 'NoSuchTask') return undefined
      throw repeatable(error)
    }
  }
  return (uuid) => {
    const detail = known.get(uuid) ?? get(uuid)
    known.set(uuid, detail)
    return detail
  }
}
