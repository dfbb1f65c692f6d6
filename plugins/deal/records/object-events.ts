import { type PluginHost, type Records, type RunningJob, renamedMember, S3Error } from 'dealgate/plugin'
import { payingAccount } from '../subject.js'
import { subjectKey } from './deal-records.js'

/** What happened to an object, as far as no record of a deal, job or object tells it. */
type KeptEvent =
  | 'DealRequested'
  | 'DealFailed'
  | 'RenewalFailed'
  | 'EvictionRefused'
  | 'Evicted'
  | 'RestoreRequested'
  | 'RestoreFailed'
  | 'Restored'
  | 'RestoreProlonged'

/** Plain JSON. */
export interface ObjectEvent {
  /** The same for all attempts to record one event: work that is done again after a restart adds nothing. */
  readonly id: string
  readonly event: KeptEvent
  /** ms since 1970. */
  readonly time: number
  /** Revision of the object; absent if it was not known. */
  readonly revision?: string
  /** Access key of the gateway account on whose behalf it happened; '' for the server's own. */
  readonly account: string
  /** Access key id of the identity that asked for it; '' for the server itself. */
  readonly by: string
  readonly jobId?: string
  readonly dealCid?: string
  readonly code?: string
  readonly message?: string
  /** End of the time for which a restored copy stays, ms since 1970; null: it stays for ever. */
  readonly until?: number | null
}

/** Most events that are kept of a key: the newest. */
const MAX_EVENTS = 100
/** Longest message that is kept, characters. */
const MAX_MESSAGE = 1000

type Subject = { readonly bucket: string; readonly key: string }

/** Events by object. Only objects that deals are made of have any: storing and reading others touches no record. */
export class ObjectEvents {
  readonly #records: Records<readonly ObjectEvent[]>
  readonly #host: Pick<PluginHost, 'log' | 'now'>

  constructor(host: Pick<PluginHost, 'state' | 'log' | 'now'>) {
    this.#records = renamedMember(host.state.records('deal-object-events'), 'revision', 'stamp')
    this.#host = host
  }

  /** Oldest first. Throws ServiceUnavailable. */
  async of({ bucket, key }: Subject): Promise<readonly ObjectEvent[]> {
    return (await this.#records.get(subjectKey(bucket, key))) ?? []
  }

  /**
   * Records an event, once for its id. Never rejects: the deal or the copy that it is about matters more than its
   * history.
   */
  async add({ bucket, key }: Subject, event: Omit<ObjectEvent, 'time'>): Promise<void> {
    const { message } = event
    const added: ObjectEvent = {
      ...event,
      time: this.#host.now(),
      ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE) }),
    }
    try {
      await this.#records.change(subjectKey(bucket, key), (known = []) =>
        known.some(({ id }) => id === added.id) ? known : [...known, added].slice(-MAX_EVENTS),
      )
    } catch (err) {
      this.#host.log.warn({ err, bucket, key, event: event.event }, 'an event of an object could not be recorded')
    }
  }

  /** Runs the work of a job for an object, and records that it was requested, and why it failed for good. */
  async ofJob<T>(
    job: RunningJob<Subject & { readonly stamp?: string }>,
    [requested, failed]: readonly [KeptEvent, KeptEvent],
    run: () => Promise<T>,
  ): Promise<T> {
    const add = (event: KeptEvent, more: Partial<ObjectEvent> = {}) =>
      this.add(job.input, { ...ofJob(job, event), event, ...more })
    await add(requested)
    try {
      return await run()
    } catch (error) {
      // Any other error has the job run again, or leaves its outcome open.
      if (error instanceof S3Error && !job.signal.aborted && job.owned())
        await add(failed, { code: error.code, message: error.message })
      throw error
    }
  }
}

/** What an event of a job has in common with the others. */
export function ofJob(
  { job, context, input }: RunningJob<{ readonly stamp?: string }>,
  event: KeptEvent,
): Pick<ObjectEvent, 'id' | 'account' | 'by' | 'jobId' | 'revision'> {
  return {
    id: `${job.id}/${job.retries ?? 0}/${event}`,
    jobId: job.id,
    account: payingAccount(context.caller),
    by: job.accessKeyId,
    ...(input.stamp !== undefined && { revision: input.stamp }),
  }
}
