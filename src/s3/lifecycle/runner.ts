import { createHash } from 'node:crypto'
import { isReported, S3Error } from '../../../common/errors/s3-error.js'
import { DAY_MS, PeriodicTask } from '../../../common/time.js'
import type { BucketOwner, RequireOwner } from '../../api/access.js'
import type { BucketSettings } from '../../api/settings.js'
import type { State } from '../../api/state.js'
import type { Store } from '../../api/store.js'
import { acquireTaskLease } from '../../state/locks/task-lease.js'
import { passBucket } from './bucket-pass.js'
import type { LifecycleConfiguration } from './configuration.js'
import type { PassDeps, Tally } from './pass.js'

export interface LifecycleOptions extends Omit<PassDeps, 'ended' | 'isMeant' | 'isVersioned' | 'state' | 'store'> {
  /** The objects as an account sees them; undefined if the server has no key pair of it any more. */
  readonly ownerOf: (owned: BucketOwner | undefined) => Promise<OwnerView | undefined>
  readonly state: State
  readonly settings: BucketSettings
  /** Interval between passes over the buckets, ms; 0 for never. */
  readonly intervalMs: number
}

/** The objects as an account that owns buckets sees them. */
interface OwnerView {
  readonly store: Store
  /** Throws unless the account owns the bucket: nothing is deleted in any other. */
  readonly requireOwner: RequireOwner
  /** Whether the bucket is or was versioned. */
  readonly isVersioned: (bucket: string) => Promise<boolean>
}

interface Lifecycle {
  /** Processes all buckets once. Never rejects. Does not start a second pass while one is in progress. */
  run(): Promise<void>
  /** Ends a pass in progress after the current object. */
  stop(): Promise<void>
}

/** Records that the pass of a day over one bucket is complete. */
interface Done {
  /** Days since 1970, UTC. */
  readonly day: number
  /** Fingerprint of the applied rules. */
  readonly rules: string
}

/** The last pass over a bucket, also one that ended early. The plugin `lifecycle` shows it. */
interface LastPass extends Tally {
  /** ms since 1970 */
  readonly ended: number
}

/** Name of the lease of the proxy that applies the rules for all proxies on a shared state. */
const LEASE = 'lifecycle'

/**
 * Applies the lifecycle rules of all buckets, now and every `intervalMs`. Rules become due at midnight UTC, so a bucket
 * needs one complete pass per day, and another one when its rules change. Complete passes are recorded, so that a
 * restart repeats nothing. A failed or interrupted pass is not recorded, and is retried in the next interval. Of the
 * proxies on a shared state, one at a time applies the rules.
 */
export function startLifecycle(options: LifecycleOptions): Lifecycle {
  const { state, settings, log, now, intervalMs } = options
  const passes = state.records<Done>('lifecycle-passes')
  const lastPasses = state.records<LastPass>('lifecycle-last-passes')
  let stopped = false

  async function passAll(): Promise<void> {
    // A store that has lost records may lack the tags that rules depend on.
    await state.requireIntact()
    const lease = await acquireTaskLease(state, LEASE, log)
    if (!lease) return
    const mayGoOn = () => !stopped && lease.held()
    try {
      const seen = new Set<string>()
      for await (const [bucket] of settings.buckets('lifecycle')) {
        if (!mayGoOn()) return
        seen.add(bucket)
        await attempt(bucket, mayGoOn)
      }
      for (const records of [passes, lastPasses])
        for await (const [bucket] of records.entries()) if (!seen.has(bucket)) await records.delete(bucket)
    } finally {
      await lease.release()
    }
  }

  async function attempt(bucket: string, mayGoOn: () => boolean): Promise<void> {
    const day = Math.floor(now() / DAY_MS)
    try {
      const configuration = await settings.latest(bucket, 'lifecycle')
      if (!configuration) return
      const rules = fingerprint(configuration)
      const done = await passes.get(bucket)
      if (done?.rules === rules && done.day >= day) return
      if (await pass(bucket, configuration, mayGoOn)) await passes.set(bucket, { day, rules })
    } catch (err) {
      if (err instanceof S3Error && err.code === 'NoSuchBucket' && (await forgetGone(bucket))) return
      log.error({ err, bucket }, 'could not apply the lifecycle rules of a bucket; will retry')
    }
  }

  /**
   * Handles rules of a bucket that no longer exists. Removes them unless a new bucket of the same name can be
   * distinguished from the old one. Resolves true if nothing is left to report.
   */
  async function forgetGone(bucket: string): Promise<boolean> {
    try {
      if (await settings.isBound(bucket)) return true
      await settings.delete(bucket, 'lifecycle')
      log.warn({ bucket }, 'removed the lifecycle rules of a bucket that no longer exists')
      return true
    } catch {
      return false
    }
  }

  /** Resolves true if the pass is complete for today. */
  async function pass(bucket: string, configuration: LifecycleConfiguration, mayGoOn: () => boolean): Promise<boolean> {
    const rules = fingerprint(configuration)
    const isSame = (present: LifecycleConfiguration | undefined) => !!present && fingerprint(present) === rules
    // Bypasses the cache, so that a change that another proxy has acknowledged takes effect before the next object.
    const ended = async () => !mayGoOn() || !isSame(await settings.latest(bucket, 'lifecycle'))
    const owner = await options.ownerOf(configuration.owned)
    if (!owner) {
      log.warn({ bucket }, 'lifecycle rules wait: no key pair of the account that set them is left; set them again')
      return false
    }
    const isMeant = async () => {
      await owner.requireOwner(bucket)
      return isSame(await settings.confirmed(bucket, 'lifecycle'))
    }
    const isVersioned = () => owner.isVersioned(bucket)
    const deps = { ...options, store: owner.store, ended, isMeant, isVersioned }
    const tally = await passBucket(deps, bucket, configuration)
    const { expired, removed, transitioned, aborted, failed, complete } = tally
    const changed = expired + removed + transitioned + aborted
    const level = failed > 0 ? 'warn' : changed > 0 || !complete ? 'info' : 'debug'
    log[level]({ bucket, lifecycle: tally }, 'applied lifecycle rules')
    await lastPasses.set(bucket, { ...tally, ended: now() })
    return complete && failed === 0
  }

  const task = new PeriodicTask(passAll, (err) => {
    if (!isReported(err, log)) log.error({ err }, 'could not read the lifecycle rules; will retry')
  })
  if (intervalMs > 0) task.start(intervalMs)
  return {
    run: () => task.run(),
    async stop() {
      stopped = true
      await task.stop()
    },
  }
}

/**
 * Cache of fingerprints, which are needed before every object. The settings return the same configuration object for a
 * while.
 */
const fingerprints = new WeakMap<LifecycleConfiguration, string>()

function fingerprint(configuration: LifecycleConfiguration): string {
  const known = fingerprints.get(configuration)
  if (known !== undefined) return known
  const made = createHash('sha256').update(JSON.stringify(configuration)).digest('base64url')
  fingerprints.set(configuration, made)
  return made
}
