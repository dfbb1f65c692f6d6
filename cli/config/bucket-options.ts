import { batchDefaults } from '../../plugins/batch/defaults.js'
import { addressing } from '../../src/http/addressing.js'
import { defaultBucketLogBytes, defaultPeriods } from '../../src/server/limits.js'
import { checkedText, integer, list, portOrOff, time, webhook, webhookSecret } from './kinds.js'
import { option } from './option.js'
import { inventoryOptions } from './option-groups.js'

export const domain = checkedText('host', 'a host name without port, and no IP address', (value) =>
  addressing({ domains: [value] }),
)

/** The options of what buckets can be told to do; see `options`. */
export const bucketOptions = {
  lifecycleIntervalMs: option('Buckets', time('minutes', 0, 1440), {
    default: defaultPeriods.lifecycleIntervalMs,
    help: 'Interval at which lifecycle rules, which are due at midnight UTC, are checked; 0 disables them.',
  }),
  ...inventoryOptions,
  batchRate: option('Buckets', integer(1, 1_000_000), {
    default: batchDefaults.rate,
    unit: 'requests per second',
    help: 'Requests that the batch jobs of a process make together.',
  }),
  webhook: option('Buckets', list(webhook), {
    live: true,
    default: Object.freeze([]),
    secret: true,
    help: 'Destination of bucket notifications, addressed as `arn:dealgate:webhook:::name`.',
  }),
  webhookSecret: option('Buckets', list(webhookSecret), {
    live: true,
    default: Object.freeze([]),
    secret: true,
    help: 'Key that signs notifications to the webhook of that name.',
  }),
  notificationMaxAgeMs: option('Buckets', time('hours', 1, 336), {
    default: 24 * 3600 * 1000,
    help: 'Undelivered notifications are dropped after this time.',
  }),

  bucketLogIntervalMs: option('Buckets', time('seconds', 1, 3600), {
    default: defaultPeriods.bucketLogIntervalMs,
    help: 'Time after which the access log of a bucket is written into its target bucket; every 4 MiB of it earlier.',
  }),
  bucketLogBytes: option('Buckets', integer(1024 * 1024, 1024 ** 4), {
    default: defaultBucketLogBytes,
    unit: 'bytes',
    help: 'Most bytes of such logs that wait in the data folder while their targets do not take them; the oldest are dropped then.',
  }),

  websitePort: option('Buckets', portOrOff, {
    default: 'off',
    help: 'Port of the websites of buckets (PutBucketWebsite), on the address of the S3 endpoint; 0 selects a free port. Pages run scripts there, and nowhere else.',
  }),
  websiteDomain: option('Buckets', list(domain), {
    default: Object.freeze(['localhost']),
    help: 'Name below which each bucket is the host of its website, `photos.localhost`. A bucket that is named as a host is a website there, too.',
  }),
} as const
