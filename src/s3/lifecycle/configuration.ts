import type { Owned } from '../../access/door/documents.js'
import type { Tag } from '../../state/state.js'

declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    lifecycle: LifecycleConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html */
export interface LifecycleConfiguration {
  readonly rules: readonly LifecycleRule[]
  /** Determines which objects are too small for transitions of rules without a size condition. */
  readonly minimumTransitionSize: MinimumTransitionSize
  /** The account that owns the bucket, whose rights the rules have; absent: the server's own. */
  readonly owned?: Owned
}

export const MINIMUM_TRANSITION_SIZES = ['all_storage_classes_128K', 'varies_by_storage_class'] as const
export type MinimumTransitionSize = (typeof MINIMUM_TRANSITION_SIZES)[number]

export interface LifecycleRule {
  readonly id: string
  readonly enabled: boolean
  readonly filter: LifecycleFilter
  readonly expiration?: When | ExpiredMarkers
  readonly transitions?: readonly (When & { readonly storageClass: string })[]
  /** Days after which an incomplete upload is aborted. */
  readonly abortDays?: number
}

/** Days since the creation of the object, or a date in ms since 1970, midnight UTC. */
export type When = { readonly days: number } | { readonly date: number }

/** ExpiredObjectDeleteMarker. It has no effect, because a store without versions has no delete markers. */
export interface ExpiredMarkers {
  readonly expiredMarkers: boolean
}

/** Selects the objects of a rule: those that match all given conditions. */
export interface LifecycleFilter {
  /** Form in which the filter was sent, and is returned: `<Prefix>` of the rule, `<Filter>` or `<Filter><And>`. */
  readonly form: 'prefix' | 'filter' | 'and'
  readonly prefix?: string
  readonly tags?: readonly Tag[]
  /** Bytes, exclusive. */
  readonly greaterThan?: number
  /** Bytes, exclusive. */
  readonly lessThan?: number
}
