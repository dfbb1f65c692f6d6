import { list, nearbyFile } from '../kinds.js'
import { option } from '../option.js'

/** The options about TLS; see `options`. */
export const tlsOptions = {
  tlsCert: option('Endpoint', list(nearbyFile), {
    default: Object.freeze([]),
    help: 'Certificate in PEM with those that lead to its authority: the S3 endpoint then serves HTTPS (TLS 1.2 and later) instead of HTTP. Repeated for several host names, each with its --tls-key. Files that change are read again.',
  }),
  tlsKey: option('Endpoint', list(nearbyFile), {
    default: Object.freeze([]),
    help: 'Private key of the certificate, in PEM without a passphrase; repeated in the order of --tls-cert.',
  }),
  gatewayCa: option('Gateway', nearbyFile, {
    help: 'Certificates of the authorities, in PEM, that the gateway at an https:// address is trusted by, instead of those that Node knows.',
  }),
  gatewayCert: option('Gateway', nearbyFile, {
    help: 'Client certificate in PEM for a gateway at an https:// address.',
  }),
  gatewayKey: option('Gateway', nearbyFile, {
    help: 'Private key of the client certificate, in PEM without a passphrase.',
  }),
} as const
