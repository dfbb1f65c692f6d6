import type { Database } from '../../database.js'
import type { Page } from '../http/paging.js'

const orders = {
  pay_amount: 'amount',
  unlock_amount: 'unlocked',
  file_name: 'file_name',
  pay_at: 'paid_at',
  unlock_at: 'unlocked_at',
  deadline: 'deadline',
} as const

export type BillingOrder = keyof typeof orders
export const billingOrders = Object.keys(orders) as BillingOrder[]

/** A payment, and the upload that it is for. */
export interface Bill {
  readonly id: number
  readonly hash: string
  /** In the smallest units of the coin. */
  readonly amount: string
  readonly unlocked: string
  readonly fileName: string
  readonly cid: string
  /** Unix seconds; 0 when never. */
  readonly paidAt: number
  readonly unlockedAt: number
  readonly deadline: number
}

/** Which payments of a wallet are listed. */
export interface BillingFilter {
  readonly wallet: string
  /** A part of the file name, in any case. */
  readonly fileName: string | undefined
  readonly hash: string | undefined
}

const COLUMNS = `locks.id, hash, amount, unlocked,
  file_name AS fileName, cid, paid_at AS paidAt, unlocked_at AS unlockedAt, deadline`
const TABLES = 'FROM locks JOIN uploads USING (w_cid) JOIN contents ON contents.id = uploads.content'

/** The payments on one page, and how many there are. Amounts are sorted as numbers. */
export function listBills(
  db: Database,
  { wallet, fileName, hash }: BillingFilter,
  { size, offset, orderBy, ascending }: Page<BillingOrder>,
): { readonly bills: readonly Bill[]; readonly total: number } {
  const conditions = ['locks.wallet = ?']
  const values: (string | number)[] = [wallet]
  if (fileName !== undefined) {
    conditions.push('instr(folded_name, ?) > 0')
    values.push(fileName.toLowerCase())
  }
  if (hash !== undefined) {
    conditions.push('hash = ?')
    values.push(hash.toLowerCase())
  }
  const from = `${TABLES} WHERE ${conditions.join(' AND ')}`
  const direction = ascending ? 'ASC' : 'DESC'
  const column = orders[orderBy]
  // Amounts are texts without leading zeros: the longer one is the larger one.
  const length = isAmount(orderBy) ? `length(${column}) ${direction}, ` : ''
  const order = `ORDER BY ${length}${column} ${direction}, locks.id ${direction}`
  const rows = db.prepare(`SELECT ${COLUMNS} ${from} ${order} LIMIT ? OFFSET ?`).all(...values, size, offset)
  const total = db.prepare(`SELECT count(*) AS total ${from}`).get(...values).total as number
  return { bills: rows as Bill[], total }
}

function isAmount(order: BillingOrder): boolean {
  return order === 'pay_amount' || order === 'unlock_amount'
}
