import type { Exchange } from '../http/exchange.js'
import { Fields } from '../http/fields.js'
import { ownUpload } from '../uploads/own-upload.js'

/** GET /billing/deal/lockpayment/info: the payment for an upload; empty texts while there is none. */
export function showPayment(exchange: Exchange): object {
  const { context, query } = exchange
  const { wCid } = ownUpload(exchange, new Fields(query).id('source_file_upload_id'))
  const lock = context.payments.find(wCid)
  return {
    w_cid: wCid,
    pay_amount: lock === undefined ? '' : String(lock.amount),
    pay_tx_hash: lock?.hash ?? '',
    token_address: lock === undefined ? '' : context.addresses.stable,
  }
}
