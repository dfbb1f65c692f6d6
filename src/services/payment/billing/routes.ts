import type { Route } from '../http/route.js'
import { pay } from './pay.js'
import { showBilling } from './show-billing.js'
import { showPayment } from './show-payment.js'

export const billingRoutes: readonly Route[] = [
  { method: 'GET', path: '/api/v1/billing', access: 'wallet', answer: showBilling },
  { method: 'GET', path: '/api/v1/billing/deal/lockpayment/info', access: 'wallet', answer: showPayment },
  // The order is signed by the wallet itself.
  { method: 'POST', path: '/api/v1/billing/deal/lockpayment', access: 'public', answer: pay },
]
