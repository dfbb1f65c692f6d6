import { createHash } from 'node:crypto'
import { S3Error } from '../errors/s3-error.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import { takeClaim } from '../state/claim.js'
import type { State } from '../state/state.js'
import { type PassParts, passBucket } from './bucket-pass.js'
import type { LifecycleConfiguration } from './configuration.js'
import { DAY_MS } from './rules.js'

export interface LifecycleOptions extends Omit<PassParts, 'ended' | 'isMeant' | 'state'> {
  readonly state: State
  readonly settings: BucketSettings
  /** How often to look for buckets whose day's work is not done; 0 for never. */
  readonly intervalMs: number
}

export interface Lifecycle {
  /** Goes through all buckets once. Does not reject; a pass that is under way is not started again. */
  run(): Promise<void>
  /** Ends what is under way between two objects. */
  stop(): Promise<void>
}

/** The day's work of one bucket, done. */
interface Done {
  /** Days since 1970, UTC. */
  readonly day: number
  /** Of the rules that were carried out. */
  readonly rules: string
}

/** The claim of the proxy that does the work for all who share a state. */
const CLAIM = 'lifecycle'

/**
 * Carries out the lifecycle rules of all buckets, now and every `intervalMs`. Rules become due at midnight UTC, so one complete pass a day is enough for a bucket, and
 * another when its rules were changed: that it is done is on record, so that a restart repeats nothing. What failed or was interrupted is not on record, and is done
 * again at the next turn. Of proxies on one state one does it at a time.
 */
export function startLifecycle(options: LifecycleOptions): Lifecycle {
  const { state, settings, log, now, intervalMs } = options
  const passes = state.records<Done>('lifecycle-passes')
  let stopped = false
  let running: Promise<void> | undefined

  async function turn(): Promise<void> {
    const claim = await takeClaim(state, CLAIM, log)
    if (!claim) return
    const mayGoOn = () => !stopped && claim.held()
    try {
      const seen = new Set<string>()
      for await (const [bucket] of settings.buckets('lifecycle')) {
        if (!mayGoOn()) return
        seen.add(bucket)
        await attempt(bucket, mayGoOn)
      }
      for await (const [bucket] of passes.entries()) if (!seen.has(bucket)) await passes.delete(bucket)
    } finally {
      await claim.release()
    }
  }

  async function attempt(bucket: string, mayGoOn: () => boolean): Promise<void> {
    const day = Math.floor(now() / DAY_MS)
    try {
      const configuration = await settings.get(bucket, 'lifecycle')
      if (!configuration) return
      const rules = fingerprint(configuration)
      const done = await passes.get(bucket)
      if (done?.rules === rules && done.day >= day) return
      if (await pass(bucket, configuration, mayGoOn)) await passes.set(bucket, { day, rules })
    } catch (err) {
      if (err instanceof S3Error && err.code === 'NoSuchBucket' && (await forgetGone(bucket))) return
      log.error({ err, bucket }, 'the lifecycle rules of a bucket could not be carried out; they will be tried again')
    }
  }

  /**
   * The bucket of these rules is found gone. Where a bucket that is made again in its place could not be told from it, they end here. Resolves true when there is no more
   * to be said.
   */
  async function forgetGone(bucket: string): Promise<boolean> {
    try {
      if (await settings.isBound(bucket)) return true
      await settings.delete(bucket, 'lifecycle')
      log.warn({ bucket }, 'the lifecycle rules of a bucket that is gone were removed')
      return true
    } catch {
      return false
    }
  }

  /** Resolves true when nothing is left to do today. */
  async function pass(bucket: string, configuration: LifecycleConfiguration, mayGoOn: () => boolean): Promise<boolean> {
    const rules = fingerprint(configuration)
    const isSame = (present: LifecycleConfiguration | undefined) => !!present && fingerprint(present) === rules
    const ended = async () => !mayGoOn() || !isSame(await settings.get(bucket, 'lifecycle'))
    const isMeant = async () => isSame(await settings.confirmed(bucket, 'lifecycle'))
    const tally = await passBucket({ ...options, ended, isMeant }, bucket, configuration)
    const { expired, transitioned, aborted, failed, complete } = tally
    const level = failed > 0 ? 'warn' : expired + transitioned + aborted > 0 || !complete ? 'info' : 'debug'
    log[level]({ bucket, lifecycle: tally }, 'lifecycle rules carried out')
    return complete && failed === 0
  }

  function run(): Promise<void> {
    running ??= turn()
      .catch((err) => log.error({ err }, 'the lifecycle rules could not be read; they will be tried again'))
      .finally(() => {
        running = undefined
      })
    return running
  }

  const timer = intervalMs > 0 ? setInterval(run, intervalMs) : undefined
  timer?.unref()
  if (timer) void run()
  return {
    run,
    async stop() {
      stopped = true
      clearInterval(timer)
      await running
    },
  }
}

/** Asked for before every object; the settings give the same object for a while. */
const fingerprints = new WeakMap<LifecycleConfiguration, string>()

function fingerprint(configuration: LifecycleConfiguration): string {
  const known = fingerprints.get(configuration)
  if (known !== undefined) return known
  const made = createHash('sha256').update(JSON.stringify(configuration)).digest('base64url')
  fingerprints.set(configuration, made)
  return made
}
