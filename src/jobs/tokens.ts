import { createHash } from 'node:crypto'
import { S3Error } from '../errors/s3-error.js'
import type { State } from '../state/state.js'
import type { Job, NewJob } from './job.js'
import type { JobStore } from './job-store.js'

/** Which job was made for a token, or for a request without one. */
export interface TokenRecord {
  readonly id: string
  readonly requestHash?: string
}

/** What of a job, or of one that is asked for, its tokens are made of. */
interface Origin extends Pick<Job, 'accessKeyId' | 'token'> {
  readonly requestHash?: string | undefined
}

/** Keys of the records that may stand for a job: of its token, and of its request. */
export function tokenKeysOf({ accessKeyId, token, requestHash }: Origin): string[] {
  const keyOf = (kind: string, text: string) =>
    `${kind}-${createHash('sha256').update(`${accessKeyId}\0${text}`).digest('base64url')}`
  return [
    ...(token === undefined ? [] : [keyOf('token', token)]),
    ...(requestHash === undefined ? [] : [keyOf('request', requestHash)]),
  ]
}

/**
 * Makes a job at most once for its token, and refuses what repeats a request that was made a moment ago. Who asks is on record before the job: if the process dies
 * between the two, the record stands for a job that is not there, and counts for nothing.
 * @param make writes the job; durable when it resolves
 * @throws IdempotencyParameterMismatch, DuplicateRequest
 */
export async function oncePerToken(
  state: Pick<State, 'locks'>,
  store: JobStore,
  asked: NewJob<unknown>,
  id: string,
  now: number,
  make: () => Promise<Job>,
): Promise<Job> {
  const { token, requestHash, refuseRepeatsWithin } = asked
  const keys = tokenKeysOf(refuseRepeatsWithin === undefined ? { ...asked, requestHash: undefined } : asked)

  return withAll(state, keys, async () => {
    for (const key of keys) {
      const earlier = await known(store, key)
      if (!earlier) continue
      if (key.startsWith('token-')) return sameRequest(asked, earlier.record, earlier.job)
      if (token === undefined) refuseRepeat(asked, earlier.job, now)
    }
    const record = { id, ...(requestHash !== undefined && { requestHash }) }
    await Promise.all(keys.map((key) => store.tokens.set(key, record)))
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
  const record = await store.tokens.get(key)
  const job = record && (await store.read(record.id))?.job
  return record && job && { record, job }
}

/** Always in the same order, so that nobody waits for somebody who waits for him. */
function withAll<T>(state: Pick<State, 'locks'>, keys: readonly string[], run: () => Promise<T>): Promise<T> {
  const [key, ...others] = keys
  if (key === undefined) return run()
  return state.locks.withName(`job-${key}`, () => withAll(state, others, run))
}

function sameRequest(asked: Origin, known: TokenRecord, earlier: Job): Job {
  if (known.requestHash === asked.requestHash) return earlier
  throw new S3Error('IdempotencyParameterMismatch', { fields: { JobId: earlier.id } })
}

/** What has failed did nothing that could be done twice. */
function refuseRepeat({ refuseRepeatsWithin = 0 }: NewJob<unknown>, earlier: Job, now: number): void {
  if (now - earlier.created >= refuseRepeatsWithin) return
  if (earlier.status === 'Failed' || earlier.status === 'Cancelled') return
  throw new S3Error('DuplicateRequest', { fields: { JobId: earlier.id } })
}
