import type { Tag } from '../state/state.js'

declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    lifecycle: LifecycleConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html */
export interface LifecycleConfiguration {
  readonly rules: readonly LifecycleRule[]
  /** Which objects are too small for transitions, where a rule says nothing of size. */
  readonly minimumTransitionSize: MinimumTransitionSize
}

export const MINIMUM_TRANSITION_SIZES = ['all_storage_classes_128K', 'varies_by_storage_class'] as const
export type MinimumTransitionSize = (typeof MINIMUM_TRANSITION_SIZES)[number]

export interface LifecycleRule {
  readonly id: string
  readonly enabled: boolean
  readonly filter: LifecycleFilter
  readonly expiration?: When | ExpiredMarkers
  readonly transitions?: readonly (When & { readonly storageClass: string })[]
  /** Days after which an upload that was not completed is aborted. */
  readonly abortDays?: number
}

/** Days since the object was made, or a date in ms since 1970, midnight UTC. */
export type When = { readonly days: number } | { readonly date: number }

/** ExpiredObjectDeleteMarker: of delete markers without versions, of which a store without versions has none. */
export interface ExpiredMarkers {
  readonly expiredMarkers: boolean
}

/** Which objects a rule is about: those that fit all that is there. */
export interface LifecycleFilter {
  /** How it was written, and is shown again: as `<Prefix>` of the rule, as `<Filter>`, or as `<Filter><And>`. */
  readonly form: 'prefix' | 'filter' | 'and'
  readonly prefix?: string
  readonly tags?: readonly Tag[]
  /** Bytes, exclusive. */
  readonly greaterThan?: number
  /** Bytes, exclusive. */
  readonly lessThan?: number
}
