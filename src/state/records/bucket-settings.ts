import { LRUCache } from 'lru-cache'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logging } from '../../../common/log.js'
import { CacheUse } from '../../../common/metrics.js'
import type { RequireOwner } from '../../api/access.js'
import type { CreationTimes } from '../../api/gateway.js'
import type { BucketSettings, SettingKind, SettingTypes } from '../../api/settings.js'
import type { State } from '../../api/state.js'

/**
 * All settings of one bucket in one record, so that they change together. `@birth`, which is not a kind, holds the time
 * when the bucket was made.
 */
type Settings = Readonly<Partial<Record<string, unknown>>>

const CREATION_TIME = '@birth'

/**
 * Age at which a cached record is read again, ms: a change is seen by all proxies within a second, also when the signal
 * of it is lost.
 */
export const CACHED_MS = 900

/** Most cached records. */
const MAX_CACHED = 1_000

interface Remembered {
  readonly settings: Promise<Settings | undefined>
  /** The result of `settings`; null before it is there. */
  found: Settings | undefined | null
  /** Milliseconds since 1970. */
  readonly until: number
}

/** Most buckets have few settings, and each request asks for several. */
const NONE = Promise.resolve(undefined)

/**
 * @param now present time, milliseconds since 1970
 * @param use counts looks into the cache
 * @param onRead called with the settings of a bucket, by kind, when they have been read from the store
 */
export function createBucketSettings(
  state: Pick<State, 'records' | 'locks'> & Partial<Pick<State, 'signals'>>,
  creationTimes: CreationTimes,
  now: () => number = Date.now,
  use: CacheUse = new CacheUse(),
  onRead?: (bucket: string, settings: object) => void,
): BucketSettings {
  const records = state.records<Settings>('bucket-settings')
  const remembered = new LRUCache<string, Remembered>({ max: MAX_CACHED })
  /**
   * Records that belong to another bucket than the present one, as the gateway said. The gateway need not be asked
   * again until they are read again.
   */
  const refuted = new WeakSet<Settings>()

  // What is being read now may be older than the change: its entry goes, too.
  state.signals?.on(
    'settings',
    (bucket) => remembered.delete(bucket),
    () => remembered.clear(),
  )

  function remember(bucket: string, settings: Promise<Settings | undefined>): void {
    const entry: Remembered = { settings, found: null, until: now() + CACHED_MS }
    remembered.set(bucket, entry)
    settings.then(
      (found) => {
        entry.found = found
      },
      () => {
        if (remembered.get(bucket) === entry) remembered.delete(bucket)
      },
    )
  }

  function recent(bucket: string): Remembered | undefined {
    const known = remembered.get(bucket)
    return known && now() < known.until ? known : undefined
  }

  function readAnew(bucket: string): Promise<Settings | undefined> {
    const reading = records.get(bucket)
    const settings = onRead ? reading.then((found) => seen(bucket, found)) : reading
    remember(bucket, settings)
    return settings
  }

  function seen(bucket: string, found: Settings | undefined): Settings | undefined {
    if (found) onRead?.(bucket, found)
    return found
  }

  /**
   * Changes the record as it is in the store: a lock can be lost, and the change must not overwrite what another proxy
   * has written.
   */
  function change(
    bucket: string,
    logger: Logging | undefined,
    to: (settings: Settings) => Promise<Settings> | Settings,
  ): Promise<void> {
    const run = async () => {
      const changing = records.change(bucket, async (settings) => {
        const changed = await to(settings ?? {})
        return Object.keys(changed).every((kind) => kind === CREATION_TIME) ? undefined : changed
      })
      try {
        remember(bucket, Promise.resolve(await changing))
      } catch (error) {
        // The write may have succeeded anyway.
        remembered.delete(bucket)
        throw error
      } finally {
        state.signals?.send('settings', bucket)
      }
    }
    return state.locks.withName(`bucket-settings/${bucket}`, run, { logger })
  }

  /** Like `change`, for the settings of the present bucket. */
  function changePresent(
    bucket: string,
    logger: Logging | undefined,
    to: (settings: Settings) => Settings,
  ): Promise<void> {
    return change(bucket, logger, async (settings) => {
      const creationTime = await creationTimes.now(bucket)
      const changed = to(isOf(settings, creationTime) ? settings : {})
      return creationTime === undefined ? changed : { ...changed, [CREATION_TIME]: creationTime }
    })
  }

  /** True when the settings belong to the bucket that existed recently. */
  async function applies(settings: Settings, bucket: string): Promise<boolean> {
    const creationTime = await creationTimes.cached(bucket)
    if (isOf(settings, creationTime)) return true
    // Another proxy on this state may know a bucket that is younger than the cached answer.
    if (String(settings[CREATION_TIME]) < String(creationTime) || refuted.has(settings)) return false
    if (isOf(settings, await creationTimes.now(bucket).catch(() => undefined))) return true
    refuted.add(settings)
    return false
  }

  async function of<K extends SettingKind>(settings: Settings | undefined, bucket: string, kind: K) {
    if (settings?.[kind] === undefined || !(await applies(settings, bucket))) return undefined
    return settings[kind] as SettingTypes[K]
  }

  return {
    get(bucket, kind) {
      const known = recent(bucket)
      use.count(known !== undefined)
      if (known && known.found !== null && known.found?.[kind] === undefined) return NONE
      return (known?.settings ?? readAnew(bucket)).then((settings) => of(settings, bucket, kind))
    },
    lacks(bucket, kind) {
      const known = remembered.peek(bucket)
      return known !== undefined && known.found !== null && known.found?.[kind] === undefined
    },
    latest: async (bucket, kind) => of(await readAnew(bucket), bucket, kind),
    async confirmed<K extends SettingKind>(bucket: string, kind: K, logger?: Logging) {
      const settings = await readAnew(bucket)
      if (settings?.[kind] === undefined) return undefined
      const creationTime = await creationTimes.now(bucket)
      if (!isOf(settings, creationTime)) return undefined
      // Stored before the gateway stated the time.
      if (settings[CREATION_TIME] === undefined && creationTime !== undefined)
        await changePresent(bucket, logger, (same) => same)
      return settings[kind] as SettingTypes[K]
    },
    isBound: async (bucket) => (await readAnew(bucket))?.[CREATION_TIME] !== undefined,
    set: (bucket, kind, value, logger) => changePresent(bucket, logger, (settings) => ({ ...settings, [kind]: value })),
    delete: (bucket, kind, logger) => changePresent(bucket, logger, ({ [kind as string]: _, ...others }) => others),
    async *buckets<K extends SettingKind>(kind: K) {
      for await (const [bucket, settings] of records.entries()) {
        const value = settings[kind]
        if (value !== undefined) yield [bucket, value as SettingTypes[K]] as [string, SettingTypes[K]]
      }
    },
    clear: (bucket, logger) => change(bucket, logger, () => ({})),
    clearFormer: (bucket, logger) =>
      change(bucket, logger, async (settings) => {
        const creationTime = await creationTimes.now(bucket)
        return creationTime !== undefined && settings[CREATION_TIME] === creationTime ? settings : {}
      }),
  }
}

/** Unknown times count as equal, because most gateways state none. */
function isOf(settings: Settings, creationTime: string | undefined): boolean {
  return settings[CREATION_TIME] === undefined || creationTime === undefined || settings[CREATION_TIME] === creationTime
}

/**
 * The settings as a request or job sees them: only an account that owns the bucket can set or remove one, whatever the
 * operation checks. The server acts on settings with its own account, so a foreign account that sets one would delete
 * or pay with another account's rights. Lists every method by name, so that a new method of BucketSettings does not
 * compile before its access is decided. `clear` also accepts a bucket that does not exist, because DeleteBucket clears
 * the settings after the bucket is gone.
 */
export function ownedSettings(settings: BucketSettings, requireOwner: RequireOwner): BucketSettings {
  return {
    get: settings.get,
    lacks: settings.lacks,
    latest: settings.latest,
    confirmed: settings.confirmed,
    isBound: settings.isBound,
    buckets: settings.buckets,
    async set(bucket, kind, value, logger) {
      await requireOwner(bucket)
      await settings.set(bucket, kind, value, logger)
    },
    async delete(bucket, kind, logger) {
      await requireOwner(bucket)
      await settings.delete(bucket, kind, logger)
    },
    async clear(bucket, logger) {
      await requireOwner(bucket).catch((error) => {
        if (!(error instanceof S3Error) || error.code !== 'NoSuchBucket') throw error
      })
      await settings.clear(bucket, logger)
    },
    async clearFormer(bucket, logger) {
      await requireOwner(bucket)
      await settings.clearFormer(bucket, logger)
    },
  }
}
