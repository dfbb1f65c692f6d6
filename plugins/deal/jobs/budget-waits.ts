import type { Job, PluginHost } from 'dealgate/plugin'
import type { DealInput } from './inputs.js'

/** Phase of jobs whose deal would exceed the daily spending cap. */
export const WAITING = 'WaitingForBudget'

const PAGE = 500

interface WaitingObject {
  readonly bucket: string
  readonly key: string
}

/**
 * Jobs that wait for the budget of another day, by object. When the object changes, its jobs run at once, and end if
 * the object was replaced or removed.
 */
export class BudgetWaits {
  readonly #host: PluginHost
  /** Ids of jobs. The id of a job that no longer waits is harmless. */
  readonly #byObject = new Map<string, Set<string>>()

  constructor(host: PluginHost) {
    this.#host = host
  }

  add(jobId: string, subject: WaitingObject): void {
    const name = nameOf(subject)
    this.#byObject.set(name, (this.#byObject.get(name) ?? new Set()).add(jobId))
  }

  /** To be called when an object was written or removed. Costs nothing when no job waits. Throws ServiceUnavailable. */
  async changed(subject: WaitingObject): Promise<void> {
    const name = nameOf(subject)
    const waiting = this.#byObject.get(name)
    if (!waiting) return
    this.#byObject.delete(name)
    for (const id of waiting) await this.#host.own.jobs.wake(id)
  }

  /**
   * Runs every waiting job, because its object may have changed without any server of this state noticing. Throws
   * ServiceUnavailable.
   */
  async lookAtAll(): Promise<void> {
    this.#byObject.clear()
    let before: string | undefined
    for (;;) {
      const query = { plugin: 'deal', status: 'Active', limit: PAGE, before, matches: isWaiting } as const
      const page = await this.#host.own.jobs.list(query)
      for (const { id } of page) await this.#host.own.jobs.wake(id)
      before = page.at(-1)?.id
      if (page.length < PAGE) return
    }
  }
}

export function subjectOf(input: DealInput): WaitingObject | undefined {
  return 'key' in input ? input : undefined
}

function isWaiting({ progress }: Job): boolean {
  return progress.phase === WAITING
}

/** Unique, because a bucket name holds no NUL. */
function nameOf({ bucket, key }: WaitingObject): string {
  return `${bucket}\0${key}`
}
