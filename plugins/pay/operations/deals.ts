import { type Context, defineCall, S3Error, type S3Request, withRaw } from 'dealgate'
import { z } from 'zod'
import { dealDetail, detailOf, timeOf } from '../documents.js'
import type { PayParts } from '../parts.js'
import { apiPath, dataOf, type WireUpload, wireDetail, wireLog } from '../wire.js'
import { pageOfUploads } from './lists.js'
import { SOURCE, sendAsWallet } from './send.js'

/** Uploads of a wallet that are searched for a deal, the newest first. */
const SEARCHED = 1000

type Asking = Pick<S3Request, 'headers' | 'signal'>

const uploadId = z.number().int().min(1)
const wallet = z
  .string()
  .max(100)
  .optional()
  .describe('The wallet whose uploads are searched for the deal; default that of the access key.')

export function getDealDetail(parts: PayParts) {
  return defineCall({
    name: 'GetDealDetail',
    source: SOURCE,
    summary: 'Returns a deal by its number on the chain, with the upload that it is for.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/deals/{DealId}' },
    query: z.strictObject({
      'source-file-upload-id': uploadId
        .optional()
        .describe('The upload; default the newest of the wallet that has this deal. Required for the deal 0.'),
      'wallet-address': wallet,
    }),
    result: z.object({ DaoThreshold: z.number().int(), Deal: dealDetail }),
    async answer({ request, query }, context) {
      const { DealId = '' } = request.params
      const missing = () => new S3Error('NoSuchDeal', { fields: { DealId } })
      if (!/^\d{1,15}$/.test(DealId)) throw missing()
      const id =
        query['source-file-upload-id'] ??
        (await withDeal(parts, context, request, query['wallet-address'], (deal) => deal.deal_id === Number(DealId)))
      if (id === undefined || (Number(DealId) === 0 && query['source-file-upload-id'] === undefined)) throw missing()
      const answer = await askDetail(parts, context, request, { dealId: DealId, uploadId: id }, missing)
      const detail = dataOf(answer, wireDetail)
      return withRaw({ DaoThreshold: detail.dao_threshold, Deal: detailOf(detail) }, answer.json)
    },
  })
}

/** Asks for the detail of a deal of an upload; the deal 0 stands for the upload alone. */
export function askDetail(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Asking,
  { dealId, uploadId: id }: { readonly dealId: string; readonly uploadId: number },
  missing: () => Error,
) {
  const inPath = parts.options.detailUploadId === 'path'
  return sendAsWallet(
    parts,
    context,
    request,
    {},
    () => ({
      method: 'GET',
      path: apiPath('storage', 'deal', 'detail', dealId, ...(inPath ? [String(id)] : [])),
      ...(!inPath && { query: { source_file_upload_id: id } }),
    }),
    { missing },
  )
}

/** Number of the newest upload of the wallet that has such an offline deal. */
async function withDeal(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Asking,
  named: string | undefined,
  is: (deal: WireUpload['offline_deal'][number]) => boolean,
): Promise<number | undefined> {
  const query = { 'wallet-address': named }
  try {
    const { items } = await pageOfUploads(parts, context, request, query, { page_size: SEARCHED, page_number: 1 })
    return items.find((upload) => upload.offline_deal.some(is))?.source_file_upload_id
  } catch (error) {
    if (error instanceof S3Error && error.code === 'WalletNotLinked' && (await parts.variant()) === 'b')
      return undefined
    throw error
  }
}

const logEntry = z.object({
  Id: z.number().int(),
  OfflineDealId: z.number().int(),
  OnChainStatus: z.string(),
  OnChainMessage: z.string(),
  ProviderState: z.string().optional().describe('The state that the message names behind `Provider state: `.'),
  CreateAt: z.number().int().describe('Unix seconds.'),
  CreateTime: z.string().optional().describe('The same in RFC 3339.'),
})

export function getOfflineDealLog(parts: PayParts) {
  return defineCall({
    name: 'GetOfflineDealLog',
    source: SOURCE,
    summary: 'Returns the states that an offline deal of an upload has had, the oldest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/offline-deals/{OfflineDealId}/log' },
    query: z.strictObject({ 'wallet-address': wallet }),
    result: z.object({ Entries: z.array(logEntry).meta({ element: 'Entry' }) }),
    async answer({ request, query }, context) {
      const { OfflineDealId = '' } = request.params
      const missing = () => new S3Error('NoSuchDeal', { fields: { OfflineDealId } })
      if (!/^\d{1,15}$/.test(OfflineDealId)) throw missing()
      const named = query['wallet-address']
      const callOf = () => ({ method: 'GET', path: apiPath('storage', 'deal', 'log', OfflineDealId) }) as const
      const answer = await sendAsWallet(parts, context, request, {}, callOf, { missing })
      const { offline_deal_log: entries } = dataOf(answer, wireLog)
      // The log of an unknown deal is empty, too.
      const isDeal = ({ id }: { readonly id: number }) => id === Number(OfflineDealId)
      if (entries.length === 0 && (await withDeal(parts, context, request, named, isDeal)) === undefined)
        throw missing()
      return withRaw({ Entries: entries.map(entryOf) }, answer.json)
    },
  })
}

function entryOf(entry: z.output<typeof wireLog>['offline_deal_log'][number]): z.output<typeof logEntry> {
  const [, state] = /^Provider state: (.+)$/.exec(entry.on_chain_message) ?? []
  const created = timeOf(entry.create_at)
  return {
    Id: entry.id,
    OfflineDealId: entry.offline_deal_id,
    OnChainStatus: entry.on_chain_status,
    OnChainMessage: entry.on_chain_message,
    ...(state !== undefined && { ProviderState: state }),
    CreateAt: entry.create_at,
    ...(created !== undefined && { CreateTime: created }),
  }
}
