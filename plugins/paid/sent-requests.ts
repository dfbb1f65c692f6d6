import { OutcomeUnknown, type PluginHost, type Records, type RunningJob } from 'dealgate/plugin'
import type { SpendLedger } from './spend-ledger.js'

type SendingJob = Pick<RunningJob<unknown>, 'job' | 'owned' | 'uncommit'>

/** What a search for the effect of a request has found. `unclear`: several things may be it, or it is not known. */
export type Found<T> = T | 'none' | 'unclear'

export interface SentRequestsOptions {
  /** Name of the records, which begins with that of the plugin. */
  readonly records: string
  readonly ledger: Pick<SpendLedger, 'release'>
  /** A request counts as without effect once searches have found nothing for so long, seconds. */
  readonly patienceSeconds: number
}

/**
 * Requests that cost money or must not be sent twice, by the job that sends them: each is on record before it is sent,
 * so that the job can find out what became of it when the answer was lost or the process died.
 */
export class SentRequests<Request extends { readonly sent: number }> {
  readonly #records: Records<Request>
  readonly #host: PluginHost
  readonly #options: SentRequestsOptions

  constructor(host: PluginHost, options: SentRequestsOptions) {
    this.#host = host
    this.#options = options
    this.#records = host.state.records(options.records)
  }

  get(jobId: string): Promise<Request | undefined> {
    return this.#records.get(jobId)
  }

  /** All requests on record, by the ids of their jobs. */
  entries(): AsyncIterable<[jobId: string, request: Request]> {
    return this.#records.entries()
  }

  /** Durable when it resolves: to be awaited before the request is complete. */
  begin(jobId: string, request: Request): Promise<void> {
    return this.#records.set(jobId, request)
  }

  /** Removes a request that certainly had no effect, or whose effect is on record. */
  settle(jobId: string): Promise<void> {
    return this.#records.delete(jobId)
  }

  /**
   * Finds out what became of the request of a job. Implements JobKind.reconcile.
   * @param find searches the service for its effect
   * @param done records what was found
   */
  async reconcile<T extends object, Result>(
    job: SendingJob,
    find: () => Promise<Found<T>>,
    done: (found: T) => Promise<Result>,
  ): Promise<{ readonly done: Result } | 'not-done' | undefined> {
    const { id } = job.job
    const request = await this.get(id)
    // It is sent only after it was recorded.
    if (!request) return 'not-done'
    const found = await find()
    if (found === 'unclear') return undefined
    if (found !== 'none') return { done: await done(found) }
    if (this.#host.now() - request.sent < this.#options.patienceSeconds * 1000 || !job.owned()) return undefined
    await this.#options.ledger.release(id, () => job.owned())
    await this.settle(id)
    return 'not-done'
  }

  /**
   * The service has refused a request that was sent. Throws OutcomeUnknown if that cannot be recorded.
   * @param what was requested: `upload`
   */
  async takeBack(job: SendingJob, what: string): Promise<void> {
    try {
      await job.uncommit()
      await this.#options.ledger.release(job.job.id, () => job.owned())
      await this.settle(job.job.id)
    } catch (cause) {
      throw new OutcomeUnknown(`The ${what} was refused, but the refusal could not be recorded.`, { cause })
    }
  }

  /**
   * For a job that is run again: throws OutcomeUnknown if an earlier request of it may have had an effect.
   * @param what was requested: `upload`
   */
  async refuseUnsettled(find: () => Promise<Found<object>>, what: string): Promise<void> {
    const found = await find().catch((cause) => {
      throw new OutcomeUnknown(`The outcome of an earlier request for this ${what} could not be queried.`, { cause })
    })
    if (found !== 'none') throw new OutcomeUnknown(`The service may have the ${what} that this job requested before.`)
  }
}
