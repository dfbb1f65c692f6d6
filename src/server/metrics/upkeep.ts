import { lastBackup } from '../../../common/files/last-backup.js'
import type { Metrics } from '../../../common/metrics.js'

/** A certificate that the server was given. */
export interface GivenCertificate {
  /** Its option, without dashes before it. */
  readonly option: 'tls-cert' | 'gateway-cert'
  /** Number of the certificate among those of that option, from 1. */
  readonly number: number
  /** End of its validity, ms since 1970. */
  readonly until: number
}

/** Times are seconds since 1970: https://prometheus.io/docs/practices/instrumentation/#timestamps-not-time-since */
export function backupMetrics(metrics: Metrics, data: string): void {
  metrics.gauge({
    name: 'dealgate_last_backup_timestamp_seconds',
    help: 'When the last `dealgate backup` of the data folder was taken, seconds since 1970; absent before the first one.',
    aggregator: 'max',
    read: () => {
      const taken = lastBackup(data)
      return taken === undefined ? [] : taken / 1000
    },
  })
}

/** @param read the certificates in use at the moment */
export function certificateMetrics(metrics: Metrics, read: () => readonly GivenCertificate[]): void {
  metrics.gauge({
    name: 'dealgate_certificate_expiry_timestamp_seconds',
    help: 'End of the validity of a certificate, seconds since 1970, by its option and its place among those of the option.',
    aggregator: 'max',
    read: () => read().map(({ option, number, until }) => ({ labels: { option, number }, value: until / 1000 })),
  })
}
