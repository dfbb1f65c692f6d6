declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    notifications: NotificationConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html */
export interface NotificationConfiguration {
  /** Canonical user id of the bucket's owner, for events. */
  readonly owner: string
  readonly rules: readonly NotificationRule[]
}

/** Kinds of destinations in the S3 API; all of them name webhooks here. */
export const DESTINATION_KINDS = ['Topic', 'Queue', 'CloudFunction'] as const
export type DestinationKind = (typeof DESTINATION_KINDS)[number]

export interface NotificationRule {
  readonly id: string
  readonly kind: DestinationKind
  /** Name of the webhook. */
  readonly webhook: string
  /** Events as the client sent them: `s3:ObjectCreated:*`. */
  readonly events: readonly string[]
  /** Prefix of keys; absent for any. */
  readonly prefix?: string
  readonly suffix?: string
}
