import { pay, showBilling, showPayment, showWallet } from './billing.js'
import { serveCar, showDeal, showLog } from './dealing/show-deal.js'
import type { Route } from './exchange.js'
import { serveIpfs } from './ipfs/serve.js'
import { COIN_PRICE } from './prices.js'
import { logInByWalletSignature, rated, register } from './sign-in.js'
import { hostInfo, priceStatistics, systemParams } from './system.js'
import { recordMint, showUpload, showUploads } from './uploads/show-uploads.js'
import { upload } from './uploads/upload.js'

export const routes: readonly Route[] = [
  { method: 'GET', path: '/ipfs/*', access: 'public', answer: serveIpfs },
  { method: 'HEAD', path: '/ipfs/*', access: 'public', answer: serveIpfs },
  { method: 'OPTIONS', path: '/ipfs/*', access: 'public', answer: serveIpfs },
  { method: 'GET', path: '/cars/:file', access: 'public', answer: serveCar },
  { method: 'HEAD', path: '/cars/:file', access: 'public', answer: serveCar },
  { method: 'POST', path: '/api/v1/user/register', access: 'public', only: 'signedIn', answer: rated(register) },
  {
    method: 'POST',
    path: '/api/v1/user/login_by_wallet_signature',
    access: 'public',
    only: 'signedIn',
    answer: rated(logInByWalletSignature),
  },
  { method: 'GET', path: '/api/v1/common/system/params', access: 'public', codeless: 'signedIn', answer: systemParams },
  { method: 'GET', path: '/api/v1/common/host/info', access: 'public', codeless: 'signedIn', answer: hostInfo },
  {
    method: 'GET',
    path: '/api/v1/billing/price/storagecoin',
    access: 'public',
    codeAsText: true,
    answer: () => COIN_PRICE,
  },
  { method: 'GET', path: '/stats/storage', access: 'public', answer: priceStatistics },
  { method: 'POST', path: '/api/v1/storage/ipfs/upload', access: 'wallet', answer: upload },
  { method: 'GET', path: '/api/v1/storage/source_file_upload/:id', access: 'wallet', answer: showUpload },
  { method: 'GET', path: '/api/v1/storage/tasks/deals', access: 'wallet', answer: showUploads },
  { method: 'GET', path: '/api/v1/storage/deal/detail/:deal_id', access: 'wallet', answer: showDeal },
  { method: 'GET', path: '/api/v1/storage/deal/log/:offline_deal_id', access: 'wallet', answer: showLog },
  { method: 'POST', path: '/api/v1/storage/mint/info', access: 'wallet', answer: recordMint },
  { method: 'GET', path: '/api/v1/billing/wallet', access: 'wallet', answer: showWallet },
  { method: 'GET', path: '/api/v1/billing', access: 'wallet', answer: showBilling },
  { method: 'GET', path: '/api/v1/billing/deal/lockpayment/info', access: 'wallet', answer: showPayment },
  // The order is signed by the wallet itself.
  { method: 'POST', path: '/api/v1/billing/deal/lockpayment', access: 'public', answer: pay },
]
