import { z } from 'zod'
import { documents } from '../../../common/service-documents.js'
import { documentSchema } from '../../rest/schemas.js'
import { payBySignedOrder } from '../billing.js'
import { billingOrders } from '../bills.js'
import { PaymentError } from '../errors.js'
import { formed, id, required, text, walletAddress } from '../fields.js'
import { pageOf, pageQuery } from '../page.js'
import { ownUpload, type PaymentRoute, route, walletOf } from '../route.js'

/** Beyond the interface. */
const showWallet = route({
  method: 'GET',
  path: '/api/v1/billing/wallet',
  access: 'wallet',
  summary: 'shows what a wallet has, and what became of all that it locked',
  query: { wallet_address: walletAddress() },
  data: documentSchema(documents.wallet).extend({ coins: z.array(documentSchema(documents.coin)) }),
  async handle({ context, caller, query }) {
    await context.scheduler.catchUp()
    const wallet = walletOf(caller, query.wallet_address)
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
  },
})

const showBilling = route({
  method: 'GET',
  path: '/api/v1/billing',
  access: 'wallet',
  summary: 'lists the payments of a wallet',
  query: {
    wallet_address: walletAddress(),
    file_name: text('file_name').describe('A part of the name.'),
    tx_hash: text('tx_hash'),
    ...pageQuery,
  },
  data: z.object({ billing: z.array(documentSchema(documents.bill)), total_record_count: z.int() }),
  async handle({ context, caller, query }) {
    await context.scheduler.catchUp()
    const wallet = walletOf(caller, query.wallet_address)
    const filter = { wallet, fileName: query.file_name, hash: query.tx_hash }
    const { bills, total } = await context.db.read.bills.list(filter, pageOf(query, billingOrders, 'pay_at'))
    const tokenName = await context.tokenName()
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
        token_name: tokenName,
      })),
      total_record_count: total,
    }
  },
})

/** Empty texts while there is none. */
const showPayment = route({
  method: 'GET',
  path: '/api/v1/billing/deal/lockpayment/info',
  access: 'wallet',
  summary: 'shows the payment for an upload',
  query: { source_file_upload_id: id('source_file_upload_id') },
  data: documentSchema(documents.payment),
  async handle({ context, caller, query }) {
    const { wCid } = await ownUpload(context, caller, query.source_file_upload_id)
    const lock = await context.payments.find(wCid)
    return {
      w_cid: wCid,
      pay_amount: lock === undefined ? '' : String(lock.amount),
      pay_tx_hash: lock?.hash ?? '',
      token_address: lock === undefined ? '' : context.addresses.stable,
    }
  },
})

/** The order is signed by the wallet itself. */
const pay = route({
  method: 'POST',
  path: '/api/v1/billing/deal/lockpayment',
  access: 'public',
  summary: 'locks a payment in the embedded ledger, by an order that the wallet of the upload has signed',
  body: {
    w_cid: required('w_cid'),
    pay_amount: formed(
      required('pay_amount'),
      'type',
      'pay_amount must be a whole number of millionths of a stable coin',
      (text) => (/^[1-9]\d{0,17}$/.test(text) ? BigInt(text) : undefined),
    ).describe('Millionths of a stable coin.'),
    signature: required('signature').describe('Of the order, by personal_sign.'),
  },
  data: documentSchema(documents.payment),
  async handle({ context, body }) {
    const { ledger, addresses } = context
    if (ledger === undefined) {
      throw new PaymentError(
        'conflict',
        `payments are made on the chain: call lockTokenPayment of ${addresses.payment}`,
      )
    }
    const { w_cid: wCid, pay_amount: amount, signature } = await body()
    const { hash } = await payBySignedOrder(context, ledger, { wCid, amount, signature })
    return { w_cid: wCid, pay_amount: String(amount), pay_tx_hash: hash, token_address: addresses.stable }
  },
})

/** Payments for uploads. */
export const billing: readonly PaymentRoute[] = [showWallet, showBilling, showPayment, pay]
