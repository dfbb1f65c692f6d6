import { type Context, S3Error } from 'dealgate/plugin'
import type { PayDeps } from '../deps.js'
import type { ShownUpload } from '../documents.js'
import type { MadeUpload } from '../upload/made-uploads.js'
import { pageOfUploads } from './lists.js'
import type { ClientRequest } from './send.js'

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
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: ClientRequest,
  made: readonly Pick<MadeUpload, 'uploadId' | 'name' | 'wallet'>[],
): Promise<ReadonlyMap<number, ShownUpload>> {
  const found = new Map<number, ShownUpload>()
  const isOpen = (await deps.mode()) === 'open'
  const lists = new Map(
    made.map(({ name, wallet }) => {
      const named = isOpen ? wallet : undefined
      return [JSON.stringify([name, named]), { name, named }]
    }),
  )
  for (const { name, named } of lists.values()) {
    const missing = new Set(made.filter((one) => one.name === name).map(({ uploadId }) => uploadId))
    const query = { 'file-name': name, 'wallet-address': named, 'order-by': 'upload_at', ascending: false }
    for (let page = 1; page <= PAGES && missing.size > 0; page++) {
      const bounds = { page_size: SIZE, page_number: page }
      const list = await pageOfUploads(deps, context, request, query, bounds).catch(hidden)
      for (const upload of list.items) {
        if (missing.delete(upload.SourceFileUploadId)) found.set(upload.SourceFileUploadId, upload)
      }
      if (list.items.length === 0 || page * SIZE >= list.total) break
    }
  }
  return found
}

function hidden(error: unknown): { readonly items: readonly ShownUpload[]; readonly total: number } {
  if (error instanceof S3Error && HIDDEN.includes(error.code)) return { items: [], total: 0 }
  throw error
}
