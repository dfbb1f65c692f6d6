import type { State } from './state.js'

/**
 * What can be kept for a bucket beside what the gateway holds of it: the type of each kind. A feature or plugin adds its own where it is defined:
 * `declare module '../state/bucket-settings.js' { interface SettingTypes { cors: CorsConfiguration } }`. Values are plain JSON.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled in by the features
export interface SettingTypes {}

export type SettingKind = keyof SettingTypes & string

/**
 * Durable settings of buckets. What is read may be up to `CACHED_MS` old where another proxy on the same state wrote it; what this proxy wrote it reads
 * at once. Failures are S3Error ServiceUnavailable. Values must not be changed by those who read them.
 */
export interface BucketSettings {
  get<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined>
  /** Durable when it resolves. */
  set<K extends SettingKind>(bucket: string, kind: K, value: SettingTypes[K]): Promise<void>
  delete(bucket: string, kind: SettingKind): Promise<void>
  /** Every bucket that has a setting of this kind, in no order, as the records are now. */
  buckets<K extends SettingKind>(kind: K): AsyncIterable<[bucket: string, value: SettingTypes[K]]>
  /** Removes all settings of a bucket: when it was deleted, and again when it was made, so that nothing is inherited from one of the same name. */
  clear(bucket: string): Promise<void>
}

/** All settings of one bucket: one record, so that they go together. */
type Settings = Readonly<Partial<Record<string, unknown>>>

/** Age at which a remembered record is read again, ms. */
export const CACHED_MS = 5_000
/** Records remembered at most. */
const CACHED_BUCKETS = 1_000

interface Remembered {
  readonly settings: Promise<Settings | undefined>
  /** ms since 1970. */
  readonly until: number
}

/** @param now present time in ms since 1970 */
export function createBucketSettings(
  state: Pick<State, 'records' | 'locks'>,
  now: () => number = Date.now,
): BucketSettings {
  const records = state.records<Settings>('bucket-settings')
  const remembered = new Map<string, Remembered>()

  function remember(bucket: string, settings: Promise<Settings | undefined>): void {
    const entry = { settings, until: now() + CACHED_MS }
    remembered.delete(bucket)
    remembered.set(bucket, entry)
    if (remembered.size > CACHED_BUCKETS) {
      const oldest = remembered.keys().next()
      if (!oldest.done) remembered.delete(oldest.value)
    }
    settings.catch(() => {
      if (remembered.get(bucket) === entry) remembered.delete(bucket)
    })
  }

  function read(bucket: string): Promise<Settings | undefined> {
    const known = remembered.get(bucket)
    if (known && now() < known.until) return known.settings
    const settings = records.get(bucket)
    remember(bucket, settings)
    return settings
  }

  /** Reads the record itself, not what is remembered: another proxy may have written since. */
  function change(bucket: string, to: (settings: Settings) => Settings): Promise<void> {
    return state.locks.withName(`bucket-settings/${bucket}`, async () => {
      const changed = to((await records.get(bucket)) ?? {})
      try {
        if (Object.keys(changed).length === 0) await records.delete(bucket)
        else await records.set(bucket, changed)
      } catch (error) {
        // It may have been written all the same.
        remembered.delete(bucket)
        throw error
      }
      remember(bucket, Promise.resolve(changed))
    })
  }

  return {
    async get<K extends SettingKind>(bucket: string, kind: K) {
      return (await read(bucket))?.[kind] as SettingTypes[K] | undefined
    },
    set: (bucket, kind, value) => change(bucket, (settings) => ({ ...settings, [kind]: value })),
    delete: (bucket, kind) => change(bucket, ({ [kind as string]: _, ...others }) => others),
    async *buckets<K extends SettingKind>(kind: K) {
      for await (const [bucket, settings] of records.entries()) {
        const value = settings[kind]
        if (value !== undefined) yield [bucket, value as SettingTypes[K]] as [string, SettingTypes[K]]
      }
    },
    clear: (bucket) => change(bucket, () => ({})),
  }
}
