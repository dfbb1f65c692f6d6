import type { Database } from '../../database.js'
import type { Page } from '../http/paging.js'
import { SHOWN_STATUSES, UPLOAD_COLUMNS, type Upload } from '../uploads/upload-table.js'

const orders = { file_name: 'file_name', file_size: 'file_size', upload_at: 'uploads.created' } as const

export type UploadOrder = keyof typeof orders
export const uploadOrders = Object.keys(orders) as UploadOrder[]

/** Which uploads of a wallet are listed. */
export interface UploadFilter {
  readonly wallet: string
  /** A part of the file name, in any case. */
  readonly fileName: string | undefined
  /** True: those with an NFT; false: those without. */
  readonly minted: boolean | undefined
  /** As it is shown; undefined: any. */
  readonly status: string | undefined
}

/** The uploads by users, not by NFTs, on one page, and how many there are. Those that are equal come in their order. */
export function listUploads(
  db: Database,
  { wallet, fileName, minted, status }: UploadFilter,
  { size, offset, orderBy, ascending }: Page<UploadOrder>,
): { readonly uploads: readonly Upload[]; readonly total: number } {
  const conditions = ['wallet = ?', 'file_type = 0']
  const values: (string | number)[] = [wallet]
  if (fileName !== undefined) {
    conditions.push('instr(folded_name, ?) > 0')
    values.push(fileName.toLowerCase())
  }
  if (minted !== undefined)
    conditions.push(`${minted ? '' : 'NOT '}EXISTS (SELECT 1 FROM mints WHERE upload = uploads.id)`)
  const shown = SHOWN_STATUSES.map((one) => `'${one}'`).join(', ')
  if (status === 'Processing') conditions.push(`status NOT IN (${shown})`)
  else if (SHOWN_STATUSES.some((one) => one === status)) {
    conditions.push('status = ?')
    values.push(status as string)
  }
  const where = `WHERE ${conditions.join(' AND ')}`
  const direction = ascending ? 'ASC' : 'DESC'
  const order = `ORDER BY ${orders[orderBy]} ${direction}, uploads.id ${direction}`
  const rows = db.prepare(`SELECT ${UPLOAD_COLUMNS} ${where} ${order} LIMIT ? OFFSET ?`).all(...values, size, offset)
  const total = db.prepare(`SELECT count(*) AS total FROM uploads ${where}`).get(...values).total as number
  return { uploads: rows as Upload[], total }
}
