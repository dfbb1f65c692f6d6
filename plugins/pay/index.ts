import { definePlugin } from 'dealgate'
import { payOperations } from './operations/index.js'
import { payOptions } from './options.js'
import { PayParts } from './parts.js'

export default definePlugin({
  name: 'pay',
  summary:
    'The storage payment API: sign-in of wallets, uploads to a content-addressed network, their payments and deals.',
  options: payOptions,
  create(options, host) {
    const parts = new PayParts(options, host)
    return {
      operations: payOperations(parts),
      stop: () => parts.close(),
    }
  },
})
