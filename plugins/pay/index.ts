// A bucket's deal configuration limits what every plugin spends for it: this brings the type of that setting.

import { countByState, spendGauges } from 'dealgate/paid'
import { type AnyOperation, definePlugin, type PluginGauge } from 'dealgate/plugin'
import type {} from 'dealgate/plugins/deal'
import { PayDeps } from './deps.js'
import { payExpansion } from './expand.js'
import { payInventory } from './inventory.js'
import { getDealDetail, getOfflineDealLog } from './operations/deals.js'
import { listObjectPayHistory } from './operations/history.js'
import { getBillingCsv, getUploadsCsv, listBilling, listUploads, ofWallet } from './operations/lists.js'
import { fundWallet, payUpload, quoteUploadPayment } from './operations/pay.js'
import { getPaymentInfo, getWallet, recordMint } from './operations/payment.js'
import { quoteObjectUpload } from './operations/quote.js'
import { createWalletNonce, createWalletSession, unlinkWallet } from './operations/sign-in.js'
import { getExchangeRate, getHostInfo, getPriceStatistics, getSystemConfig } from './operations/system.js'
import { listObjectUploads, uploadObjectToIpfs, uploadToIpfs } from './operations/upload.js'
import { payOptions } from './options.js'
import { uploadFiles } from './upload/file-job.js'
import { DURATION_METADATA, UPLOAD, uploadObjects, uploadWritten } from './upload/job.js'
import { OUTPUT_METADATA } from './upload/reconcile.js'

export default definePlugin({
  name: 'pay',
  summary:
    'The storage payment API: sign-in of wallets, uploads to a content-addressed network, their payments and deals.',
  options: payOptions,
  create(options, host) {
    const deps = new PayDeps(options, host)
    return {
      operations: payOperations(deps),
      jobs: [uploadObjects(deps), uploadFiles(deps)],
      expansions: [payExpansion(deps)],
      inventory: payInventory(deps, host),
      hooks: { objectStored: (event) => uploadWritten(deps, event) },
      gauges: payGauges(deps),
      outputMetadata: OUTPUT_METADATA,
      metadataActions: { [DURATION_METADATA]: UPLOAD },
      stop: () => deps.close(),
    }
  },
})

function payOperations(deps: PayDeps): readonly AnyOperation[] {
  const wallet = ofWallet(deps)
  return [
    createWalletNonce(deps),
    createWalletSession(deps),
    unlinkWallet(deps),
    getSystemConfig(deps),
    getHostInfo(deps),
    getExchangeRate(deps),
    getPriceStatistics(deps),
    uploadObjectToIpfs(deps),
    quoteObjectUpload(deps),
    listObjectUploads(deps),
    listObjectPayHistory(deps),
    uploadToIpfs(deps),
    listUploads(deps),
    getDealDetail(deps),
    getOfflineDealLog(deps),
    getPaymentInfo(deps),
    quoteUploadPayment(deps),
    payUpload(deps),
    getWallet(deps),
    fundWallet(deps),
    recordMint(deps),
    listBilling(deps),
    getUploadsCsv(deps),
    getBillingCsv(deps),
    listUploads(deps, wallet.uploads),
    getUploadsCsv(deps, wallet.uploadsCsv),
    listBilling(deps, wallet.billing),
    getBillingCsv(deps, wallet.billingCsv),
  ]
}

/** Uploads to be paid that were made through this server, and what they cost today. */
function payGauges(deps: PayDeps): readonly PluginGauge[] {
  return [
    {
      name: 'uploads',
      help: 'Uploads that were made through this server, by the state that the service reported then.',
      read: () => countByState(deps.made.all(), ({ status }) => status ?? 'Unknown'),
    },
    ...spendGauges(deps.ledger, deps.options.maxSpendPerDay),
  ]
}
