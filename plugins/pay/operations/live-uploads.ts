import { type Context, S3Error, type S3Request } from 'dealgate'
import type { PayParts } from '../parts.js'
import type { MadeUpload } from '../upload/made-uploads.js'
import type { WireUpload } from '../wire.js'
import { pageOfUploads } from './lists.js'

/** Pages of a list that are searched, and their size. */
const PAGES = 5

const SIZE = 1000

/** What hides uploads from a caller without being an error of the call. */
const HIDDEN = ['WalletNotLinked', 'UpstreamAuthFailed', 'AccessDenied']

/**
 * The uploads as the service lists them now, by number, as far as it lists them to the caller. The interface has no way
 * to ask for one upload: those of the same name are searched, the newest first. Throws S3Error.
 */
export async function findLive(
  parts: PayParts,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'>,
  made: readonly Pick<MadeUpload, 'uploadId' | 'name' | 'wallet'>[],
): Promise<ReadonlyMap<number, WireUpload>> {
  const found = new Map<number, WireUpload>()
  const isB = (await parts.facts.variant()) === 'b'
  const lists = new Map(
    made.map(({ name, wallet }) => {
      const named = isB ? wallet : undefined
      return [JSON.stringify([name, named]), { name, named }]
    }),
  )
  for (const { name, named } of lists.values()) {
    const missing = new Set(made.filter((one) => one.name === name).map(({ uploadId }) => uploadId))
    const query = { 'file-name': name, 'wallet-address': named, 'order-by': 'upload_at', ascending: false }
    for (let page = 1; page <= PAGES && missing.size > 0; page++) {
      const bounds = { page_size: SIZE, page_number: page }
      const list = await pageOfUploads(parts, context, request, query, bounds).catch(hidden)
      for (const upload of list.items) {
        const id = upload.source_file_upload_id
        if (missing.delete(id)) found.set(id, upload)
      }
      if (list.items.length === 0 || page * SIZE >= list.total) break
    }
  }
  return found
}

function hidden(error: unknown): { readonly items: readonly WireUpload[]; readonly total: number } {
  if (error instanceof S3Error && HIDDEN.includes(error.code)) return { items: [], total: 0 }
  throw error
}
