import type { Exchange } from '../http/exchange.js'
import { Fields } from '../http/fields.js'
import { ownUpload } from './own-upload.js'
import { shownStatus } from './upload-table.js'

/**
 * GET /storage/source_file_upload/<id>: what a wallet needs to pay for an upload. `pay_amount` is the least amount, in
 * the smallest units of the coin: millionths in the embedded ledger. It is empty until the token of a chain is known.
 */
export async function showUpload(exchange: Exchange): Promise<object> {
  const { mover, payments } = exchange.context
  await mover.catchUp()
  const upload = ownUpload(exchange, new Fields(Object.entries(exchange.path)).id('id'))
  const shown = {
    w_cid: upload.wCid,
    status: shownStatus(upload.status),
    is_free: upload.isFree === 1,
  }
  return {
    source_file_upload_id: upload.id,
    payload_cid: upload.cid,
    ...shown,
    // Clients that pay on a chain read these members here.
    source_file_upload: { id: upload.id, ...shown },
    pay_amount: upload.isFree === 1 ? '0' : String(payments.inUnits(BigInt(upload.price)) ?? ''),
    refused_payments: payments
      .refused(upload.wCid)
      .map(({ hash, amount, reason }) => ({ pay_tx_hash: hash, pay_amount: String(amount), reason })),
  }
}
