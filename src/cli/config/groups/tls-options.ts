import { list } from '../kinds.js'
import { option } from '../option.js'
import { path } from '../values.js'

/** The options about TLS; see `options`. */
export const tlsOptions = {
  tlsCert: option('Endpoint', list(path), {
    default: Object.freeze([]),
    help: 'Certificate in PEM with those that lead to its authority: the S3 endpoint then serves HTTPS (TLS 1.2 and later) instead of HTTP. Repeated for several host names, each with its --tls-key. Files that change are read again.',
  }),
  tlsKey: option('Endpoint', list(path), {
    default: Object.freeze([]),
    help: 'Private key of the certificate, in PEM without a passphrase; repeated in the order of --tls-cert.',
  }),
  gatewayCa: option('Gateway', path, {
    help: 'Certificates of the authorities, in PEM, that the gateway at an https:// address is trusted by, instead of those that Node knows.',
  }),
  gatewayCert: option('Gateway', path, {
    help: 'Client certificate in PEM for a gateway at an https:// address.',
  }),
  gatewayKey: option('Gateway', path, { help: 'Private key of the client certificate, in PEM without a passphrase.' }),
} as const
