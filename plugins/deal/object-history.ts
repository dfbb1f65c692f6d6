import type { Context, Job, StoredObject } from 'dealgate/plugin'
import { z } from 'zod'
import { wholeSeconds } from './deal-document.js'
import type { DealDeps } from './deps.js'
import { type DealRecord, endBegins, isFinal, statesOf } from './records/deal-record.js'
import type { ObjectEvent } from './records/object-events.js'
import { payingAccount, type VersionRef } from './subject.js'
import { reportedAmount } from './terms/terms.js'

/** What can happen to an object on its way through deals. */
const EVENTS = [
  'Stored',
  'OfflineDealAwaited',
  'DealRequested',
  'DealFailed',
  'DealMade',
  'DealState',
  'DealVerified',
  'DealDoubted',
  'DealEnding',
  'DealEnded',
  'DealRetired',
  'RenewalFailed',
  'Evicted',
  'EvictionRefused',
  'RestoreRequested',
  'RestoreFailed',
  'RestoreProlonged',
  'Restored',
] as const

export const eventDocument = z.object({
  Event: z.enum(EVENTS),
  Time: z.string().describe('RFC 3339.'),
  State: z.string().optional().describe('Of the deal, as the network first reported it at that time.'),
  Code: z.string().optional().describe('Error code of a failure.'),
  Message: z
    .string()
    .optional()
    .describe('Why it happened. Left out for key pairs and sessions with rights of their own.'),
  StorageClass: z.string().optional().describe('The class that the object was stored in or moved to.'),
  DealCid: z.string().optional(),
  DataCid: z.string().optional(),
  PieceCid: z.string().optional(),
  MinerId: z.string().optional(),
  Price: reportedAmount.optional().describe('Decimal, as text: fil per epoch for the whole piece.'),
  Cause: z.enum(['call', 'class', 'lifecycle', 'schedule']).optional(),
  RenewsDealCid: z.string().optional().describe('The deal that this one follows.'),
  TaskUuid: z.string().optional(),
  Until: z.string().optional().describe('Until when the restored copy stays, or the deal lasts; RFC 3339.'),
  JobId: z.string().optional(),
  JobStatus: z
    .string()
    .optional()
    .describe('Present status of the job, in its last event and while the job is on record.'),
  Phase: z.string().optional().describe('What the job is doing or waiting for.'),
  EarlierVersion: z.boolean().optional().describe('It concerns an object that this one has replaced.'),
})

type EventDocument = z.output<typeof eventDocument>

/** An event before it is shown. */
interface ReportedEvent extends Omit<EventDocument, 'Time' | 'JobStatus' | 'Phase' | 'EarlierVersion'> {
  /** ms since 1970. */
  readonly time: number
  readonly revision?: string | undefined
}

/**
 * What happened to an object, oldest first: from the object, its deals and jobs, and from events that are on record.
 * Events of an object that was replaced or removed are for the gateway account that they happened to: the bucket may
 * have been another account's then.
 * @param ref only what happened to this version
 */
export async function historyOf(
  deps: DealDeps,
  context: Context,
  subject: { readonly bucket: string; readonly key: string },
  ref?: VersionRef,
): Promise<readonly EventDocument[]> {
  const { bucket, key } = subject
  const object = await context.store.find(bucket, key, ref)
  const account = payingAccount(context.caller)
  const maySee = (one: { readonly revision?: string | undefined; readonly account: string }) =>
    (object !== undefined && one.revision === object.revision) || (!ref && one.account === account)
  const deals = (await deps.deals.of(bucket, key)).filter(maySee)
  const kept = (await deps.events.of(subject)).filter(maySee)
  const reportedOf = (event: ObjectEvent) => keptEvent(event, mayKnow(context, event.by))
  const reported = [
    ...(object ? [stored(object)] : []),
    ...(object ? await awaited(deps, object) : []),
    ...kept.map(reportedOf),
    ...deals.flatMap((deal) => eventsOfDeal(deal, deals, deps)),
  ]
  const jobs = await jobsOf(deps, reported, object)
  for (const job of jobs.values()) {
    if (!reported.some(({ JobId }) => JobId === job.id))
      reported.push(...eventsOfJob(job, object, mayKnow(context, job.accessKeyId)))
  }
  return documents(reported, jobs, object?.revision)
}

/** The events of one deal, oldest first. */
export async function historyOfDeal(deps: DealDeps, deal: DealRecord): Promise<readonly EventDocument[]> {
  const others = deal.key === undefined ? [deal] : await deps.deals.of(deal.bucket, deal.key)
  return documents(eventsOfDeal(deal, others, deps), new Map(), deal.revision)
}

/** Why something failed may state what is spent, which is not for every key pair that may read the object. */
function mayKnow({ caller }: Context, by: string): boolean {
  const { rights, policies, session, accessKeyId } = caller?.identity ?? {}
  return (!rights && !policies && !session?.policy) || by === accessKeyId
}

function stored({ lastModified, archive, revision }: StoredObject): ReportedEvent {
  const storageClass = archive?.storageClass
  return {
    ...{ Event: 'Stored', time: Date.parse(lastModified), revision },
    ...(storageClass !== undefined && { StorageClass: storageClass }),
  }
}

/** An object of the class DEEP_ARCHIVE that no offline deal holds yet. */
async function awaited({ marks }: DealDeps, object: StoredObject): Promise<ReportedEvent[]> {
  const mark = object.archive?.storageClass === 'DEEP_ARCHIVE' ? await marks.get(object) : undefined
  if (!mark) return []
  return [{ Event: 'OfflineDealAwaited', time: mark.since, revision: object.revision, JobId: mark.jobId }]
}

function keptEvent(event: ObjectEvent, whole: boolean): ReportedEvent {
  const { time, revision, jobId, dealCid, code, message, until } = event
  return {
    ...{ Event: event.event, time, revision, JobId: jobId, DealCid: dealCid, Code: code },
    ...(whole && { Message: message }),
    ...(typeof until === 'number' && { Until: wholeSeconds(until) }),
  }
}

function eventsOfDeal(record: DealRecord, all: readonly DealRecord[], { host, options }: DealDeps): ReportedEvent[] {
  const { deal, revision, jobId, cause, made, live, verified, doubted, retired, taskUuid } = record
  const now = host.now()
  const common = { revision, DealCid: deal.dealCid }
  const renewed = all.find((other) => other.renewedBy === jobId)
  const reported: ReportedEvent[] = [
    {
      ...{ ...common, Event: 'DealMade', time: made, JobId: jobId, Cause: cause },
      ...{ DataCid: deal.dataCid, PieceCid: live?.pieceCid, MinerId: deal.minerId, Price: deal.price },
      ...(renewed && { RenewsDealCid: renewed.deal.dealCid }),
      ...(taskUuid !== undefined && { TaskUuid: taskUuid }),
      ...(live?.expires !== undefined && { Until: wholeSeconds(live.expires) }),
    },
  ]
  for (const { state, since, message } of statesOf(record))
    reported.push({ ...common, Event: 'DealState', time: since, State: state, Message: message })
  if (verified !== undefined) reported.push({ ...common, Event: 'DealVerified', time: verified })
  if (doubted !== undefined) reported.push({ ...common, Event: 'DealDoubted', time: doubted })
  if (retired !== undefined) reported.push({ ...common, Event: 'DealRetired', time: retired })
  const ending = endBegins(record, options.rescueBeforeDays)
  const until = live?.expires
  if (isFinal(live?.state) || until === undefined) return reported
  if (ending !== undefined && ending <= now)
    reported.push({ ...common, Event: 'DealEnding', time: ending, Until: wholeSeconds(until) })
  if (until <= now) reported.push({ ...common, Event: 'DealEnded', time: until })
  return reported
}

/** The jobs that the events name, and that of the object's class, as far as they are on record. */
async function jobsOf(
  { jobs }: DealDeps,
  reported: readonly ReportedEvent[],
  object: StoredObject | undefined,
): Promise<ReadonlyMap<string, Job>> {
  const ids = new Set(reported.flatMap(({ JobId }) => JobId ?? []))
  if (object?.archive?.jobId !== undefined) ids.add(object.archive.jobId)
  const found = await Promise.all([...ids].map((id) => jobs.get(id)))
  return new Map(found.flatMap((job) => (job ? [[job.id, job]] : [])))
}

/** The job of the object's class, which has not run yet, or ran before the server kept events. */
function eventsOfJob(
  { id, created, updated, failure }: Job,
  object: StoredObject | undefined,
  whole: boolean,
): ReportedEvent[] {
  const common = { revision: object?.revision, JobId: id }
  // The job of a write is created before its body is read.
  const begun = Math.max(created, Date.parse(object?.lastModified ?? '') || 0)
  const reported: ReportedEvent[] = [{ ...common, Event: 'DealRequested', time: begun }]
  if (failure)
    reported.push({
      ...common,
      Event: 'DealFailed',
      time: updated,
      Code: failure.code,
      ...(whole && { Message: failure.message }),
    })
  return reported
}

function documents(reported: readonly ReportedEvent[], jobs: ReadonlyMap<string, Job>, present: string | undefined) {
  const sorted = reported.toSorted((one, other) => one.time - other.time)
  const lasts = new Map(sorted.map(({ JobId }, at) => [JobId, at]))
  return sorted.map(({ time, revision, ...event }, at): EventDocument => {
    const { JobId } = event
    const job = JobId !== undefined && lasts.get(JobId) === at ? jobs.get(JobId) : undefined
    const document = {
      ...event,
      Time: new Date(time).toISOString(),
      JobStatus: job?.status,
      Phase: job?.progress.phase || undefined,
      EarlierVersion: (revision !== undefined && revision !== present) || undefined,
    }
    return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined)) as EventDocument
  })
}
