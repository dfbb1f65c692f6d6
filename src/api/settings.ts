import type { Logging } from '../../common/log.js'
/**
 * Settings of a bucket that the gateway cannot store: the type of each kind. A feature adds its kind where it is
 * defined, by `declare module '../api/settings.js' { interface SettingTypes { cors: CorsConfiguration } }`; a plugin
 * adds one that has its own name, by `declare module 'dealgate/plugin'`. Values are plain JSON.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled in by the features
export interface SettingTypes {}

export type SettingKind = keyof SettingTypes & string

/**
 * Durable settings of buckets. Each change is made to the record as it is in the store, whichever proxy wrote it. `get`
 * may return a value up to `CACHED_MS` old when another proxy on the same state wrote and its signal is late; a proxy
 * reads its own writes immediately. Settings belong to one particular bucket: where the gateway states when a bucket
 * was made, a bucket that was deleted and made again without this server does not inherit them. Failures are S3Error
 * ServiceUnavailable. Readers must not change the values.
 */
export interface BucketSettings {
  /**
   * Up to date where only this server makes buckets. After another client has made a bucket again, the old settings may
   * be returned for up to a minute.
   */
  get<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined>
  /** True if the record as it was read last has no such setting. Reads nothing: false where it is not known. */
  lacks(bucket: string, kind: SettingKind): boolean
  /** Like `get`, but reads the store. For settings that restrict access, and for checks before irreversible actions. */
  latest<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined>
  /**
   * Like `latest`, and asks the gateway for the bucket. For checks before irreversible actions that a setting causes,
   * and where a setting is shown. Throws S3Error also when the gateway cannot be queried.
   */
  confirmed<K extends SettingKind>(bucket: string, kind: K, logger?: Logging): Promise<SettingTypes[K] | undefined>
  /**
   * Reads the store. False when the settings cannot be distinguished from those of a bucket that is made again, because
   * the gateway does not state when buckets were made.
   */
  isBound(bucket: string): Promise<boolean>
  /**
   * Durable once it resolves. Throws S3Error also when the gateway cannot be asked which bucket this is.
   * @param logger the request, here and below: the lines about the change have its id
   */
  set<K extends SettingKind>(bucket: string, kind: K, value: SettingTypes[K], logger?: Logging): Promise<void>
  delete(bucket: string, kind: SettingKind, logger?: Logging): Promise<void>
  /** Every name of a bucket that has, or had, a setting of this kind, in no order, from the present records. */
  buckets<K extends SettingKind>(kind: K): AsyncIterable<[bucket: string, value: SettingTypes[K]]>
  /**
   * Removes all settings of a bucket: when it was deleted, and again when it was made, so that a new bucket inherits
   * nothing from an earlier one of its name.
   */
  clear(bucket: string, logger?: Logging): Promise<void>
  /**
   * Like `clear`, but keeps the settings of the bucket that exists, where the gateway states when buckets were made.
   */
  clearFormer(bucket: string, logger?: Logging): Promise<void>
}
