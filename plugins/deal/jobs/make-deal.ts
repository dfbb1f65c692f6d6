import { createHash } from 'node:crypto'
import { type Job, OutcomeUnknown, type RunningJob, S3Error, serviceTokenOf } from 'dealgate/plugin'
import type { GatewayDeal } from '../deal-answers.js'
import { DealClient } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { type Attempt, tokenOf } from '../records/attempts.js'
import { madeBefore } from '../records/held-deals.js'
import { replaced } from '../subject.js'
import { costOf } from '../terms/terms.js'
import { release, reserveFor } from './budget.js'
import { subjectOf } from './budget-waits.js'
import { candidates, refuseUnsettled, unrecorded } from './history.js'
import type { DealInput } from './inputs.js'
import { type DealResult, finishDeal, recordDeal, reportProgress, watchProgress } from './record-deal.js'

/**
 * Makes the deal of a job, once or not at all: the attempt is recorded before the gateway is asked, and when the answer
 * is lost the job becomes `Unknown` and `reconcileDeal` finds out.
 * @param look examines the subject; resolves with the revision of the object. An error of it ends the job
 */
export async function makeDeal(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  look: () => Promise<string | undefined>,
): Promise<DealResult> {
  const client = new DealClient(job.context.gateway, job.log)
  const made = await madeBefore(deps, job.job)
  if (made) return finishDeal(deps, job, client, made)
  await refuseUnsettled(deps, job, client)
  let attempt: Attempt
  try {
    const revision = await look()
    const token = await tokenFor(deps, job.job, revision)
    await reserve(deps, job, token, look)
    attempt = await begin(deps, job, client, { revision, token })
  } catch (error) {
    await release(deps, job)
    throw error
  }
  try {
    return await send(deps, job, client, attempt)
  } catch (error) {
    if (error instanceof S3Error) await takeBack(deps, job, attempt)
    else if (job.owned()) await deps.attempts.rested(attempt)
    throw error
  }
}

async function begin(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  client: DealClient,
  { revision, token }: { readonly revision: string | undefined; readonly token: string },
): Promise<Attempt> {
  const { input } = job
  const { dealTokens } = await job.context.gateway.features()
  const before = dealTokens ? [] : await dealsBefore(client, input)
  const attempt: Attempt = {
    jobId: job.job.id,
    bucket: input.bucket,
    key: keyOf(input),
    revision,
    sent: deps.host.now(),
    withToken: dealTokens,
    token,
    before: before.map((deal) => deal.dealCid),
  }
  await refuseUnrecorded(deps, job, attempt, before)
  await deps.attempts.begin(attempt)
  job.signal.throwIfAborted()
  await job.commit()
  return attempt
}

/**
 * The token for the gateway. When the job of a client token is lost, the object may have been replaced since. An
 * earlier request of the job about the same object may still be on its way: it has the token of its version.
 */
async function tokenFor({ attempts }: DealDeps, job: Job, revision: string | undefined): Promise<string> {
  const before = await attempts.get(job.id)
  if (before?.withToken && before.revision === revision) return tokenOf(before)
  const token = serviceTokenOf(job)
  if (job.token === undefined || revision === undefined) return token
  return createHash('sha256').update(`${token}/${revision}`).digest('hex')
}

/**
 * A gateway without client tokens cannot recognise a request whose job was lost with the state store, but it lists the
 * deal. Throws DuplicateRequest for a deal on these terms that may be it.
 */
async function refuseUnrecorded(
  deps: DealDeps,
  { job, input }: RunningJob<DealInput>,
  attempt: Attempt,
  before: readonly GatewayDeal[],
): Promise<void> {
  if (job.token === undefined || input.cause !== 'call' || input.force) return
  const lost = await unrecorded(deps, before)
  // The deal may be that of another job whose answer is under way.
  if (!lost || (await deps.attempts.others(attempt, deps.jobs))) return
  throw new S3Error('DuplicateRequest', {
    message:
      'The gateway holds a deal on the same terms that this server has no record of: the record was lost, or another program made the deal. To make another deal, send Force and a new client token.',
    fields: { DealCid: lost.dealCid },
  })
}

/** Sends the request. Throws S3Error when certainly no deal was made, OutcomeUnknown when that is not known. */
export async function send(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
): Promise<DealResult> {
  const { input } = job
  job.report({ phase: 'Sending' })
  const order = {
    bucket: input.bucket,
    key: keyOf(input),
    revision: attempt.revision,
    terms: input.terms,
    timeoutMs: deps.options.dealTimeoutSeconds * 1000,
    signal: job.signal,
    ...(attempt.withToken && { token: tokenOf(attempt) }),
  }
  const work = client.makeDeal(order).catch((error) => {
    throw error instanceof S3Error && error.code === 'NoSuchVersion' ? replaced() : error
  })
  const deal = await (attempt.withToken ? watchProgress(client, job, tokenOf(attempt), work) : work)
  const result = await recordDeal(deps, job, client, attempt, deal)
  if (attempt.withToken) await reportProgress(client, job, tokenOf(attempt), job.signal)
  return result
}

async function takeBack(deps: DealDeps, job: RunningJob<DealInput>, attempt: Attempt): Promise<void> {
  try {
    await job.uncommit()
    await release(deps, job)
    await deps.attempts.failed(attempt)
  } catch (cause) {
    // The attempt is still on record, so that the job is reconciled.
    throw new OutcomeUnknown('The deal was refused, but the refusal could not be recorded.', { cause })
  }
}

/** Reserves the money, and notes an object whose deal waits for another day's budget. */
function reserve(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  token: string,
  look: () => Promise<unknown>,
): Promise<void> {
  return reserveFor(deps, job, { amount: costOf(job.input.terms), token }, async () => {
    const subject = subjectOf(job.input)
    if (subject) deps.waits.add(job.job.id, subject)
    // The object may have changed before the job was added to those that wait.
    await look()
  })
}

/**
 * Deals on these terms that the history holds already. A gateway that does not report a history has none that could be
 * mistaken for the new deal.
 */
async function dealsBefore(client: DealClient, input: DealInput): Promise<readonly GatewayDeal[]> {
  const history = await client.history({ bucket: input.bucket, key: keyOf(input) })
  return candidates(history.entries ?? [], input.terms)
}

function keyOf(input: DealInput): string | undefined {
  return 'key' in input ? input.key : undefined
}
