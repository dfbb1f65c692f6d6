import { OutcomeUnknown } from '../../../src/errors/outcome-unknown.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import { Retry, type RunningJob } from '../../../src/jobs/job.js'
import { DealClient } from '../deal-client.js'
import type { DealParts } from '../parts.js'
import type { Attempt } from '../records/attempts.js'
import { costOf } from '../terms.js'
import { candidates } from './history.js'
import type { BucketDealInput, ObjectDealInput } from './inputs.js'
import { madeBefore } from './made-before.js'
import { type DealResult, settle, tell } from './settle.js'
import { reportProgress, watchProgress } from './watch-progress.js'

export type DealInput = BucketDealInput | ObjectDealInput

/**
 * Has the gateway make the deal of a job. Whatever happens, there is one deal for the job or none: before the gateway is asked, it is on
 * record that it will be, and when its answer is lost the job becomes `Unknown`, for `reconcileDeal` to settle.
 * @param look looks at the subject; resolves with the stamp of the object. What it throws ends the job
 */
export async function makeDeal(
  parts: DealParts,
  job: RunningJob<DealInput>,
  look: () => Promise<string | undefined>,
): Promise<DealResult> {
  const client = new DealClient(job.context.gateway, job.log)
  let attempt: Attempt
  try {
    const made = await madeBefore(parts, job.job)
    if (made) return await tell(parts, job, client, made)
    const stamp = await look()
    await reserve(parts, job)
    attempt = await begin(parts, job, client, stamp)
  } catch (error) {
    await release(parts, job)
    throw error
  }
  try {
    return await send(parts, job, client, attempt)
  } catch (error) {
    if (error instanceof S3Error) await takeBack(parts, job, attempt)
    else if (job.owned()) await parts.attempts.rested(attempt)
    throw error
  }
}

/** Puts on record that the gateway is about to be asked. */
async function begin(
  parts: DealParts,
  job: RunningJob<DealInput>,
  client: DealClient,
  stamp: string | undefined,
): Promise<Attempt> {
  const { input } = job
  const { dealTokens } = await job.context.gateway.features()
  const attempt: Attempt = {
    jobId: job.job.id,
    bucket: input.bucket,
    key: keyOf(input),
    stamp,
    sent: parts.host.now(),
    withToken: dealTokens,
    before: dealTokens ? [] : await dealsBefore(client, input),
  }
  await parts.attempts.begin(attempt)
  job.signal.throwIfAborted()
  await job.commit()
  return attempt
}

/** Asks the gateway. Throws S3Error when no deal was made by it, OutcomeUnknown when nobody can tell. */
export async function send(
  parts: DealParts,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
): Promise<DealResult> {
  const { input } = job
  job.report({ phase: 'Sending' })
  const work = client.makeDeal({
    bucket: input.bucket,
    key: keyOf(input),
    terms: input.terms,
    timeoutMs: parts.options.dealTimeoutSeconds * 1000,
    signal: job.signal,
    ...(attempt.withToken && { token: job.job.id }),
  })
  const deal = await (attempt.withToken ? watchProgress(client, job, work) : work)
  const result = await settle(parts, job, client, attempt, deal)
  if (attempt.withToken) await reportProgress(client, job, job.signal)
  return result
}

async function takeBack(parts: DealParts, job: RunningJob<DealInput>, attempt: Attempt): Promise<void> {
  try {
    await job.uncommit()
    await release(parts, job)
    await parts.attempts.failed(attempt)
  } catch (cause) {
    // What is on record still says that a deal may have been made; reconciling finds out that it was not.
    throw new OutcomeUnknown('The deal was refused, which could not be put on record.', { cause })
  }
}

/** Takes the money off the record, unless it is another server's by now, which has taken the job over. */
export function release({ spending }: DealParts, job: RunningJob<DealInput>): Promise<void> {
  return spending.release(job.job.id, () => job.owned())
}

/** Puts the money on record. A deal that nobody waits for is made on another day when the cap of this one is reached. */
async function reserve(parts: DealParts, { job, input, context }: RunningJob<DealInput>): Promise<void> {
  const caps = await parts.capsFor(context, input.bucket)
  try {
    await parts.spending.reserve({ jobId: job.id, bucket: input.bucket, amount: costOf(input.terms) }, caps)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'SpendCapReached' || input.cause === 'call') throw error
    throw new Retry(untilTomorrow(parts.host.now()), 'WaitingForBudget', { cause: error })
  }
}

const DAY_MS = 86_400_000

function untilTomorrow(now: number): number {
  return DAY_MS - (now % DAY_MS) + 1000
}

/** Where the gateway does not tell its history, it holds none that could be taken for the deal to come. */
async function dealsBefore(client: DealClient, input: DealInput): Promise<readonly string[]> {
  const history = await client.history({ bucket: input.bucket, key: keyOf(input) })
  return candidates(history.entries ?? [], input.terms).map((deal) => deal.dealCid)
}

export function keyOf(input: DealInput): string | undefined {
  return 'key' in input ? input.key : undefined
}
