import type { BucketBirths } from '../gateway/bucket-births.js'
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
 * at once. Settings belong to the very bucket they were set for: where the gateway tells when a bucket was made, one that somebody has deleted and made again without
 * this server has none of them. Failures are S3Error ServiceUnavailable. Values must not be changed by those who read them.
 */
export interface BucketSettings {
  /** Where nobody else makes buckets, right at once; of a bucket that somebody else has made again the old settings may be told for another minute. */
  get<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined>
  /**
   * As `get`, but asks the gateway for the bucket first: to be used before what cannot be undone is done by a setting, and where one is shown. Throws S3Error also when the
   * gateway cannot be asked.
   */
  confirmed<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined>
  /** False when a bucket that is made again would be taken for the one that the settings were made for, because the gateway does not tell. */
  isBound(bucket: string): Promise<boolean>
  /** Durable when it resolves. Throws S3Error also when the gateway cannot be asked which bucket that is. */
  set<K extends SettingKind>(bucket: string, kind: K, value: SettingTypes[K]): Promise<void>
  delete(bucket: string, kind: SettingKind): Promise<void>
  /** Every name of a bucket that has, or had, a setting of this kind, in no order, as the records are now. */
  buckets<K extends SettingKind>(kind: K): AsyncIterable<[bucket: string, value: SettingTypes[K]]>
  /** Removes all settings of a bucket: when it was deleted, and again when it was made, so that nothing is inherited from one of the same name. */
  clear(bucket: string): Promise<void>
}

/** All settings of one bucket: one record, so that they go together. Under `BIRTH`, which is no kind, when the bucket was made. */
type Settings = Readonly<Partial<Record<string, unknown>>>

const BIRTH = '@birth'

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
  births: BucketBirths,
  now: () => number = Date.now,
): BucketSettings {
  const records = state.records<Settings>('bucket-settings')
  const remembered = new Map<string, Remembered>()
  /** Records of another bucket than the gateway has, as it said when it was asked: it need not be asked again before they are read again. */
  const refuted = new WeakSet<Settings>()

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
  function change(bucket: string, to: (settings: Settings) => Promise<Settings> | Settings): Promise<void> {
    return state.locks.withName(`bucket-settings/${bucket}`, async () => {
      const changed = await to((await records.get(bucket)) ?? {})
      const isEmpty = Object.keys(changed).every((kind) => kind === BIRTH)
      try {
        if (isEmpty) await records.delete(bucket)
        else await records.set(bucket, changed)
      } catch (error) {
        // It may have been written all the same.
        remembered.delete(bucket)
        throw error
      }
      remember(bucket, Promise.resolve(isEmpty ? undefined : changed))
    })
  }

  /** As `change`, of the settings of the bucket that there is now. */
  function changePresent(bucket: string, to: (settings: Settings) => Settings): Promise<void> {
    return change(bucket, async (settings) => {
      const birth = await births.now(bucket)
      const changed = to(isOf(settings, birth) ? settings : {})
      return birth === undefined ? changed : { ...changed, [BIRTH]: birth }
    })
  }

  /** Whether the settings are those of the bucket that there was lately. */
  async function applies(settings: Settings, bucket: string): Promise<boolean> {
    const birth = await births.lately(bucket)
    if (isOf(settings, birth)) return true
    // Another proxy on this state may know of a bucket that is younger than what was asked for lately.
    if (String(settings[BIRTH]) < String(birth) || refuted.has(settings)) return false
    if (isOf(settings, await births.now(bucket).catch(() => undefined))) return true
    refuted.add(settings)
    return false
  }

  return {
    async get<K extends SettingKind>(bucket: string, kind: K) {
      const settings = await read(bucket)
      if (settings?.[kind] === undefined || !(await applies(settings, bucket))) return undefined
      return settings[kind] as SettingTypes[K]
    },
    async confirmed<K extends SettingKind>(bucket: string, kind: K) {
      const settings = await read(bucket)
      if (settings?.[kind] === undefined) return undefined
      const birth = await births.now(bucket)
      if (!isOf(settings, birth)) return undefined
      // Kept before the gateway told.
      if (settings[BIRTH] === undefined && birth !== undefined) await changePresent(bucket, (same) => same)
      return settings[kind] as SettingTypes[K]
    },
    isBound: async (bucket) => (await read(bucket))?.[BIRTH] !== undefined,
    set: (bucket, kind, value) => changePresent(bucket, (settings) => ({ ...settings, [kind]: value })),
    delete: (bucket, kind) => changePresent(bucket, ({ [kind as string]: _, ...others }) => others),
    async *buckets<K extends SettingKind>(kind: K) {
      for await (const [bucket, settings] of records.entries()) {
        const value = settings[kind]
        if (value !== undefined) yield [bucket, value as SettingTypes[K]] as [string, SettingTypes[K]]
      }
    },
    clear: (bucket) => change(bucket, () => ({})),
  }
}

/** What cannot be told counts as the same: it is what there is on most gateways. */
function isOf(settings: Settings, birth: string | undefined): boolean {
  return settings[BIRTH] === undefined || birth === undefined || settings[BIRTH] === birth
}
