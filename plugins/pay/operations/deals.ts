import { type Context, defineCall, S3Error, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { dealLog, detail, type OfflineDeal } from '../documents.js'
import { apiPath, service } from '../service.js'
import { pageOfUploads } from './lists.js'
import { type ClientRequest, SOURCE, sendAsWallet } from './send.js'

/** Uploads of a wallet that are searched for a deal, the newest first. */
const SEARCHED = 1000

const uploadId = z.number().int().min(1)
const wallet = z
  .string()
  .max(100)
  .optional()
  .describe('The wallet whose uploads are searched for the deal; default that of the access key.')

export function getDealDetail(deps: PayDeps) {
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
    result: detail.shown,
    async answer({ request, query }, context) {
      const { DealId = '' } = request.params
      const missing = () => new S3Error('NoSuchDeal', { fields: { DealId } })
      if (!/^\d{1,15}$/.test(DealId)) throw missing()
      const id =
        query['source-file-upload-id'] ??
        (await withDeal(deps, context, request, query['wallet-address'], (deal) => deal.DealId === Number(DealId)))
      if (id === undefined || (Number(DealId) === 0 && query['source-file-upload-id'] === undefined)) throw missing()
      const answer = await askDetail(deps, context, request, { dealId: DealId, uploadId: id }, missing)
      return withRaw(service.dataOf(answer, detail.read), answer.json)
    },
  })
}

/** Asks for the detail of a deal of an upload; the deal 0 stands for the upload alone. */
export function askDetail(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  { dealId, uploadId: id }: { readonly dealId: string; readonly uploadId: number },
  missing: () => Error,
) {
  const inPath = deps.options.detailUploadId === 'path'
  return sendAsWallet(
    deps,
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
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  named: string | undefined,
  is: (deal: OfflineDeal) => boolean,
): Promise<number | undefined> {
  const query = { 'wallet-address': named }
  try {
    const { items } = await pageOfUploads(deps, context, request, query, { page_size: SEARCHED, page_number: 1 })
    return items.find((upload) => upload.OfflineDeals.some(is))?.SourceFileUploadId
  } catch (error) {
    if (error instanceof S3Error && error.code === 'WalletNotLinked' && (await deps.mode()) === 'open') return undefined
    throw error
  }
}

export function getOfflineDealLog(deps: PayDeps) {
  return defineCall({
    name: 'GetOfflineDealLog',
    source: SOURCE,
    summary: 'Returns the states that an offline deal of an upload has had, the oldest first.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/offline-deals/{OfflineDealId}/log' },
    query: z.strictObject({ 'wallet-address': wallet }),
    result: dealLog.shown,
    async answer({ request, query }, context) {
      const { OfflineDealId = '' } = request.params
      const missing = () => new S3Error('NoSuchDeal', { fields: { OfflineDealId } })
      if (!/^\d{1,15}$/.test(OfflineDealId)) throw missing()
      const named = query['wallet-address']
      const callOf = () => ({ method: 'GET', path: apiPath('storage', 'deal', 'log', OfflineDealId) }) as const
      const answer = await sendAsWallet(deps, context, request, {}, callOf, { missing })
      const log = service.dataOf(answer, dealLog.read)
      // The log of an unknown deal is empty, too.
      const isDeal = ({ Id }: OfflineDeal) => Id === Number(OfflineDealId)
      if (log.Entries.length === 0 && (await withDeal(deps, context, request, named, isDeal)) === undefined)
        throw missing()
      return withRaw(log, answer.json)
    },
  })
}
