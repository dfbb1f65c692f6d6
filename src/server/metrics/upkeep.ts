import { z } from 'zod'
import { lastBackup } from '../../../common/files/last-backup.js'
import type { Metrics } from '../../../common/metrics.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import { requireOwnAccount } from '../manage/operators.js'

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

export interface UpkeepDeps {
  readonly data?: string | undefined
  /** The certificates in use at the moment. */
  readonly certificates?: (() => readonly GivenCertificate[]) | undefined
}

/** The call that tells what an operator must renew in time. */
export function upkeepCall({ data, certificates }: UpkeepDeps) {
  return defineCall({
    name: 'GetUpkeep',
    source: 'docs/observability.md#upkeep',
    summary: 'Returns when the last backup was taken, and until when the certificates of the server are valid.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/upkeep/v1' },
    result: z.object({
      LastBackup: z.iso.datetime().optional().describe('Of the data folder; absent before the first one.'),
      Certificates: z
        .array(
          z.object({
            Option: z.enum(['tls-cert', 'gateway-cert']),
            Number: z.int().describe('Its place among those of the option, from 1.'),
            ValidUntil: z.iso.datetime(),
          }),
        )
        .meta({ element: 'Certificate' }),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      const taken = data === undefined ? undefined : lastBackup(data)
      return {
        ...(taken !== undefined && { LastBackup: new Date(taken).toISOString() }),
        Certificates: (certificates?.() ?? []).map(({ option, number, until }) => ({
          Option: option,
          Number: number,
          ValidUntil: new Date(until).toISOString(),
        })),
      }
    },
  })
}
