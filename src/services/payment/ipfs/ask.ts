import type { IncomingHttpHeaders } from 'node:http'
import { PaymentError } from '../errors.js'
import { type CarTerms, readCarTerms } from './car-terms.js'

/** How a content is to be sent: its bytes, one block, or a CAR. */
export type Form = 'file' | 'raw' | 'car'

/** A request of the gateway. */
export interface Ask {
  /** As the client writes it. */
  readonly cid: string
  readonly form: Form
  /** The form is that of the Accept header, not of the URL. */
  readonly byAccept: boolean
  /** Of a CAR. */
  readonly car: CarTerms
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
  if (headers['service-worker'] === 'script') {
    // It would control all contents of this origin (https://specs.ipfs.tech/http-gateways/path-gateway/#service-worker-request-header).
    throw new PaymentError('value', 'a service worker cannot be registered here')
  }
  const [cid = '', ...rest] = path.split('/').slice(2)
  if (rest.some((part) => part !== '')) throw new PaymentError('absent', `${cid} is a file and has no links by name`)
  const fileName = query.get('filename') ?? undefined
  const types = typesOf(headers.accept ?? '')
  return {
    cid,
    ...readForm(query.get('format'), types),
    car: readCarTerms(query, types.get(CAR_TYPE) ?? new Map()),
    fileName: fileName === '' ? undefined : fileName,
    download: query.get('download') === 'true',
  }
}

type Types = ReadonlyMap<string, ReadonlyMap<string, string>>

/** The media types of an Accept header, in lower case, and their parameters. */
function typesOf(accept: string): Types {
  return new Map(
    accept.split(',').map((one) => {
      const [type = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
      const pairs = parameters.map((pair) => pair.split('=', 2).map((part) => part.trim()))
      return [type, new Map(pairs.map(([name = '', value = '']) => [name, value]))]
    }),
  )
}

/** The parameter counts more than the header. */
function readForm(format: string | null, types: Types): Pick<Ask, 'form' | 'byAccept'> {
  const accepted = types.has(RAW_TYPE) ? 'raw' : types.has(CAR_TYPE) ? 'car' : undefined
  switch (format ?? '') {
    case '':
      return { form: accepted ?? 'file', byAccept: accepted !== undefined }
    case 'raw':
    case 'car':
      return { form: format as Form, byAccept: accepted !== undefined && accepted !== format }
    default:
      throw new PaymentError('value', 'format must be raw or car')
  }
}
