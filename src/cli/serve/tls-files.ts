import type { GatewayTls } from '../../gateway/gateway-tls.js'
import { type KeyPairFiles, readAuthorities, readKeyPair } from '../../server/tls/key-pair.js'
import type { Config } from '../config/config.js'
import { Failure } from '../failure.js'

/** The certificates of the S3 endpoint with their keys; none if it serves HTTP. */
export function tlsFilesOf({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>): readonly KeyPairFiles[] {
  return tlsCert.map((cert, i) => ({ cert, key: tlsKey[i] ?? '' }))
}

/** Reads the authorities and the client certificate for the gateway. Throws Failure. */
export function gatewayTlsOf({ gatewayCa, gatewayCert, gatewayKey }: Config): GatewayTls | undefined {
  if (gatewayCa === undefined && gatewayCert === undefined) return undefined
  try {
    const ca = gatewayCa === undefined ? {} : { ca: readAuthorities(gatewayCa) }
    if (gatewayCert === undefined || gatewayKey === undefined) return ca
    const { cert, key } = readKeyPair({ cert: gatewayCert, key: gatewayKey })
    return { ...ca, cert, key }
  } catch (error) {
    throw new Failure(`Cannot use the certificates for the gateway: ${(error as Error).message}.`, { cause: error })
  }
}
