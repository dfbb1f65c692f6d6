import type { Logging } from '../../common/log.js'
import type { BucketSettings, SettingKind } from './bucket-settings.js'
import type { SettingTypes } from './setting-types.js'

/** The settings as one request uses them: the lines about its changes have its id. */
export class RequestSettings implements BucketSettings {
  readonly #settings: BucketSettings
  readonly #by: Logging

  constructor(settings: BucketSettings, by: Logging) {
    this.#settings = settings
    this.#by = by
  }

  get<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.get(bucket, kind)
  }

  latest<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.latest(bucket, kind)
  }

  confirmed<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.confirmed(bucket, kind, this.#by)
  }

  isBound(bucket: string): Promise<boolean> {
    return this.#settings.isBound(bucket)
  }

  set<K extends SettingKind>(bucket: string, kind: K, value: SettingTypes[K]): Promise<void> {
    return this.#settings.set(bucket, kind, value, this.#by)
  }

  delete(bucket: string, kind: SettingKind): Promise<void> {
    return this.#settings.delete(bucket, kind, this.#by)
  }

  buckets<K extends SettingKind>(kind: K): AsyncIterable<[bucket: string, value: SettingTypes[K]]> {
    return this.#settings.buckets(kind)
  }

  clear(bucket: string): Promise<void> {
    return this.#settings.clear(bucket, this.#by)
  }

  clearFormer(bucket: string): Promise<void> {
    return this.#settings.clearFormer(bucket, this.#by)
  }
}
