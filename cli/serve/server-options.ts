import { availableParallelism } from 'node:os'
import type { Logger } from '../../common/log.js'
import type { GatewayTls } from '../../src/gateway/gateway-call.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { Certificates, type KeyPairFiles, readAuthorities, readKeyPair } from '../process/tls.js'

/** Number of processes that serve requests: `--workers`, or one per core for 0. */
export function workersOf({ workers }: Pick<Config, 'workers'>): number {
  return workers === 0 ? availableParallelism() : workers
}

/**
 * Whether each worker runs the embedded services beside its S3 endpoint. Tables in SQLite and deals with a Kubo node
 * bear one process, which is the supervisor then.
 */
export function servicesInWorkers(config: Pick<Config, 'workers' | 'gatewayUrl' | 'database' | 'kuboApi'>): boolean {
  const { gatewayUrl, database, kuboApi } = config
  return workersOf(config) > 1 && gatewayUrl === undefined && database !== undefined && kuboApi === undefined
}

/** The certificates of the S3 endpoint with their keys; none if it serves HTTP. */
export function tlsFilesOf({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>): readonly KeyPairFiles[] {
  return tlsCert.map((cert, i) => ({ cert, key: tlsKey[i] ?? '' }))
}

/** Reads other certificates. Returns what uses them from now on. Throws Failure. */
export function useCertificates(tls: Certificates | undefined, next: Config): () => void {
  try {
    return tls?.prepare(tlsFilesOf(next)) ?? (() => {})
  } catch (error) {
    throw new Failure(`Cannot serve HTTPS (--tls-cert, --tls-key): ${(error as Error).message}.`, { cause: error })
  }
}

/** The certificates of the server; undefined if it serves HTTP. Throws Failure. */
export function certificatesOf(config: Config, log: Logger): Certificates | undefined {
  const files = tlsFilesOf(config)
  if (files.length === 0) return undefined
  try {
    return new Certificates(files, log)
  } catch (error) {
    throw new Failure(`Cannot serve HTTPS (--tls-cert, --tls-key): ${(error as Error).message}.`, { cause: error })
  }
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
    throw new Failure(
      `Cannot use the certificates for the gateway (--gateway-ca, --gateway-cert, --gateway-key): ${(error as Error).message}.`,
      { cause: error },
    )
  }
}
