import { randomUUID } from 'node:crypto'
import { signedIdentity } from 'dealgate/paid'
import { type Context, defineCall, S3Error, type S3Request, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { payment } from '../documents.js'
import { apiPath, service } from '../service.js'
import { noSuchUpload, uploadIdOf } from './payment.js'
import { SOURCE, sendAsWallet, sendOpenly } from './send.js'

/** Most coins that a call gives. */
const MOST_COINS = 1_000_000
const MILLIONTHS = 1_000_000n

const path = '/-/pay/v1/uploads/{SourceFileUploadId}/payment'

/** What the embedded service says of an upload that is to be paid. */
const payable = z.object({
  w_cid: z.string().min(1),
  is_free: z.boolean(),
  pay_amount: z.string().regex(/^\d{1,18}$/),
})

export function quoteUploadPayment(deps: PayDeps) {
  return defineCall({
    name: 'QuoteUploadPayment',
    source: SOURCE,
    summary: 'Returns the least that the wallet of the caller has to lock for an upload. Spends nothing.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/uploads/{SourceFileUploadId}/quote' },
    result: z.object({
      WCid: z.string().describe('Names the upload in a payment.'),
      Amount: z.string().describe('In the smallest unit of the token.'),
      IsFree: z.boolean(),
      Kept: z.boolean().describe('True if PayUpload pays it: the server keeps the wallet of the upload.'),
    }),
    async answer({ request }, context) {
      const { w_cid, is_free, pay_amount, kept } = await askPayable(deps, context, request)
      return { WCid: w_cid, Amount: pay_amount, IsFree: is_free, Kept: kept !== undefined }
    },
  })
}

/** The ledger locks a payment for an upload once: a repeated request is the payment of the first. */
export function payUpload(deps: PayDeps) {
  return defineCall({
    name: 'PayUpload',
    source: SOURCE,
    summary: 'Locks the payment for an upload, from the wallet that the server keeps for its owner.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path },
    body: z.strictObject({
      Amount: z
        .string()
        .regex(/^[1-9]\d{0,17}$/, 'must be a whole number')
        .describe(
          'In the smallest unit of the token: that of QuoteUploadPayment, or up to PayMultiplyFactor times it.',
        ),
    }),
    result: payment.shown,
    async answer({ request, body }, context) {
      const { w_cid, is_free, pay_amount, kept } = await askPayable(deps, context, request)
      if (!kept) {
        throw new S3Error('InvalidRequest', {
          message:
            'This server does not keep the key of the wallet that has to pay for the upload: pay with the wallet itself, or by `dealgate wallet pay`.',
        })
      }
      if (is_free) throw new S3Error('InvalidRequest', { message: 'The upload is free: there is nothing to pay.' })
      const amount = BigInt(body.Amount)
      const most = BigInt(pay_amount) * BigInt(Math.ceil(await deps.facts.factor()))
      if (amount < BigInt(pay_amount) || amount > most) {
        throw new S3Error('InvalidArgument', {
          message: `Amount has to be from ${pay_amount} to ${most} for this upload.`,
          fields: { ArgumentName: 'Amount', ArgumentValue: body.Amount },
        })
      }
      const answer = await sendOpenly(deps, request, {
        method: 'POST',
        path: apiPath('billing', 'deal', 'lockpayment'),
        body: {
          kind: 'json',
          value: { w_cid, pay_amount: body.Amount, signature: kept.order(w_cid, amount) },
        },
      })
      return withRaw(service.dataOf(answer, payment.read), answer.json)
    },
  })
}

export function fundWallet(deps: PayDeps) {
  return defineCall({
    name: 'FundWallet',
    source: SOURCE,
    summary: 'Gives the wallet that the server keeps for its owner coins of the embedded ledger, which have no value.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/wallet/coins' },
    body: z.strictObject({
      Coins: z.number().int().min(1).max(MOST_COINS),
      Reference: z
        .string()
        .regex(/^[\x21-\x7e]{1,64}$/, 'must be a word of at most 64 letters')
        .optional()
        .describe('A repeated request with the same reference gives the coins once.'),
    }),
    result: z.object({ WalletAddress: z.string(), Coins: z.number().int() }),
    async answer({ body: { Coins, Reference = randomUUID() } }, context) {
      const identity = signedIdentity(context)
      const kept = await deps.owner.walletOf(identity)
      const fund = () => deps.owner.fund(identity, BigInt(Coins) * MILLIONTHS, Reference).catch(refused)
      if (!kept || !(await fund())) {
        throw new S3Error('InvalidRequest', {
          message: 'Only the owner of a server that runs the payment service with the embedded ledger gets such coins.',
        })
      }
      return { WalletAddress: kept.address, Coins }
    },
  })
}

function refused(error: unknown): never {
  if (error instanceof RangeError) throw new S3Error('InvalidRequest', { message: error.message, cause: error })
  throw error
}

/** What has to be paid for an upload of the caller, and the wallet of it if the server keeps that. */
async function askPayable(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'> & { readonly params: Readonly<Record<string, string>> },
) {
  const id = uploadIdOf(request.params)
  let acting: string | undefined
  const answer = await sendAsWallet(
    deps,
    context,
    request,
    { needsAddress: true },
    ({ address }) => {
      acting = address
      return { method: 'GET', path: apiPath('storage', 'source_file_upload', String(id)) } as const
    },
    { missing: () => noSuchUpload(id) },
  )
  const kept = await deps.owner.walletOf(context.caller?.identity)
  return { ...service.dataOf(answer, payable), kept: kept?.address === acting ? kept : undefined }
}
