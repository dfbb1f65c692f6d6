import { ReportedAlready, S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { Rpc } from '../calls/rpc.js'

export type AccountSource = GatewayAccount | (() => Promise<GatewayAccount>)

export interface LogInOptions {
  readonly rpc: Rpc
  readonly account: AccountSource
  /** Keys of accounts that have changed. */
  readonly keys?: AccountKeys | undefined
  readonly now: () => number
  readonly log: Logger
}

/** Cause of the S3Error for an account whose log-in the gateway refuses. */
export class LogInRefused extends ReportedAlready {}

/** True when a call failed because the gateway refuses the log-in, as opposed to the call itself. */
export function isLogInRefused(error: unknown): boolean {
  return error instanceof S3Error && error.cause instanceof LogInRefused
}

/**
 * Pause after a refused log-in before the next attempt, ms: the gateway may count wrong log-ins, and a wrong key pair
 * stays wrong.
 */
export const PAUSE_MS = 5_000
/** A lasting refusal is logged once per this interval, ms. */
export const LOG_EVERY_MS = 60_000

export function isDenied(error: unknown): error is S3Error {
  return error instanceof S3Error && error.code === 'AccessDenied'
}

/**
 * Keeps the keys of gateway accounts durably while they change, so that a crash at any point leaves keys that the
 * gateway accepts.
 */
export interface AccountKeys {
  /** The current keys of the account that had these; the same if they have not changed. */
  latest(account: GatewayAccount): GatewayAccount
  /** Keys that the gateway may have accepted in place of the current ones of the account. */
  pending(current: GatewayAccount): readonly GatewayAccount[]
  /**
   * Records, durably, that the gateway is about to be asked for `next` in place of `current`. Throws S3Error when that
   * is impossible; nothing may be asked then.
   */
  prepare(current: GatewayAccount, next: GatewayAccount): Promise<void>
  /** Makes `next` the current keys, durably, wherever they are kept. Throws when some place could not be changed. */
  confirm(current: GatewayAccount, next: GatewayAccount): Promise<void>
  /** Forgets what replaced these keys, because the gateway accepts them again. */
  restore(former: GatewayAccount): Promise<void>
  /** Forgets `next`, which the gateway has refused. */
  withdraw(current: GatewayAccount, next: GatewayAccount): Promise<void>
}
