import type { Exchange } from '../http/exchange.js'
import { Fields } from '../http/fields.js'
import { readPage } from '../http/paging.js'
import { walletAddressOf } from '../sign-in/caller.js'
import { billingOrders, listBills } from './billing-list.js'

/** GET /billing: the payments of a wallet. */
export async function showBilling(exchange: Exchange): Promise<object> {
  const { context, query } = exchange
  await context.mover.catchUp()
  const fields = new Fields(query)
  const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
  const filter = { wallet, fileName: fields.get('file_name'), hash: fields.get('tx_hash') }
  const { bills, total } = listBills(context.db, filter, readPage(query, billingOrders, 'pay_at'))
  return {
    billing: bills.map((bill) => ({
      pay_id: bill.id,
      pay_tx_hash: bill.hash,
      pay_amount: bill.amount,
      unlock_amount: bill.unlockedAt === 0 ? '' : bill.unlocked,
      file_name: bill.fileName,
      payload_cid: bill.cid,
      pay_at: bill.paidAt,
      unlock_at: bill.unlockedAt,
      deadline: bill.deadline,
      network_name: context.networkName,
      token_name: context.tokenName(),
    })),
    total_record_count: total,
  }
}
