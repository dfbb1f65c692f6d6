import type { Context } from '../../../src/context.js'
import { dueAfter } from '../../../src/lifecycle/rules.js'

/**
 * When a copy that comes back at `now` goes again, ms since 1970: the midnight (UTC) after so many days, as S3 has it. Null for one that stays: without days, and in gateway
 * accounts where this server gives nothing up by itself.
 */
export function expiryOf(days: number, now: number, context: Pick<Context, 'caller'>): number | null {
  return days === 0 || context.caller?.identity.account ? null : dueAfter(now, days)
}
