import { type Context, defineCall, S3Error, type S3Request, withRaw } from 'dealgate'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { mint, payment } from '../documents.js'
import { apiPath, service } from '../service.js'
import { SOURCE, sendAsWallet } from './send.js'

/** The number of an upload in a path. Throws NoSuchUpload for any other text. */
function uploadIdOf({ SourceFileUploadId = '' }: Readonly<Record<string, string>>): number {
  if (/^[1-9]\d{0,14}$/.test(SourceFileUploadId)) return Number(SourceFileUploadId)
  throw noSuchUpload(SourceFileUploadId)
}

export function noSuchUpload(id: string | number): S3Error {
  return new S3Error('NoSuchUpload', {
    message: 'The payment service has no such upload of this wallet.',
    fields: { SourceFileUploadId: id },
  })
}

export function getPaymentInfo(deps: PayDeps) {
  return defineCall({
    name: 'GetPaymentInfo',
    source: SOURCE,
    summary: 'Returns the payment that is locked for an upload.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/uploads/{SourceFileUploadId}/payment' },
    result: payment.shown,
    async answer({ request }, context) {
      const id = uploadIdOf(request.params)
      const answer = await askPayment(deps, context, request, id)
      return withRaw(service.dataOf(answer, payment.read), answer.json)
    },
  })
}

/** Asks for the payment of an upload. Throws NoSuchUpload. */
export function askPayment(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'>,
  id: number,
) {
  const callOf = () =>
    ({
      method: 'GET',
      path: apiPath('billing', 'deal', 'lockpayment', 'info'),
      query: { source_file_upload_id: id },
    }) as const
  return sendAsWallet(deps, context, request, {}, callOf, { missing: () => noSuchUpload(id) })
}

export function recordMint(deps: PayDeps) {
  return defineCall({
    name: 'RecordMint',
    source: SOURCE,
    summary: 'Records the NFT that was minted for an upload.',
    access: 'bearer',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/uploads/{SourceFileUploadId}/mint' },
    body: z.strictObject({
      TxHash: z.string().min(1).max(200),
      TokenId: z.string().min(1).max(100),
      MintAddress: z.string().min(1).max(100),
    }),
    aliases: { nft_tx_hash: 'TxHash' },
    result: mint.shown,
    async answer({ request, body }, context) {
      const id = uploadIdOf(request.params)
      const callOf = () =>
        ({
          method: 'POST',
          path: apiPath('storage', 'mint', 'info'),
          // The servers of this interface want the number as such, and the token as text.
          body: {
            kind: 'json',
            value: {
              source_file_upload_id: id,
              tx_hash: body.TxHash,
              token_id: body.TokenId,
              mint_address: body.MintAddress,
            },
          },
        }) as const
      const answer = await sendAsWallet(deps, context, request, {}, callOf, {
        mayRepeat: false,
        missing: () => noSuchUpload(id),
        conflict: (message) =>
          new S3Error('DuplicateRequest', { message: `Another NFT is recorded for this upload: ${message}` }),
      })
      return withRaw(service.dataOf(answer, mint.read), answer.json)
    },
  })
}
