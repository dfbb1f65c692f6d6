/** The package's entry `dealgate`: the door, and the embedded services for programs that start them. */
import type { Services, ServicesOptions } from '../services/index.js'
import { createProxy as createDoor } from '../src/server/create-proxy.js'
import type { ProxyOptions as DoorOptions, Proxy as S3Proxy } from '../src/server/proxy-options.js'

export type { Services, ServicesOptions } from '../services/index.js'
export * from '../src/index.js'
/** Follows a file of key pairs, for the option `identities`. */
export {
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile,
} from './process/identities-file.js'

/** Options of `createProxy`. */
export interface ProxyOptions extends Omit<DoorOptions, 'passthrough'> {
  /** Also serve the gateway's own paths (`/gateway/...`): JSON-RPC and web pages, never object data. Default false. */
  passthrough?: boolean
}

/** Opens a proxy: a handler of requests that speaks S3 and calls one object gateway. */
export async function createProxy({ passthrough, ...options }: ProxyOptions): Promise<S3Proxy> {
  if (!passthrough) return createDoor(options)
  const { createPassthrough } = await import('./passthrough/passthrough.js')
  return createDoor({ ...options, passthrough: createPassthrough })
}

/** Starts the embedded services in this process. Loads their code only now: few programs that serve need it. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  return (await import('../services/index.js')).startServices(options)
}
