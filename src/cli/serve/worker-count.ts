import { availableParallelism } from 'node:os'
import type { Config } from '../config/config.js'

/** Number of processes that serve requests: `--workers`, or one per core for 0. */
export function workersOf({ workers }: Pick<Config, 'workers'>): number {
  return workers === 0 ? availableParallelism() : workers
}
