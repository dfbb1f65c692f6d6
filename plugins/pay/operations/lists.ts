import { type Context, defineCall, type S3Request, withRaw } from 'dealgate'
import { z } from 'zod'
import { billDocument, billOf } from '../documents/bill.js'
import { uploadDocument, uploadOf } from '../documents/upload.js'
import type { PayParts } from '../parts.js'
import { dataOf } from '../wire/answer.js'
import { apiPath } from '../wire/api-path.js'
import { wireBilling, wireUploads } from '../wire/records.js'
import { forAction, type ListPlace, OF_CALLER, withWallet } from './list-place.js'
import { type ListQuery, listQuery, pageQuery, servicePage } from './page.js'
import { sendAsWallet } from './send.js'
import { SOURCE } from './sources.js'

const total = z.number().int().describe('Records that meet the filter, on all pages.')

type Asking = Pick<S3Request, 'headers' | 'signal'>

interface Bounds {
  readonly page_size: number
  readonly page_number: number
}

function naming(query: ListQuery) {
  return { named: query['wallet-address'], needsAddress: true }
}

/** A page of the uploads of a wallet. */
export async function pageOfUploads(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Asking,
  query: ListQuery,
  bounds: Bounds,
) {
  const answer = await sendAsWallet(parts, context, request, naming(query), ({ address }) => ({
    method: 'GET',
    path: apiPath('storage', 'tasks', 'deals'),
    query: { ...listQuery(query), wallet_address: address, ...bounds },
  }))
  const { source_file_upload: items, total_record_count } = dataOf(answer, wireUploads)
  return { items, total: total_record_count, raw: answer.json }
}

export function listUploads(parts: PayParts, { name, path, ...place }: ListPlace = OF_CALLER.uploads) {
  return defineCall({
    ...place,
    ...forAction('pay:ListUploads'),
    name,
    source: SOURCE,
    summary: 'Lists the uploads of a wallet, each with its offline deals.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query: z.strictObject(pageQuery),
    csv: { list: 'Uploads' },
    result: z.object({ Uploads: z.array(uploadDocument).meta({ element: 'Upload' }), TotalRecordCount: total }),
    pages: 'Uploads',
    async answer({ request, query: asked, page: wanted }, context) {
      const query = withWallet(asked, request.params)
      const { page, found } = await servicePage({ page: wanted, query, request }, async (bounds) => {
        const { items, ...others } = await pageOfUploads(parts, context, request, query, bounds)
        return { items: items.map(uploadOf), ...others }
      })
      return withRaw({ Uploads: page, TotalRecordCount: found.total }, found.raw)
    },
  })
}

/** A page of the payments of a wallet. */
export async function pageOfBills(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Asking,
  query: ListQuery & { readonly 'tx-hash'?: string | undefined },
  bounds: Bounds,
) {
  const answer = await sendAsWallet(parts, context, request, naming(query), ({ address }) => ({
    method: 'GET',
    path: apiPath('billing'),
    query: { ...listQuery(query), tx_hash: query['tx-hash'], wallet_address: address, ...bounds },
  }))
  const { billing, total_record_count } = dataOf(answer, wireBilling)
  return { items: billing.map(billOf), total: total_record_count, raw: answer.json }
}

export function listBilling(parts: PayParts, { name, path, ...place }: ListPlace = OF_CALLER.billing) {
  return defineCall({
    ...place,
    ...forAction('pay:ListBilling'),
    name,
    source: SOURCE,
    summary: 'Lists the payments of a wallet.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query: z.strictObject({
      ...pageQuery,
      'tx-hash': z.string().max(100).optional().describe('Only the payment of this transaction.'),
    }),
    result: z.object({ Records: z.array(billDocument).meta({ element: 'Record' }), TotalRecordCount: total }),
    pages: 'Records',
    csv: { list: 'Records' },
    async answer({ request, query: asked, page: wanted }, context) {
      const query = withWallet(asked, request.params)
      const { page, found } = await servicePage({ page: wanted, query, request }, (bounds) =>
        pageOfBills(parts, context, request, query, bounds),
      )
      return withRaw({ Records: page, TotalRecordCount: found.total }, found.raw)
    },
  })
}
