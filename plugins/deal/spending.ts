import { type ExceededCap, FIL_LEDGER, type PluginState, S3Error, SpendLedger } from 'dealgate'
import { formatAmount } from './terms/amounts.js'

/** Ledger of what deals cost per day, attofil. Throws SpendCapReached for a deal that would exceed a cap. */
export class Spending extends SpendLedger {
  /** @param now ms since 1970 */
  constructor(state: Pick<PluginState, 'records' | 'locks'>, now: () => number) {
    super({ state, now, name: FIL_LEDGER, exceeded })
  }
}

function exceeded({ cap, spent, amount, bucket }: ExceededCap): S3Error {
  const of = bucket === undefined ? 'all deals together' : `the bucket ${bucket}`
  return new S3Error('SpendCapReached', {
    message:
      `The deal would cost ${formatAmount(amount)} fil. The daily cap of ${of} is ${formatAmount(cap)} fil (UTC), of which ` +
      `${formatAmount(spent)} are spent. Wait until tomorrow, or raise the cap.`,
  })
}
