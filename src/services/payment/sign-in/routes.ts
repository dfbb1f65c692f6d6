import type { Route } from '../http/route.js'
import { logInByWalletSignature } from './log-in.js'
import { register } from './register.js'

export const signInRoutes: readonly Route[] = [
  { method: 'POST', path: '/api/v1/user/register', access: 'public', only: 'a', answer: register },
  {
    method: 'POST',
    path: '/api/v1/user/login_by_wallet_signature',
    access: 'public',
    only: 'a',
    answer: logInByWalletSignature,
  },
]
