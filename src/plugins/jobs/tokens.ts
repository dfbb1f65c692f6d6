import { createHash } from 'node:crypto'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Job, NewJob } from '../../api/jobs.js'
import type { State } from '../../api/state.js'
import { type JobStore, type Origin, type TokenRecord, tokenKeysOf } from './job-store.js'

/**
 * The idempotency token by which another service recognises the request of a job. It depends on the identity and the
 * client's token alone, so that the service recognises the request also when the record of the job is lost and the
 * client repeats it. Without a client's token it is the id of the job. At most 64 printable ASCII characters.
 */
export function serviceTokenOf({ id, accessKeyId, token }: Pick<Job, 'id' | 'accessKeyId' | 'token'>): string {
  return token === undefined ? id : createHash('sha256').update(`dealgate:${accessKeyId}\0${token}`).digest('hex')
}

/**
 * Creates a job at most once per token, and refuses a request that repeats a recent one. The token record is written
 * before the job: if the process dies between the two, the token record refers to no job and is ignored.
 * @param make writes the job; durable when it resolves
 * @throws IdempotencyParameterMismatch, DuplicateRequest
 */
export async function oncePerToken(
  state: Pick<State, 'locks' | 'requireIntact' | 'raiseMark'>,
  store: JobStore,
  asked: NewJob<unknown>,
  id: string,
  now: number,
  make: () => Promise<Job>,
): Promise<Job> {
  const { token, requestHash, refuseRepeatsWithin } = asked
  const keys = tokenKeysOf(refuseRepeatsWithin === undefined ? { ...asked, requestHash: undefined } : asked)

  return withAll(state, keys, async () => {
    /** Ids that the tokens refer to, including those of missing jobs. */
    const seen = new Map<string, string | undefined>()
    for (const key of keys) {
      const found = await store.tokens.get(key)
      seen.set(key, found?.id)
      const earlier = await withJob(store, found)
      if (!earlier) continue
      if (key.startsWith('token-')) return sameRequest(asked, earlier.record, earlier.job)
      if (key.startsWith('signature-')) return replayed(asked, earlier.job)
      else if (token === undefined) refuseRepeat(asked, earlier.job, now)
    }
    // This comes after the search for earlier jobs, because a store that has lost them seems to have none.
    await state.requireIntact()
    await state.raiseMark()
    const record = { id, ...(requestHash !== undefined && { requestHash }) }
    await Promise.all(keys.map((key) => claimToken(store, key, seen.get(key), record)))
    return make()
  })
}

/** Throws IdempotencyParameterMismatch. */
export async function jobOfToken(
  store: JobStore,
  asked: Origin & { readonly token: string },
): Promise<Job | undefined> {
  const [key = ''] = tokenKeysOf(asked)
  const earlier = await known(store, key)
  return earlier && sameRequest(asked, earlier.record, earlier.job)
}

async function known(store: JobStore, key: string): Promise<{ record: TokenRecord; job: Job } | undefined> {
  return withJob(store, await store.tokens.get(key))
}

async function withJob(
  store: JobStore,
  record: TokenRecord | undefined,
): Promise<{ record: TokenRecord; job: Job } | undefined> {
  const job = record && (await store.read(record.id))?.job
  return record && job && { record, job }
}

/**
 * Assigns the token to this job. Throws ServiceUnavailable if the token refers to another job by now: then the lock has
 * passed to another proxy, whose job is valid.
 */
async function claimToken(store: JobStore, key: string, seen: string | undefined, record: TokenRecord): Promise<void> {
  await store.tokens.change(key, (present) => {
    if (present?.id === seen) return record
    throw new S3Error('ServiceUnavailable', { message: 'Another server is processing the same request. Try again.' })
  })
}

/** Takes the locks always in the same order, so that two requests cannot deadlock. */
function withAll<T>(state: Pick<State, 'locks'>, keys: readonly string[], run: () => Promise<T>): Promise<T> {
  const [key, ...others] = keys
  if (key === undefined) return run()
  return state.locks.withName(`job-${key}`, () => withAll(state, others, run))
}

function sameRequest(asked: Origin, known: TokenRecord, earlier: Job): Job {
  if (known.requestHash === asked.requestHash) return earlier
  throw new S3Error('IdempotencyParameterMismatch', { fields: { JobId: earlier.id } })
}

/**
 * Answers a request that repeats an earlier signature; it never creates another job. If the earlier job failed or was
 * cancelled, the same request gets that job as it ended, because its client may have asked again by a request of its
 * own. A signature in the headers is valid for half an hour at most, and jobs stay on record for longer.
 * @throws DuplicateRequest
 */
function replayed({ requestHash }: Origin, earlier: Job): Job {
  const cameToNothing = earlier.status === 'Failed' || earlier.status === 'Cancelled'
  if (cameToNothing && requestHash !== undefined && requestHash === earlier.requestHash) return earlier
  throw new S3Error('DuplicateRequest', {
    message:
      'This signed request was already carried out. To repeat the call, sign a new request at least a second later; to get the result of the first one, send the same x-amz-client-token with both.',
    fields: { JobId: earlier.id },
  })
}

/** A failed or cancelled job had no effect that could be repeated. */
function refuseRepeat({ refuseRepeatsWithin = 0 }: NewJob<unknown>, earlier: Job, now: number): void {
  if (now - earlier.created >= refuseRepeatsWithin) return
  if (earlier.status === 'Failed' || earlier.status === 'Cancelled') return
  throw new S3Error('DuplicateRequest', { fields: { JobId: earlier.id } })
}
