import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import type { Upload } from './upload-table.js'

/**
 * The upload with this number. In variant A that of another wallet is as good as none: an answer must not confirm it.
 * Throws PaymentError `absent`.
 */
export function ownUpload({ context, caller }: Pick<Exchange, 'context' | 'caller'>, id: number): Upload {
  const upload = context.uploads.find(id)
  if (upload === undefined || (caller !== undefined && caller.address !== upload.wallet)) {
    throw new PaymentError('absent', `source file upload:${id} not exists`)
  }
  return upload
}
