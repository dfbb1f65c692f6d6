import type { Document, documents } from '../../common/service-documents.js'
import { DAY_SECONDS } from '../../common/time.js'
import type { Database } from '../database.js'
import { signerOfText } from './addresses.js'
import { epochsOf, PAYABLE_DAYS } from './contents/retention.js'
import { AlreadyPaid, type EmbeddedPayments } from './embedded-payments.js'
import { PaymentError } from './errors.js'
import { Fields, ownUpload, type Page, type PaymentExchange, readJson, readPage, walletAddressOf } from './exchange.js'
import { InsufficientFunds, type Lock } from './ledger.js'
import { LOCK_DAYS } from './prices.js'
import type { UploadRow } from './uploads/upload-table.js'

const orders = {
  pay_amount: 'amount',
  unlock_amount: 'unlocked',
  file_name: 'file_name',
  pay_at: 'paid_at',
  unlock_at: 'unlocked_at',
  deadline: 'deadline',
} as const

type BillingOrder = keyof typeof orders

const billingOrders = Object.keys(orders) as BillingOrder[]

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
  file_name AS fileName, cid, paid_at AS paidAt, unlocked_at AS unlockedAt, deadline`
const TABLES = 'FROM locks JOIN uploads USING (w_cid) JOIN contents ON contents.id = uploads.content'

/** The payments on one page, and how many there are. Amounts are sorted as numbers. */
function listBills(
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

/** GET /billing: the payments of a wallet. */
export async function showBilling(exchange: PaymentExchange): Promise<object> {
  const { context, query } = exchange
  await context.scheduler.catchUp()
  const fields = new Fields(query)
  const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
  const filter = { wallet, fileName: fields.get('file_name'), hash: fields.get('tx_hash') }
  const { bills, total } = listBills(context.db, filter, readPage(query, billingOrders, 'pay_at'))
  return {
    billing: bills.map(
      (bill): Document<typeof documents.bill> => ({
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
      }),
    ),
    total_record_count: total,
  }
}

/** GET /billing/wallet, beyond the interface: what a wallet has, and what became of all that it locked. */
export async function showWallet(
  exchange: PaymentExchange,
): Promise<Document<typeof documents.wallet> & { readonly coins: readonly Document<typeof documents.coin>[] }> {
  const { context, query } = exchange
  await context.scheduler.catchUp()
  const wallet = walletAddressOf(exchange, new Fields(query).get('wallet_address'))
  const sums = { locked: 0n, unlocked: 0n, refunded: 0n }
  const locks = context.db.prepare('SELECT amount, unlocked, refunded, is_open AS open FROM locks WHERE wallet = ?')
  for (const { amount, unlocked, refunded, open } of locks.iterate(wallet) as Iterable<LockAmounts>) {
    sums.unlocked += BigInt(unlocked)
    sums.refunded += BigInt(refunded)
    if (open) sums.locked += BigInt(amount) - BigInt(unlocked)
  }
  const coins = (await context.payments.balances(wallet)).map(({ kind, decimals, amount }) => ({
    ...{ kind, decimals, balance: amount === undefined ? '' : String(amount) },
    ...(kind === 'token'
      ? { name: context.tokenName(), address: context.addresses.stable }
      : { name: '', address: '' }),
  }))
  const { locked, unlocked, refunded } = sums
  return {
    ...{ wallet_address: wallet, network_name: context.networkName, coins },
    ...{ locked: String(locked), unlocked: String(unlocked), refunded: String(refunded) },
  }
}

/** Decimal texts: see `LockTable`. */
interface LockAmounts {
  readonly amount: string
  readonly unlocked: string
  readonly refunded: string
  readonly open: number
}

/** GET /billing/deal/lockpayment/info: the payment for an upload; empty texts while there is none. */
export function showPayment(exchange: PaymentExchange): Document<typeof documents.payment> {
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

/**
 * What a wallet signs by `personal_sign` to pay for an upload in the embedded ledger.
 * @param amount millionths of a stable coin
 * @param networkName of the service
 */
export function paymentOrderText(wCid: string, amount: bigint, networkName: string): string {
  return `Lock ${amount} millionths of a stable coin for ${wCid} on ${networkName}`
}

/**
 * POST /billing/deal/lockpayment: locks a payment in the embedded ledger, by an order that the wallet of the upload has
 * signed. A repeated order is the payment of the first.
 */
export async function pay(exchange: PaymentExchange): Promise<Document<typeof documents.payment>> {
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
  // The ledger reports what was paid already: as the same order, or as another one.
  if (context.payments.find(wCid) === undefined && amount < BigInt(upload.price)) {
    throw new PaymentError('value', `pay_amount must be at least ${upload.price} for this upload`)
  }
  if (context.payments.find(wCid) === undefined) requirePayable(context, upload)
  const { hash } = await lock(exchange, ledger, upload, amount)
  await context.writer.run(() => context.progress.markPaid(wCid))
  return { w_cid: wCid, pay_amount: String(amount), pay_tx_hash: hash, token_address: addresses.stable }
}

/** An upload is removed a while after it can be paid for. */
function requirePayable({ network }: PaymentExchange['context'], { createdEpoch, place }: UploadRow): void {
  if (place === 'gone') throw new PaymentError('conflict', 'the content of the upload is lost: upload it again')
  if (network.epoch() - createdEpoch >= epochsOf(PAYABLE_DAYS, network)) {
    throw new PaymentError('conflict', `an upload can be paid for within ${PAYABLE_DAYS} days: upload it again`)
  }
}

async function lock(
  { context }: PaymentExchange,
  ledger: EmbeddedPayments,
  { wCid, wallet }: UploadRow,
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
