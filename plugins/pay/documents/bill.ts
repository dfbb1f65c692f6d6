import { z } from 'zod'
import type { WireBill } from '../wire/records.js'
import { timeOf } from './time.js'

const seconds = z.number().int().describe('Unix seconds; 0 for never.')
const rfc3339 = z.string().optional().describe('The same in RFC 3339.')

export const billDocument = z.object({
  PayId: z.number().int(),
  PayTxHash: z.string(),
  PayAmount: z.string().describe('Digits, in the smallest unit of the token.'),
  UnlockAmount: z.string().describe('The same; empty while the payment is locked.'),
  FileName: z.string(),
  PayloadCid: z.string(),
  PayAt: seconds,
  PayTime: rfc3339,
  UnlockAt: seconds,
  UnlockTime: rfc3339,
  Deadline: seconds,
  DeadlineTime: rfc3339,
  NetworkName: z.string(),
  TokenName: z.string(),
})
export type BillDocument = z.output<typeof billDocument>

export function billOf(bill: WireBill): BillDocument {
  const [paid, unlocked, deadline] = [bill.pay_at, bill.unlock_at, bill.deadline].map(timeOf)
  return {
    PayId: bill.pay_id,
    PayTxHash: bill.pay_tx_hash,
    PayAmount: bill.pay_amount,
    UnlockAmount: bill.unlock_amount,
    FileName: bill.file_name,
    PayloadCid: bill.payload_cid,
    PayAt: bill.pay_at,
    ...(paid !== undefined && { PayTime: paid }),
    UnlockAt: bill.unlock_at,
    ...(unlocked !== undefined && { UnlockTime: unlocked }),
    Deadline: bill.deadline,
    ...(deadline !== undefined && { DeadlineTime: deadline }),
    NetworkName: bill.network_name,
    TokenName: bill.token_name,
  }
}
