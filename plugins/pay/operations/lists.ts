import { type Context, defineCall, PageOf, type PageRequest, S3Error, type S3Request, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { bills, uploads } from '../documents.js'
import { address, apiPath, service } from '../service.js'
import { type ClientRequest, SOURCE, sendAsWallet } from './send.js'

interface Bounds {
  readonly page_size: number
  readonly page_number: number
}

function naming(query: ListQuery) {
  return { named: query['wallet-address'], needsAddress: true }
}

export async function pageOfUploads(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  query: ListQuery,
  bounds: Bounds,
) {
  const answer = await sendAsWallet(deps, context, request, naming(query), ({ address }) => ({
    method: 'GET',
    path: apiPath('storage', 'tasks', 'deals'),
    query: { ...listQuery(query), wallet_address: address, ...bounds },
  }))
  const { Uploads: items, TotalRecordCount: total } = service.dataOf(answer, uploads.read)
  return { items, total, raw: answer.json }
}

export function listUploads(deps: PayDeps, { name, path, ...place }: ListCall = OF_CALLER.uploads) {
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
    result: uploads.shown,
    pages: 'Uploads',
    async answer({ request, query: asked, page: wanted }, context) {
      const query = withWallet(asked, request.params)
      const { page, found } = await servicePage({ page: wanted, query, request }, (bounds) =>
        pageOfUploads(deps, context, request, query, bounds),
      )
      return withRaw({ Uploads: page, TotalRecordCount: found.total }, found.raw)
    },
  })
}

export async function pageOfBills(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  query: ListQuery & { readonly 'tx-hash'?: string | undefined },
  bounds: Bounds,
) {
  const answer = await sendAsWallet(deps, context, request, naming(query), ({ address }) => ({
    method: 'GET',
    path: apiPath('billing'),
    query: { ...listQuery(query), tx_hash: query['tx-hash'], wallet_address: address, ...bounds },
  }))
  const { Records: items, TotalRecordCount: total } = service.dataOf(answer, bills.read)
  return { items, total, raw: answer.json }
}

export function listBilling(deps: PayDeps, { name, path, ...place }: ListCall = OF_CALLER.billing) {
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
    result: bills.shown,
    pages: 'Records',
    csv: { list: 'Records' },
    async answer({ request, query: asked, page: wanted }, context) {
      const query = withWallet(asked, request.params)
      const { page, found } = await servicePage({ page: wanted, query, request }, (bounds) =>
        pageOfBills(deps, context, request, query, bounds),
      )
      return withRaw({ Records: page, TotalRecordCount: found.total }, found.raw)
    },
  })
}

/** The service's own names of a page and its order, beside those of the frame. */
const pageQuery = {
  'file-name': z.string().max(255).optional().describe('A part of the file name.'),
  'wallet-address': z.string().max(100).optional().describe('The wallet; default that of the access key.'),
  'order-by': z.string().max(40).optional().describe('The column to sort by.'),
  ascending: z.boolean().optional().describe('Default false.'),
  'is-ascend': z.string().max(10).optional().describe('The same as the service names it: `y` for ascending.'),
  'page-size': z.string().max(20).optional().describe('As the service names it; 10 if it is no such number.'),
  'page-number': z.string().max(20).optional().describe('From 1, which is also used if it is no such number.'),
}

interface ListQuery {
  readonly 'file-name'?: string | undefined
  readonly 'wallet-address'?: string | undefined
  readonly 'order-by'?: string | undefined
  readonly ascending?: boolean | undefined
  readonly 'is-ascend'?: string | undefined
  readonly 'page-size'?: string | undefined
  readonly 'page-number'?: string | undefined
}

const DEFAULT_SIZE = 10
const MAX_PAGE = 1000

/** Records that a list is asked for, in the terms of the service. */
function listQuery(query: ListQuery): Readonly<Record<string, string | undefined>> {
  return {
    file_name: query['file-name'],
    order_by: query['order-by'],
    is_ascend: query.ascending === undefined ? query['is-ascend'] : query.ascending ? 'y' : 'n',
  }
}

/**
 * Gets the requested page of a list that the service pages by size and number. `continuation-token` keeps the size of
 * the first page.
 * @param fetchPage `total` is the length of the whole list
 */
async function servicePage<Found extends { readonly items: readonly unknown[]; readonly total: number }>(
  {
    page,
    query,
    request,
  }: { readonly page: PageRequest; readonly query: ListQuery; readonly request: Pick<S3Request, 'query'> },
  fetchPage: (bounds: Bounds) => Promise<Found>,
): Promise<{ readonly page: PageOf<Found['items'][number]>; readonly found: Found }> {
  const [, next, kept] = /^(\d{1,9})\.(\d{1,4})$/.exec(page.from ?? '') ?? []
  const own = query['page-size'] !== undefined || query['page-number'] !== undefined
  const asked =
    own && request.query.get('max-items') === undefined ? positive(query['page-size'], DEFAULT_SIZE) : page.limit
  const size = kept === undefined ? Math.min(asked, MAX_PAGE) : Number(kept)
  const number = next === undefined ? positive(query['page-number'], 1) : Number(next)
  const found = await fetchPage({ page_size: size, page_number: number })
  const more = found.items.length > 0 && number * size < found.total
  return { page: new PageOf(found.items, more ? `${number + 1}.${size}` : undefined), found }
}

function positive(text: string | undefined, fallback: number): number {
  return text !== undefined && /^\d{1,9}$/.test(text) && Number(text) > 0 ? Number(text) : fallback
}

/** Pages of which a CSV is made at most, and their size. */
const MAX_PAGES = 100
const SIZE = 1000

const query = z.strictObject({ 'wallet-address': pageQuery['wallet-address'] })

export function getUploadsCsv(deps: PayDeps, { name, path, ...place }: ListCall = OF_CALLER.uploadsCsv) {
  return defineCall({
    ...place,
    ...forAction('pay:ListUploads'),
    name,
    source: SOURCE,
    summary: 'Returns all uploads of a wallet as CSV.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query,
    result: uploads.shown.pick({ Uploads: true }),
    csv: { list: 'Uploads', usual: true },
    async answer({ request, query }, context) {
      const sorted = { ...withWallet(query, request.params), 'order-by': 'upload_at', ascending: true }
      const all = await allOf(
        (bounds) => pageOfUploads(deps, context, request, sorted, bounds),
        ({ SourceFileUploadId }) => SourceFileUploadId,
      )
      return { Uploads: all }
    },
  })
}

export function getBillingCsv(deps: PayDeps, { name, path, ...place }: ListCall = OF_CALLER.billingCsv) {
  return defineCall({
    ...place,
    ...forAction('pay:ListBilling'),
    name,
    source: SOURCE,
    summary: 'Returns all payments of a wallet as CSV.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path },
    query,
    result: bills.shown.pick({ Records: true }),
    csv: { list: 'Records', usual: true },
    async answer({ request, query }, context) {
      const sorted = { ...withWallet(query, request.params), 'order-by': 'pay_at', ascending: true }
      const all = await allOf(
        (bounds) => pageOfBills(deps, context, request, sorted, bounds),
        ({ PayId }) => PayId,
      )
      return { Records: all }
    },
  })
}

/**
 * All records of a list, each once: one that is added meanwhile moves others to the next page. Throws InvalidRequest.
 */
async function allOf<T>(
  fetchPage: (bounds: Bounds) => Promise<{ readonly items: readonly T[]; readonly total: number }>,
  idOf: (item: T) => number,
): Promise<T[]> {
  const found = new Map<number, T>()
  for (let page = 1; ; page++) {
    const { items, total } = await fetchPage({ page_size: SIZE, page_number: page })
    for (const item of items) found.set(idOf(item), item)
    if (items.length === 0 || page * SIZE >= total) return [...found.values()]
    if (page === MAX_PAGES) throw tooMany()
  }
}

function tooMany(): S3Error {
  return new S3Error('InvalidRequest', {
    message: `The wallet has more than ${MAX_PAGES * SIZE} records: get them in pages, by the list with format=csv.`,
  })
}

/** A call that lists what a wallet has: of the caller, or of the wallet that its path names. */
interface ListCall {
  readonly name: string
  readonly path: string
  members?(context: Context): AsyncIterable<Readonly<Record<string, string>>>
}

const OF_CALLER = {
  uploads: { name: 'ListUploads', path: '/-/pay/v1/uploads' },
  billing: { name: 'ListBilling', path: '/-/pay/v1/billing' },
  uploadsCsv: { name: 'GetUploadsCsv', path: '/-/pay/v1/uploads.csv' },
  billingCsv: { name: 'GetBillingCsv', path: '/-/pay/v1/billing.csv' },
} as const satisfies Record<string, ListCall>

/** The lists by the address of the wallet, which the bucket `-` cannot name in a query. */
export function ofWallet(deps: PayDeps) {
  const below = (name: string, rest: string): ListCall => ({
    name,
    path: `/-/pay/v1/wallets/{WalletAddress}/${rest}`,
    members: (context) => ownWallet(deps, context),
  })
  return {
    uploads: below('ListWalletUploads', 'uploads'),
    billing: below('ListWalletBilling', 'billing'),
    uploadsCsv: below('GetWalletUploadsCsv', 'uploads.csv'),
    billingCsv: below('GetWalletBillingCsv', 'billing.csv'),
  }
}

/** The wallet as which the caller acts, if it has one. */
async function* ownWallet(deps: PayDeps, { caller }: Context) {
  const isOpen = (await deps.mode()) === 'open'
  const session = isOpen || !caller ? undefined : await deps.wallets.get(caller.identity)
  const linked = isOpen ? deps.options.wallet?.toLowerCase() : session?.address
  const wallet = linked ?? (await deps.owner.walletOf(caller?.identity))?.address
  if (wallet !== undefined) yield { WalletAddress: wallet }
}

/** Several calls answer the same list: a policy decides about them by one action. */
function forAction(action: 'pay:ListUploads' | 'pay:ListBilling') {
  return {
    action,
    ownRules: true,
    async admit(_request: unknown, { caller, checks }: Context) {
      if (caller) await checks.requireAction(action)
    },
  } as const
}

/** The query, with the wallet that the path names. Throws InvalidArgument for a path that names no address. */
function withWallet<Query extends { readonly 'wallet-address'?: string | undefined }>(
  query: Query,
  { WalletAddress }: Readonly<Record<string, string>>,
): Query {
  if (WalletAddress === undefined) return query
  if (address.safeParse(WalletAddress).success) return { ...query, 'wallet-address': WalletAddress }
  throw new S3Error('InvalidArgument', {
    message: 'The path must name a wallet: 0x and 40 hexadecimal digits.',
    fields: { ArgumentName: 'WalletAddress' },
  })
}
