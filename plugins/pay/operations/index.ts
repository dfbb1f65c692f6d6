import { type AnyOperation, countByState, type PluginGauge, spendGauges } from 'dealgate'
import type { PayParts } from '../parts.js'
import { getDealDetail, getOfflineDealLog } from './deals.js'
import { getBillingCsv, getUploadsCsv, listBilling, listUploads, ofWallet } from './lists.js'
import { getPaymentInfo, recordMint } from './payment.js'
import { createWalletNonce, createWalletSession } from './sign-in.js'
import { getExchangeRate, getHostInfo, getPriceStatistics, getSystemConfig } from './system.js'
import { listObjectUploads, uploadObjectToIpfs, uploadToIpfs } from './upload.js'

/** The operations of this plugin. */
export function payOperations(parts: PayParts): readonly AnyOperation[] {
  const wallet = ofWallet(parts)
  return [
    createWalletNonce(parts),
    createWalletSession(parts),
    getSystemConfig(parts),
    getHostInfo(parts),
    getExchangeRate(parts),
    getPriceStatistics(parts),
    uploadObjectToIpfs(parts),
    listObjectUploads(parts),
    uploadToIpfs(parts),
    listUploads(parts),
    getDealDetail(parts),
    getOfflineDealLog(parts),
    getPaymentInfo(parts),
    recordMint(parts),
    listBilling(parts),
    getUploadsCsv(parts),
    getBillingCsv(parts),
    listUploads(parts, wallet.uploads),
    getUploadsCsv(parts, wallet.uploadsCsv),
    listBilling(parts, wallet.billing),
    getBillingCsv(parts, wallet.billingCsv),
  ]
}

/** Uploads to be paid that were made through this server, and what they cost today. */
export function payGauges(parts: PayParts): readonly PluginGauge[] {
  return [
    {
      name: 'uploads',
      help: 'Uploads that were made through this server, by the state that the service told then.',
      read: () => countByState(parts.made.all(), ({ status }) => status ?? 'Unknown'),
    },
    ...spendGauges(parts.ledger, parts.options.maxSpendPerDay),
  ]
}
