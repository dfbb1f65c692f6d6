import type { Express } from 'express'
import { z } from 'zod'
import { replyJson } from '../http/reply.js'
import { answerErrors, healthCalls, newApp, refuseS3, refuseUnknownCoding, unknownPath } from '../rest/app.js'
import { describedBy, type ServiceFacts } from '../rest/openapi.js'
import { routerOf } from '../rest/routes.js'
import type { PaymentContext } from './context.js'
import { failureOf, PaymentError } from './errors.js'
import { handlerOf, type PaymentRoute, UNCACHED } from './route.js'
import { subjects } from './routes/index.js'
import { withRoutesInWords } from './words.js'

/** The storage payment API as an Express application. */
export function createPaymentApp(context: PaymentContext): Express {
  const { db, log } = context
  const app = newApp()
  app.use(refuseUnknownCoding)
  app.use(healthCalls(() => db.read.settings.find('id'), log))
  app.use(refuseS3('the storage payment API of dealgate'))
  const served = servedIn(context)
  app.use(describedBy({ ...description, subjects: served }))
  for (const routes of Object.values(served)) app.use(routerOf(routes, (route) => handlerOf(route, context)))
  app.use(unknownPath)
  app.use(
    answerErrors('the storage payment service', log, (exchange, error) => {
      const refusal = PaymentError.of(error)
      replyJson(exchange, refusal.status, failureOf(refusal), [...UNCACHED, ...refusal.headers])
    }),
  )
  return app
}

/** The endpoints of a mode, also by the words of a deployment. In the mode `open`, none needs a sign-in. */
function servedIn({ mode, words }: PaymentContext): Record<string, readonly PaymentRoute[]> {
  const served = Object.entries(subjects).map(([subject, routes]) => [
    subject,
    withRoutesInWords(routes, words)
      .filter(({ only = mode }) => only === mode)
      .map((route) => (mode === 'open' ? { ...route, access: 'public' } : route)),
  ])
  return Object.fromEntries(served)
}

/** What the OpenAPI document says beside the endpoints. */
const description: Omit<ServiceFacts<PaymentRoute>, 'subjects'> = {
  title: 'Storage payment API of dealgate',
  description: 'Files that wallets upload and pay for, and the contents of these.',
  bodyTypes: ({ files }) => (files ? ['multipart/form-data'] : ['application/json']),
  failure: z.object({ status: z.literal('error'), code: z.int(), message: z.string() }),
}
