import { defineCall, S3Error } from 'dealgate'
import { z } from 'zod'
import { billDocument } from '../documents/bill.js'
import { uploadDocument, uploadOf } from '../documents/upload.js'
import type { PayParts } from '../parts.js'
import { forAction, type ListPlace, OF_CALLER, withWallet } from './list-place.js'
import { pageOfBills, pageOfUploads } from './lists.js'
import { pageQuery } from './page.js'
import { SOURCE } from './sources.js'

/** Pages of which a CSV is made at most, and their size. */
const PAGES = 100
const SIZE = 1000

const query = z.strictObject({ 'wallet-address': pageQuery['wallet-address'] })

export function getUploadsCsv(parts: PayParts, { name, path, ...place }: ListPlace = OF_CALLER.uploadsCsv) {
  return defineCall({
    ...place,
    ...forAction('pay:ListUploads'),
    name,
    source: SOURCE,
    summary: 'Returns all uploads of a wallet as CSV.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query,
    result: z.object({ Uploads: z.array(uploadDocument).meta({ element: 'Upload' }) }),
    csv: { list: 'Uploads', usual: true },
    async answer({ request, query }, context) {
      const sorted = { ...withWallet(query, request.params), 'order-by': 'upload_at', ascending: true }
      const uploads = await allOf(
        async (bounds) => pageOfUploads(parts, context, request, sorted, bounds),
        (upload) => upload.source_file_upload_id,
      )
      return { Uploads: uploads.map(uploadOf) }
    },
  })
}

export function getBillingCsv(parts: PayParts, { name, path, ...place }: ListPlace = OF_CALLER.billingCsv) {
  return defineCall({
    ...place,
    ...forAction('pay:ListBilling'),
    name,
    source: SOURCE,
    summary: 'Returns all payments of a wallet as CSV.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query,
    result: z.object({ Records: z.array(billDocument).meta({ element: 'Record' }) }),
    csv: { list: 'Records', usual: true },
    async answer({ request, query }, context) {
      const sorted = { ...withWallet(query, request.params), 'order-by': 'pay_at', ascending: true }
      const records = await allOf(
        async (bounds) => pageOfBills(parts, context, request, sorted, bounds),
        ({ PayId }) => PayId,
      )
      return { Records: records }
    },
  })
}

/**
 * All records of a list, each once: one that is added meanwhile moves others to the next page. Throws InvalidRequest.
 */
async function allOf<T>(
  fetch: (bounds: {
    readonly page_size: number
    readonly page_number: number
  }) => Promise<{ readonly items: readonly T[]; readonly total: number }>,
  idOf: (item: T) => number,
): Promise<T[]> {
  const found = new Map<number, T>()
  for (let page = 1; ; page++) {
    const { items, total } = await fetch({ page_size: SIZE, page_number: page })
    for (const item of items) found.set(idOf(item), item)
    if (items.length === 0 || page * SIZE >= total) return [...found.values()]
    if (page === PAGES) throw tooMany()
  }
}

function tooMany(): S3Error {
  return new S3Error('InvalidRequest', {
    message: `The wallet has more than ${PAGES * SIZE} records: get them in pages, by the list with format=csv.`,
  })
}
