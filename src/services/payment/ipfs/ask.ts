import type { IncomingHttpHeaders } from 'node:http'
import { PaymentError } from '../errors.js'

/** How a content is to be sent: its bytes, one block, or a CAR. */
export type Form = 'file' | 'raw' | 'car'

/** A request of the gateway. */
export interface Ask {
  /** As the client writes it. */
  readonly cid: string
  readonly form: Form
  /** Of a CAR: the whole DAG, or its root alone. */
  readonly scope: 'all' | 'block'
  /** Name for the one who saves the answer. */
  readonly fileName: string | undefined
  readonly download: boolean
}

const RAW_TYPE = 'application/vnd.ipld.raw'
const CAR_TYPE = 'application/vnd.ipld.car'

/**
 * Reads a request for `/ipfs/<cid>` (https://specs.ipfs.tech/http-gateways/trustless-gateway/). Contents are files, so
 * that nothing lies below them. Throws PaymentError.
 */
export function readAsk(path: string, query: URLSearchParams, headers: IncomingHttpHeaders): Ask {
  const [cid = '', ...rest] = path.split('/').slice(2)
  if (rest.some((part) => part !== '')) throw new PaymentError('absent', `${cid} is a file and has no links by name`)
  const fileName = query.get('filename') ?? undefined
  return {
    cid,
    form: readForm(query.get('format'), headers.accept ?? ''),
    scope: readScope(query.get('dag-scope')),
    fileName: fileName === '' ? undefined : fileName,
    download: query.get('download') === 'true',
  }
}

/** The parameter counts more than the header. */
function readForm(format: string | null, accept: string): Form {
  switch (format ?? '') {
    case '': {
      const types = accept.split(',').map((type) => type.split(';')[0]?.trim().toLowerCase())
      if (types.includes(RAW_TYPE)) return 'raw'
      return types.includes(CAR_TYPE) ? 'car' : 'file'
    }
    case 'raw':
      return 'raw'
    case 'car':
      return 'car'
    default:
      throw new PaymentError('value', 'format must be raw or car')
  }
}

/** The entity of a file is its whole DAG. */
function readScope(text: string | null): Ask['scope'] {
  if (text === null || text === '' || text === 'all' || text === 'entity') return 'all'
  if (text === 'block') return 'block'
  throw new PaymentError('value', 'dag-scope must be all, entity or block')
}
