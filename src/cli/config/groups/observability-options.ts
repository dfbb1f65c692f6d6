import { host, list, port, text } from '../kinds.js'
import { option } from '../option.js'

/** The options by which an operator sees what the server does; see `options`. */
export const observabilityOptions = {
  metricsPort: option('Metrics', port, {
    help: 'Port that serves the metrics for Prometheus, at `/-/metrics`, without a signature; 0 selects a free port. Without it, callers with all rights of the account of the server read them at the S3 endpoint.',
  }),
  metricsHost: option('Metrics', host, { default: '127.0.0.1', help: 'Address of that port.' }),
  metricsBuckets: option('Metrics', list(text('bucket', 'the name of a bucket', /^[a-z0-9.-]{3,63}$/)), {
    default: Object.freeze([]),
    help: 'Bucket whose requests and bytes are counted under its name. No other bucket is named in the metrics.',
  }),
} as const
