import {
  type PeriodicRun,
  type PeriodicWork,
  type ReplyHeaders,
  S3Error,
  type StorageClass,
  type StoredObject,
} from 'dealgate/plugin'
import pMap from 'p-map'
import { ARCHIVE_CLASSES, configurationOf } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import { OBJECT_DEAL, OFFLINE_DEAL } from '../jobs/inputs.js'
import { requireHealth } from '../known-providers.js'
import { isUnderWay } from '../records/held-deals.js'
import { admit } from './admit.js'
import { GiveUp } from './give-up.js'
import type { LocalCopy } from './local-copies.js'
import { restore } from './restore.js'
import { giveUp as forgetRestore } from './restore-job.js'
import { Transitions } from './transitions.js'

/** Most evictions at the same time. */
const MAX_CONCURRENCY = 4

/**
 * Manages the gateway's local copies: evicts those that may go, because a deal holds the object or because a restored
 * copy has expired, and cleans up after cancelled restores. Of the servers that share a state, one runs it at a time.
 */
export class LocalCopyUpkeep {
  readonly #deps: DealDeps
  readonly #giveUp: GiveUp

  constructor(deps: DealDeps) {
    this.#deps = deps
    this.#giveUp = new GiveUp(deps)
  }

  get work(): PeriodicWork {
    const { evictionIntervalSeconds } = this.#deps.options
    return { name: 'local-copies', everySeconds: evictionIntervalSeconds, run: (current) => this.#lookAtAll(current) }
  }

  async #lookAtAll({ signal, mayGoOn }: PeriodicRun): Promise<void> {
    const { now } = this.#deps.host
    const evicting = await this.#giveUp.mayEvict()
    const attempt = (due: readonly LocalCopy[]) =>
      pMap(due, (copy) => this.#attempt(copy, evicting, signal), { concurrency: MAX_CONCURRENCY })
    const due: LocalCopy[] = []
    for await (const planned of this.#deps.copies.all()) {
      if (!mayGoOn()) return
      // An eviction may take minutes, during which other copies change.
      const copy = await this.#deps.copies.get(planned)
      if (!copy) continue
      if (copy.restoring !== undefined) await this.#lookAfter(copy, copy.restoring, signal)
      else if (copy.due !== undefined && copy.due <= now()) due.push(copy)
      if (due.length === MAX_CONCURRENCY) await attempt(due.splice(0))
    }
    await attempt(due)
  }

  async #attempt(copy: LocalCopy, evicting: boolean, signal: AbortSignal): Promise<void> {
    await this.#guarded(copy, signal, () => this.#giveUp.attempt(copy, evicting, signal))
  }

  /** A job that was cancelled before it ran leaves the object marked as restoring. */
  async #lookAfter(copy: LocalCopy, jobId: string, signal: AbortSignal): Promise<void> {
    await this.#guarded(copy, signal, async () => {
      if (await isUnderWay(this.#deps, jobId)) return
      await forgetRestore(this.#deps, this.#deps.host.own, copy)
    })
  }

  async #guarded(copy: LocalCopy, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { host, copies } = this.#deps
    const { bucket, key } = copy
    try {
      await work()
    } catch (err) {
      signal.throwIfAborted()
      const refused = err instanceof S3Error && err.status < 500
      host.log.warn({ err, bucket, key, refused }, 'the eviction of a local copy failed, and the copy stays')
      if (refused) await copies.replace(copy)
      else await requireHealth(this.#deps)
    }
  }
}

/**
 * The storage classes whose objects are kept by deals, and the words that map to one of them. The gateway may evict its
 * copy of an object in GLACIER once a deal holds it; an object in GLACIER_IR keeps its local copy. Objects in
 * DEEP_ARCHIVE are held by the next offline deal of their bucket.
 */
export function archiveClasses(deps: DealDeps): readonly StorageClass[] {
  const map = deps.options.storageClassMap
  const words = new Set([...ARCHIVE_CLASSES, ...Object.keys(map)])
  const transitions = new Transitions(deps)
  return [...words].map((word) => {
    const isDeep = (map[word] ?? word) === 'DEEP_ARCHIVE'
    return {
      name: word,
      action: isDeep ? OFFLINE_DEAL : OBJECT_DEAL,
      currentOnly: isDeep,
      admit: (write, context) => admit(deps, word, write, context),
      transition: (object) => transitions.move(word, object),
      restore: (object, order, context) => restore(deps, object, order, context),
      missed: (object) => readThrough(deps, object),
    }
  })
}

/** Days for which a restored copy stays. */
const DAYS = 1

/** Value of Retry-After, seconds. */
const RETRY_AFTER = '30'

/**
 * Restores an object that a caller wants to read, if the bucket's configuration has ReadThrough. The restore runs as
 * the server, because a reader need not have the right to write.
 */
async function readThrough({ host }: DealDeps, object: StoredObject): Promise<ReplyHeaders> {
  const { bucket, key, revision } = object
  if (!(await configurationOf(host, bucket))?.ReadThrough) return {}
  const order = { days: DAYS, tier: 'Standard', description: '' } as const
  try {
    if (host.own.archive.presence(object).state === 'cold')
      await host.own.archive.restore(bucket, key, order, undefined, { revision })
  } catch (error) {
    // Another request has started the restore.
    if (!(error instanceof S3Error) || error.code !== 'RestoreAlreadyInProgress') throw error
  }
  return { 'retry-after': RETRY_AFTER }
}
