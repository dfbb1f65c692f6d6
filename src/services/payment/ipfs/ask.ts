import type { IncomingHttpHeaders } from 'node:http'
import { PaymentError } from '../errors.js'
import { type CarTerms, readCarTerms } from './car-terms.js'
import { type ContentPath, readPath } from './path.js'

/** How a content is to be sent: as a file or a page, as one block, or as an archive. */
export type Form = 'file' | 'raw' | 'car' | 'tar'

/** A request of the gateway. */
export interface Ask {
  readonly path: ContentPath
  readonly form: Form
  /** The form is that of the Accept header, not of the URL. */
  readonly byAccept: boolean
  /** Only a file of this kind is wanted: `json` or `cbor`. */
  readonly kind: string | undefined
  /** Of a CAR. */
  readonly car: CarTerms
  /** Name for the one who saves the answer. */
  readonly fileName: string | undefined
  readonly download: boolean
}

/** The media types by which a form can be asked for. */
const FORM_TYPES: Readonly<Record<string, Form>> = {
  'application/vnd.ipld.raw': 'raw',
  'application/vnd.ipld.car': 'car',
  'application/x-tar': 'tar',
}
const CAR_TYPE = 'application/vnd.ipld.car'

/** Contents are files and directories: their blocks have the codecs dag-pb and raw, and are not converted to others. */
const OTHER_CODECS = ['dag-json', 'dag-cbor']
const OTHER_TYPES = OTHER_CODECS.map((codec) => `application/vnd.ipld.${codec}`)

/**
 * Reads a request for `/ipfs/<cid>[/path]` (https://specs.ipfs.tech/http-gateways/path-gateway/ and
 * https://specs.ipfs.tech/http-gateways/trustless-gateway/). Throws PaymentError.
 */
export function readAsk(path: string, query: URLSearchParams, headers: IncomingHttpHeaders): Ask {
  if (headers['service-worker'] === 'script') {
    // It would control all contents of this origin
    // (https://specs.ipfs.tech/http-gateways/path-gateway/#service-worker-request-header).
    throw new PaymentError('value', 'a service worker cannot be registered here')
  }
  const fileName = query.get('filename') ?? undefined
  const types = typesOf(headers.accept ?? '')
  return {
    path: readPath(path),
    ...readForm(query.get('format') ?? '', types),
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
function readForm(format: string, types: Types): Pick<Ask, 'form' | 'byAccept' | 'kind'> {
  const [, accepted] = Object.entries(FORM_TYPES).find(([type]) => types.has(type)) ?? []
  const other = OTHER_TYPES.find((type) => types.has(type))
  if (OTHER_CODECS.includes(format) || (format === '' && accepted === undefined && other !== undefined)) {
    throw new PaymentError(
      'unacceptable',
      'contents are files and directories: there is no dag-json or dag-cbor of them',
    )
  }
  switch (format) {
    case '':
      return { form: accepted ?? 'file', byAccept: accepted !== undefined, kind: undefined }
    case 'raw':
    case 'car':
    case 'tar':
      return { form: format, byAccept: accepted !== undefined && accepted !== format, kind: undefined }
    case 'json':
    case 'cbor':
      return { form: 'file', byAccept: false, kind: format }
    default:
      throw new PaymentError('value', 'format must be raw, car, tar, json or cbor')
  }
}
