import type { AnyOperation } from 'dealgate'
import type { PayParts } from '../parts.js'
import { getBillingCsv, getUploadsCsv } from './csv-lists.js'
import { getDealDetail, getOfflineDealLog } from './deals.js'
import { ofWallet } from './list-place.js'
import { listBilling, listUploads } from './lists.js'
import { getPaymentInfo, recordMint } from './payment.js'
import { createWalletNonce, createWalletSession } from './sign-in.js'
import { getExchangeRate, getHostInfo, getPriceStatistics, getSystemConfig } from './system.js'
import { uploadToIpfs } from './upload-file.js'
import { listObjectUploads, uploadObjectToIpfs } from './upload-object.js'

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
