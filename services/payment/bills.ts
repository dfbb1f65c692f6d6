import type { Connection, Value } from '../store/database.js'
import type { Page } from './page.js'

const orders = {
  pay_amount: 'amount',
  unlock_amount: 'unlocked',
  file_name: 'file_name',
  pay_at: 'paid_at',
  unlock_at: 'unlocked_at',
  deadline: 'deadline',
} as const

type BillingOrder = keyof typeof orders

export const billingOrders = Object.keys(orders) as BillingOrder[]

interface Bill {
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

interface BillingFilter {
  readonly wallet: string
  /** A part of the file name, in any case. */
  readonly fileName: string | undefined
  readonly hash: string | undefined
}

const COLUMNS = `locks.id, hash, amount, unlocked,
  file_name AS "fileName", cid, paid_at AS "paidAt", unlocked_at AS "unlockedAt", deadline`
const TABLES = 'FROM locks JOIN uploads USING (w_cid) JOIN contents ON contents.id = uploads.content'

/** The payments for uploads, as lists of them. */
export class BillTable {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The payments on one page, and how many there are. Amounts are sorted as numbers. */
  async list(
    { wallet, fileName, hash }: BillingFilter,
    { size, offset, orderBy, ascending }: Page<BillingOrder>,
  ): Promise<{ readonly bills: readonly Bill[]; readonly total: number }> {
    const conditions = ['locks.wallet = ?']
    const values: Value[] = [wallet]
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
    const page = this.#connection.prepare(`SELECT ${COLUMNS} ${from} ${order} LIMIT ? OFFSET ?`)
    const count = this.#connection.prepare(`SELECT count(*) AS total ${from}`)
    const bills = await page.all<Bill>(...values, size, offset)
    return { bills, total: (await count.get<{ total: number }>(...values))?.total ?? 0 }
  }
}

function isAmount(order: BillingOrder): boolean {
  return order === 'pay_amount' || order === 'unlock_amount'
}
