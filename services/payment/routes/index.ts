import type { PaymentRoute } from '../route.js'
import { billing } from './billing.js'
import { contents } from './contents.js'
import { deals } from './deals.js'
import { signIn } from './sign-in.js'
import { system } from './system.js'
import { uploads } from './uploads.js'

/** The endpoints of the service, by their subject. */
export const subjects = {
  contents,
  'signing in': signIn,
  'the service': system,
  uploads,
  deals,
  billing,
} satisfies Record<string, readonly PaymentRoute[]>
