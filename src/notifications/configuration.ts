declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    notifications: NotificationConfiguration
  }
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html */
export interface NotificationConfiguration {
  /** Canonical user id of the bucket's owner, as events tell it. */
  readonly owner: string
  readonly rules: readonly NotificationRule[]
}

/** As what a destination may be given; to us all are webhooks. */
export const DESTINATION_KINDS = ['Topic', 'Queue', 'CloudFunction'] as const
export type DestinationKind = (typeof DESTINATION_KINDS)[number]

export interface NotificationRule {
  readonly id: string
  readonly kind: DestinationKind
  /** Name of the webhook. */
  readonly webhook: string
  /** As they were given: `s3:ObjectCreated:*`. */
  readonly events: readonly string[]
  /** Of keys; absent for any. */
  readonly prefix?: string
  readonly suffix?: string
}
