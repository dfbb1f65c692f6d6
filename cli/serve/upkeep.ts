import { X509Certificate } from 'node:crypto'
import { lastBackup } from '../../common/files/last-backup.js'
import type { Metrics } from '../../common/metrics.js'
import type { GivenCertificate, Upkeep } from '../../plugins/upkeep/index.js'
import type { Config } from '../config/config.js'
import type { Certificates } from '../process/tls.js'
import { gatewayTlsOf } from './server-options.js'

/**
 * What the operator of this server must renew in time.
 * @param tls the certificates of the S3 endpoint
 * @throws Failure for certificates that cannot be read
 */
export function upkeepOf(config: Config, tls: Certificates | undefined): Upkeep {
  return { lastBackup: () => lastBackup(config.data), certificates: givenCertificates(config, tls) }
}

/** Reads the ends of the certificates in use: those of the S3 endpoint and that for the gateway. Throws Failure. */
function givenCertificates(config: Config, tls: Certificates | undefined): Upkeep['certificates'] {
  const client = gatewayTlsOf(config)?.cert
  const ofGateway = client === undefined ? [] : [Date.parse(new X509Certificate(client).validTo)]
  const of = (option: GivenCertificate['option'], ends: readonly number[]) =>
    ends.map((until, i): GivenCertificate => ({ option, number: i + 1, until }))
  return () => [...of('tls-cert', tls?.expiries() ?? []), ...of('gateway-cert', ofGateway)]
}

/** Times are seconds since 1970: https://prometheus.io/docs/practices/instrumentation/#timestamps-not-time-since */
export function upkeepMetrics(metrics: Metrics, { lastBackup, certificates }: Upkeep): void {
  metrics.gauge({
    name: 'dealgate_last_backup_timestamp_seconds',
    help: 'When the last `dealgate backup` of the data folder was taken, seconds since 1970; absent before the first one.',
    aggregator: 'max',
    read: () => {
      const taken = lastBackup()
      return taken === undefined ? [] : taken / 1000
    },
  })
  metrics.gauge({
    name: 'dealgate_certificate_expiry_timestamp_seconds',
    help: 'End of the validity of a certificate, seconds since 1970, by its option and its place among those of the option.',
    aggregator: 'max',
    read: () =>
      certificates().map(({ option, number, until }) => ({ labels: { option, number }, value: until / 1000 })),
  })
}
