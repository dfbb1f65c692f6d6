import type { Document, documents } from '../../common/service-documents.js'
import { DAY_SECONDS } from '../../common/time.js'
import { signerOfText } from './addresses.js'
import { billingOrders } from './bills.js'
import { epochsOf, PAYABLE_DAYS } from './contents/retention.js'
import { AlreadyPaid } from './embedded-payments.js'
import { PaymentError } from './errors.js'
import { Fields, ownUpload, type PaymentExchange, readJson, walletAddressOf } from './exchange.js'
import { InsufficientFunds, type PaymentOrder } from './ledger.js'
import { readPage } from './page.js'
import { MAX_LOCK_DAYS } from './prices.js'
import type { UploadRow } from './uploads/upload-table.js'

/** GET /billing: the payments of a wallet. */
export async function showBilling(exchange: PaymentExchange): Promise<object> {
  const { context, query } = exchange
  await context.scheduler.catchUp()
  const fields = new Fields(query)
  const wallet = walletAddressOf(exchange, fields.get('wallet_address'))
  const filter = { wallet, fileName: fields.get('file_name'), hash: fields.get('tx_hash') }
  const { bills, total } = await context.db.read.bills.list(filter, readPage(query, billingOrders, 'pay_at'))
  const tokenName = await context.tokenName()
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
        token_name: tokenName,
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
  const { balances, sums } = await context.payments.holdings(wallet)
  const tokenName = await context.tokenName()
  const coins = balances.map(({ kind, decimals, amount }) => ({
    ...{ kind, decimals, balance: amount === undefined ? '' : String(amount) },
    ...(kind === 'token' ? { name: tokenName, address: context.addresses.stable } : { name: '', address: '' }),
  }))
  const { locked, unlocked, refunded } = sums
  return {
    ...{ wallet_address: wallet, network_name: context.networkName, coins },
    ...{ locked: String(locked), unlocked: String(unlocked), refunded: String(refunded) },
  }
}

/** GET /billing/deal/lockpayment/info: the payment for an upload; empty texts while there is none. */
export async function showPayment(exchange: PaymentExchange): Promise<Document<typeof documents.payment>> {
  const { context, query } = exchange
  const { wCid } = await ownUpload(exchange, new Fields(query).id('source_file_upload_id'))
  const lock = await context.payments.find(wCid)
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
  const stranger = () => new PaymentError('unauthorized', 'the order is not signed by the wallet of such an upload')
  if (signer === undefined) throw stranger()
  const times = paymentTimes(context)
  const { hash } = await context.db
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
  return { w_cid: wCid, pay_amount: String(amount), pay_tx_hash: hash, token_address: addresses.stable }
}

/** An upload is removed a while after it can be paid for. */
function requirePayable(
  { network }: PaymentExchange['context'],
  { price, createdEpoch, place }: UploadRow,
  amount: bigint,
): void {
  if (amount < BigInt(price)) throw new PaymentError('value', `pay_amount must be at least ${price} for this upload`)
  if (place === 'gone') throw new PaymentError('conflict', 'the content of the upload is lost: upload it again')
  if (network.epoch() - createdEpoch >= epochsOf(PAYABLE_DAYS, network)) {
    throw new PaymentError('conflict', `an upload can be paid for within ${PAYABLE_DAYS} days: upload it again`)
  }
}

function paymentTimes({
  network,
  seconds,
}: PaymentExchange['context']): Pick<PaymentOrder, 'paidAt' | 'deadline' | 'deadlineEpoch'> {
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

function readAmount(text: string): bigint {
  if (!/^[1-9]\d{0,17}$/.test(text)) {
    throw new PaymentError('type', 'pay_amount must be a whole number of millionths of a stable coin')
  }
  return BigInt(text)
}
