import { PageOf, type PageRequest, type S3Request } from 'dealgate'
import { z } from 'zod'

/** The service's own names of a page and its order, beside those of the frame. */
export const pageQuery = {
  'file-name': z.string().max(255).optional().describe('A part of the file name.'),
  'wallet-address': z.string().max(100).optional().describe('The wallet; default that of the access key.'),
  'order-by': z.string().max(40).optional().describe('The column to sort by.'),
  ascending: z.boolean().optional().describe('Default false.'),
  'is-ascend': z.string().max(10).optional().describe('The same as the service names it: `y` for ascending.'),
  'page-size': z.string().max(20).optional().describe('As the service names it; 10 if it is no such number.'),
  'page-number': z.string().max(20).optional().describe('From 1, which is also used if it is no such number.'),
}

export interface ListQuery {
  readonly 'file-name'?: string | undefined
  readonly 'wallet-address'?: string | undefined
  readonly 'order-by'?: string | undefined
  readonly ascending?: boolean | undefined
  readonly 'is-ascend'?: string | undefined
  readonly 'page-size'?: string | undefined
  readonly 'page-number'?: string | undefined
}

const USUAL = 10
const MOST = 1000

interface Bounds {
  readonly page_size: number
  readonly page_number: number
}

/** Records that a list is asked for, in the terms of the service. */
export function listQuery(query: ListQuery): Readonly<Record<string, string | undefined>> {
  return {
    file_name: query['file-name'],
    order_by: query['order-by'],
    is_ascend: query.ascending === undefined ? query['is-ascend'] : query.ascending ? 'y' : 'n',
  }
}

/**
 * Gets the requested page of a list that the service pages by size and number. `continuation-token` keeps the size of
 * the first page.
 * @param fetch `total` is the length of the whole list
 */
export async function servicePage<Found extends { readonly items: readonly unknown[]; readonly total: number }>(
  {
    page,
    query,
    request,
  }: { readonly page: PageRequest; readonly query: ListQuery; readonly request: Pick<S3Request, 'query'> },
  fetch: (bounds: Bounds) => Promise<Found>,
): Promise<{ readonly page: PageOf<Found['items'][number]>; readonly found: Found }> {
  const [, next, kept] = /^(\d{1,9})\.(\d{1,4})$/.exec(page.from ?? '') ?? []
  const own = query['page-size'] !== undefined || query['page-number'] !== undefined
  const asked = own && request.query.get('max-items') === undefined ? positive(query['page-size'], USUAL) : page.limit
  const size = kept === undefined ? Math.min(asked, MOST) : Number(kept)
  const number = next === undefined ? positive(query['page-number'], 1) : Number(next)
  const found = await fetch({ page_size: size, page_number: number })
  const more = found.items.length > 0 && number * size < found.total
  return { page: new PageOf(found.items, more ? `${number + 1}.${size}` : undefined), found }
}

function positive(text: string | undefined, fallback: number): number {
  return text !== undefined && /^\d{1,9}$/.test(text) && Number(text) > 0 ? Number(text) : fallback
}
