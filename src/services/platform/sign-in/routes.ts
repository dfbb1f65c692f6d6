import type { Route } from '../http/route.js'
import { logIn } from './login.js'

export const signInRoutes: readonly Route[] = [{ method: 'POST', path: '/auth/login', access: 'public', answer: logIn }]
