import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import type { Database } from '../store/database.js'
import type { PlatformLimits } from './limits.js'
import type { Market } from './market.js'
import type { PlatformTables } from './store.js'
import type { SignInAttempts, Tokens } from './tokens.js'
import type { Uploads } from './uploads.js'

export interface PlatformContext {
  /** Random; another one after the data were lost. Hex. */
  readonly id: string
  readonly limits: PlatformLimits
  /** What clients mean by `offset`: a number of records, or a page that counts from 0. */
  readonly offsets: 'records' | 'pages'
  readonly log: ServicesLog
  /** The time, Unix seconds. */
  readonly seconds: () => number
  /** ms of a monotonic clock, for limits of time. */
  readonly monotonicMs: () => number
  readonly db: Database<PlatformTables>
  readonly network: Network
  readonly tokens: Tokens
  readonly attempts: SignInAttempts
  readonly uploads: Uploads
  readonly market: Market
}
