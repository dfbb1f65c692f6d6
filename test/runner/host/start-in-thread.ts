import { startServices } from '../../../src/services/services.js'
import type { LoadingServices } from '../../../src/services/worker/start-in-worker.js'

/**
 * Stands in for `src/services/worker/start-in-worker.ts` in the host of servers: a thread of their own would load and
 * warm up the code of the services for each server anew.
 */
export function loadServices(): LoadingServices {
  return { start: (options) => startServices(options), discard: () => {} }
}

/** Not in a host: only the command line starts services there. */
export function startServicesInWorker(): never {
  throw new Error('a host starts its services in its own thread')
}
