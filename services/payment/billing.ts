import { DAY_SECONDS } from '../../common/time.js'
import { signerOfText } from './addresses.js'
import { epochsOf, PAYABLE_DAYS } from './contents/retention.js'
import type { PaymentContext } from './context.js'
import { AlreadyPaid } from './embedded-payments.js'
import { PaymentError } from './errors.js'
import { InsufficientFunds, type Lock, type PaymentOrder } from './ledger.js'
import { MAX_LOCK_DAYS } from './prices.js'
import type { UploadRow } from './uploads/upload-table.js'

/**
 * What a wallet signs by `personal_sign` to pay for an upload in the embedded ledger.
 * @param amount millionths of a stable coin
 * @param networkName of the service
 */
export function paymentOrderText(wCid: string, amount: bigint, networkName: string): string {
  return `Lock ${amount} millionths of a stable coin for ${wCid} on ${networkName}`
}

interface SignedOrder {
  readonly wCid: string
  /** Millionths of a stable coin. */
  readonly amount: bigint
  /** Signature of `paymentOrderText`. */
  readonly signature: string
}

/**
 * Locks a payment in the embedded ledger, by an order that the wallet of the upload has signed. A repeated order is the
 * payment of the first. Rejects with PaymentError: `unauthorized`, `conflict` or `value`.
 */
export async function payBySignedOrder(
  context: PaymentContext,
  ledger: NonNullable<PaymentContext['ledger']>,
  { wCid, amount, signature }: SignedOrder,
): Promise<Lock> {
  const signer = signerOfText(paymentOrderText(wCid, amount, context.networkName), signature)
  const stranger = () => new PaymentError('unauthorized', 'the order is not signed by the wallet of such an upload')
  if (signer === undefined) throw stranger()
  const times = paymentTimes(context)
  return context.db
    .transaction(async (tables) => {
      const upload = await tables.uploads.findByWCid(wCid)
      // The signature tells who pays: a stranger learns nothing of an upload.
      if (upload === undefined || upload.wallet !== signer) throw stranger()
      if (upload.isFree === 1) throw new PaymentError('conflict', 'the upload is free')
      // The ledger reports what was paid already: as the same order, or as another one.
      if ((await tables.locks.find(wCid)) === undefined) requirePayable(context, upload, amount)
      const lock = await ledger.payWithin(tables, { wCid, wallet: upload.wallet, amount, ...times })
      await tables.progress.markPaid(wCid)
      return lock
    })
    .catch(refused)
}

/** An upload is removed a while after it can be paid for. */
function requirePayable({ network }: PaymentContext, { price, createdEpoch, place }: UploadRow, amount: bigint): void {
  if (amount < BigInt(price)) throw new PaymentError('value', `pay_amount must be at least ${price} for this upload`)
  if (place === 'gone') throw new PaymentError('conflict', 'the content of the upload is lost: upload it again')
  if (network.epoch() - createdEpoch >= epochsOf(PAYABLE_DAYS, network)) {
    throw new PaymentError('conflict', `an upload can be paid for within ${PAYABLE_DAYS} days: upload it again`)
  }
}

function paymentTimes({
  network,
  seconds,
}: PaymentContext): Pick<PaymentOrder, 'paidAt' | 'deadline' | 'deadlineEpoch'> {
  const paidAt = seconds()
  const lockSeconds = MAX_LOCK_DAYS * DAY_SECONDS
  const deadlineEpoch = network.epoch() + Math.ceil(lockSeconds / network.epochSeconds)
  return { paidAt, deadline: paidAt + lockSeconds, deadlineEpoch }
}

function refused(error: unknown): never {
  if (error instanceof AlreadyPaid) throw new PaymentError('conflict', error.message)
  if (error instanceof InsufficientFunds) throw new PaymentError('conflict', `${error.message} Fund the wallet first.`)
  throw error
}
