import { choice, host, list, path, port, text } from '../kinds.js'
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

/** The options of files that are logged to; see `options`. */
export const logFileOptions = {
  accessLogFile: option('Logs', path, {
    help: 'File that the access log is appended to, instead of standard error. SIGUSR2 makes the server open its log files again, for programs that rotate them.',
  }),
  accessLogFormat: option('Logs', choice('json', 's3'), {
    default: 'json',
    help: 'Format of the access log: JSON, or that of the server access logs of S3, for which --access-log-file is needed.',
  }),
  auditLog: option('Logs', path, {
    help: 'File that one line of JSON is appended to for each change of access or settings and each job, with who made it; on the disk before the answer. Commands that change keys, accounts and wallets add theirs.',
  }),
} as const
