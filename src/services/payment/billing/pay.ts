import { DAY_SECONDS } from '../../../common/durations.js'
import { epochsOf, PAYABLE_DAYS } from '../contents/retention.js'
import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { readJson } from '../http/json-body.js'
import { AlreadyPaid, type EmbeddedPayments } from '../ledger/embedded-payments.js'
import { InsufficientFunds } from '../ledger/ledger.js'
import type { Lock } from '../ledger/payments.js'
import { signerOfText } from '../sign-in/personal-sign.js'
import { LOCK_DAYS } from '../system/coin.js'
import type { Upload } from '../uploads/upload-table.js'
import { paymentOrderText } from './payment-order.js'

/**
 * POST /billing/deal/lockpayment: locks a payment in the embedded ledger, by an order that the wallet of the upload has
 * signed. A repeated order is the payment of the first.
 */
export async function pay(exchange: Exchange): Promise<object> {
  const { context } = exchange
  const { ledger, addresses } = context
  if (ledger === undefined) {
    throw new PaymentError('conflict', `payments are made on the chain: call lockTokenPayment of ${addresses.payment}`)
  }
  const fields = await readJson(exchange)
  const wCid = fields.required('w_cid')
  const amount = readAmount(fields.required('pay_amount'))
  const signer = signerOfText(paymentOrderText(wCid, amount, context.networkName), fields.required('signature'))
  const upload = context.uploads.findByWCid(wCid)
  // The signature tells who pays: a stranger learns nothing of an upload.
  if (signer === undefined || upload === undefined || upload.wallet !== signer) {
    throw new PaymentError('unauthorized', 'the order is not signed by the wallet of such an upload')
  }
  if (upload.isFree === 1) throw new PaymentError('conflict', 'the upload is free')
  // What was paid already is told by the ledger: as the same order, or as another one.
  if (context.payments.find(wCid) === undefined && amount < BigInt(upload.price)) {
    throw new PaymentError('value', `pay_amount must be at least ${upload.price} for this upload`)
  }
  if (context.payments.find(wCid) === undefined) requirePayable(context, upload)
  const { hash } = await lock(exchange, ledger, upload, amount)
  await context.writer.run(() => context.progress.markPaid(wCid))
  return { w_cid: wCid, pay_amount: String(amount), pay_tx_hash: hash, token_address: addresses.stable }
}

/** An upload is removed a while after it can be paid for. */
function requirePayable({ network }: Exchange['context'], { createdEpoch, place }: Upload): void {
  if (place === 'gone') throw new PaymentError('conflict', 'the content of the upload is lost: upload it again')
  if (network.epoch() - createdEpoch >= epochsOf(PAYABLE_DAYS, network)) {
    throw new PaymentError('conflict', `an upload can be paid for within ${PAYABLE_DAYS} days: upload it again`)
  }
}

async function lock(
  { context }: Exchange,
  ledger: EmbeddedPayments,
  { wCid, wallet }: Upload,
  amount: bigint,
): Promise<Lock> {
  const { network, seconds } = context
  const paidAt = seconds()
  const lockSeconds = LOCK_DAYS * DAY_SECONDS
  const deadlineEpoch = network.epoch() + Math.ceil(lockSeconds / network.epochSeconds)
  try {
    return await ledger.pay({ wCid, wallet, amount, paidAt, deadline: paidAt + lockSeconds, deadlineEpoch })
  } catch (error) {
    if (error instanceof AlreadyPaid) throw new PaymentError('conflict', error.message)
    if (error instanceof InsufficientFunds)
      throw new PaymentError('conflict', `${error.message} Fund the wallet first.`)
    throw error
  }
}

function readAmount(text: string): bigint {
  if (!/^[1-9]\d{0,17}$/.test(text)) {
    throw new PaymentError('type', 'pay_amount must be a whole number of millionths of a stable coin')
  }
  return BigInt(text)
}
