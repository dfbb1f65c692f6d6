/** The package's entry `dealgate`: the door, and the embedded services for programs that start them. */
import type { Services, ServicesOptions } from '../services/index.js'

export type { Services, ServicesOptions } from '../services/index.js'
export * from '../src/index.js'
/** Follows a file of key pairs, for the option `identities`. */
export {
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile,
} from './process/identities-file.js'

/** Starts the embedded services in this process. Loads their code only now: few programs that serve need it. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  return (await import('../services/index.js')).startServices(options)
}
