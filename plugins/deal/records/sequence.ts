import {
  type Backoff,
  type Locks,
  type PluginState,
  type Records,
  Retry,
  type RunningJob,
  S3Error,
} from 'dealgate/plugin'

const SHARD = 100

/**
 * Names in the order in which they were added; newest first can be read from a store without scans. One record for
 * every hundred names, and one that holds their number.
 */
export class Sequence {
  readonly #shards: Records<readonly string[]>
  readonly #locks: Locks
  readonly #name: string

  /** @param name of the records; must not be used elsewhere */
  constructor(state: Pick<PluginState, 'records' | 'locks'>, name: string) {
    this.#shards = state.records(name)
    this.#locks = state.locks
    this.#name = name
  }

  /** Adds a name. Durable when it resolves. A name among the last hundred is not added again. */
  add(name: string): Promise<void> {
    return this.#locks.withName(this.#name, async () => {
      const last = await this.#last()
      const names = await this.#read(last)
      if (names.includes(name) || (last > 0 && (await this.#read(last - 1)).includes(name))) return
      if (names.length < SHARD) {
        await this.#shards.change(String(last), (present = []) =>
          present.includes(name) ? present : [...present, name],
        )
        return
      }
      // The record is written before the count: after a crash in between it is overwritten.
      await this.#shards.set(String(last + 1), [name])
      await this.#shards.set('last', [String(last + 1)])
    })
  }

  /**
   * The newest first, each with its place, which additions do not change.
   * @param before only names at lower places
   */
  async *backwards(before = Number.POSITIVE_INFINITY): AsyncGenerator<[place: number, name: string], void> {
    const last = await this.#last()
    for (let shard = Math.min(last, Math.floor(before / SHARD)); shard >= 0; shard--) {
      const names = await this.#read(shard)
      for (let i = names.length - 1; i >= 0; i--) {
        const place = shard * SHARD + i
        if (place < before) yield [place, names[i] as string]
      }
    }
  }

  async #last(): Promise<number> {
    return Number((await this.#shards.get('last'))?.[0] ?? 0)
  }

  async #read(shard: number): Promise<readonly string[]> {
    return (await this.#shards.get(String(shard))) ?? []
  }
}

/** Backoff of a job while the gateway or network is down, ms. */
export interface RetryTimes extends Backoff {
  /** Deadline, counted from the first failure. */
  readonly altogetherMs: number
}

/** For jobs that retrieve data, for which a client waits. */
export const bringingBack: RetryTimes = { firstMs: 5000, longestMs: 30_000, altogetherMs: 24 * 3_600_000 }

/** For deals that no client waits for and would request again. */
export const waitingLong: RetryTimes = { firstMs: 5000, longestMs: 15 * 60_000, altogetherMs: 7 * 86_400_000 }

const REASON = 'WaitingForGateway'

/** True for an error that a retry may cure: nothing was refused. */
export function isPassing(error: unknown): error is S3Error {
  return error instanceof S3Error && error.status >= 500 && error.status !== 501
}

/**
 * What a job throws in place of `error`: a Retry while the error is transient and the deadline has not passed,
 * otherwise the error itself.
 * @param now ms since 1970
 */
export function patiently(
  { putOff, signal }: Pick<RunningJob<unknown>, 'putOff' | 'signal'>,
  error: unknown,
  now: number,
  { altogetherMs, ...backoff }: RetryTimes,
): unknown {
  if (signal.aborted || !isPassing(error)) return error
  const since = putOff?.message === REASON ? putOff.since : now
  if (now - since >= altogetherMs) return error
  return Retry.again({ putOff }, REASON, backoff, error)
}

/** Runs the work of a job, which is retried after these times. `failed` is called before it fails for good. */
export async function runPatiently<T>(
  job: RunningJob<unknown>,
  run: () => Promise<T>,
  { now, times, failed }: { readonly now: () => number; readonly times: RetryTimes; failed(): Promise<unknown> },
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (job.signal.aborted) throw error
    const thrown = patiently(job, error, now(), times)
    if (thrown === error) await failed()
    throw thrown
  }
}
