import type { AnyOperation } from '../../../plugins/forms/plugin.js'
import { getBucketNotificationConfiguration } from './get-bucket-notification-configuration.js'
import { type Destinations, putBucketNotificationConfiguration } from './put-bucket-notification-configuration.js'

/** The operations of the plugin `notifications`. */
export function notificationOperations(destinations: Destinations): readonly AnyOperation[] {
  return [putBucketNotificationConfiguration(destinations), getBucketNotificationConfiguration]
}
