import type { Route } from '../http/route.js'
import { logInByWalletSignature } from './log-in.js'
import { rated } from './rated.js'
import { register } from './register.js'

export const signInRoutes: readonly Route[] = [
  { method: 'POST', path: '/api/v1/user/register', access: 'public', only: 'a', answer: rated(register) },
  {
    method: 'POST',
    path: '/api/v1/user/login_by_wallet_signature',
    access: 'public',
    only: 'a',
    answer: rated(logInByWalletSignature),
  },
]
