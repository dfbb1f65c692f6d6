import type { IncomingHttpHeaders } from 'node:http'
import { PaymentError } from '../errors.js'

/** How a content is to be sent: as a file, as one block, or as a CAR. */
type Form = 'file' | 'raw' | 'car'

export interface ContentRequest {
  readonly path: ContentPath
  readonly form: Form
  /** The form is that of the Accept header, not of the URL. */
  readonly byAccept: boolean
  /** Kind of the file that alone is wanted, `json` or `cbor`; undefined for any. */
  readonly kind: string | undefined
  readonly car: CarTerms
  readonly fileName: string | undefined
  readonly download: boolean
}

/** The media types by which a form can be asked for. */
const FORM_TYPES: Readonly<Record<string, Form>> = {
  'application/vnd.ipld.raw': 'raw',
  'application/vnd.ipld.car': 'car',
}

const CAR_TYPE = 'application/vnd.ipld.car'

/** Contents are files and directories: their blocks have the codecs dag-pb and raw, and are not converted to others. */
const OTHER_CODECS = ['dag-json', 'dag-cbor']

const OTHER_TYPES = OTHER_CODECS.map((codec) => `application/vnd.ipld.${codec}`)

/**
 * Reads a request for `/ipfs/<cid>[/path]` (https://specs.ipfs.tech/http-gateways/path-gateway/ and
 * https://specs.ipfs.tech/http-gateways/trustless-gateway/). Throws PaymentError.
 */
export function readContentRequest(path: string, query: URLSearchParams, headers: IncomingHttpHeaders): ContentRequest {
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
function readForm(format: string, types: Types): Pick<ContentRequest, 'form' | 'byAccept' | 'kind'> {
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
      return { form: format, byAccept: accepted !== undefined && accepted !== format, kind: undefined }
    case 'json':
    case 'cbor':
      return { form: 'file', byAccept: false, kind: format }
    default:
      throw new PaymentError('value', 'format must be raw, car, json or cbor')
  }
}

interface ContentPath {
  /** CID in the form that the client has sent. */
  readonly cid: string
  readonly names: readonly string[]
  /** Ends in a slash, as the path of a directory does. */
  readonly closed: boolean
  /** Percent-encoded, as the client sent it. */
  readonly text: string
}

/** Most names of a path: each of them costs a block and a CID in the header X-Ipfs-Roots. */
const MAX_NAMES = 128

/**
 * @param path percent-encoded, with one character for each byte
 * @throws PaymentError `value`
 */
function readPath(path: string): ContentPath {
  const [, , cid = '', ...rest] = path.split('/')
  const names = rest.filter((part) => part !== '').map(decoded)
  if (names.length > MAX_NAMES) throw new PaymentError('value', `the path has more than ${MAX_NAMES} names`)
  return { cid, names, closed: rest.at(-1) === '', text: path.replaceAll(/[^\x21-\x7e]/g, escaped) }
}

export function pathOf(cid: string, names: readonly string[]): string {
  return ['/ipfs', cid, ...names].map((part, n) => (n === 0 ? part : encodeURIComponent(part))).join('/')
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decoded(part: string): string {
  try {
    const bytes = part.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    )
    return UTF_8.decode(Buffer.from(bytes, 'latin1'))
  } catch {
    throw new PaymentError('value', 'the path is not in UTF-8')
  }
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/**
 * How a CAR is to be sent
 * (https://specs.ipfs.tech/http-gateways/trustless-gateway/#car-responses-application-vnd-ipld-car).
 */
export interface CarTerms {
  /** All, what the entity at the end of the path consists of, or its root alone. */
  readonly scope: 'all' | 'entity' | 'block'
  readonly duplicates: boolean
  /** First and last byte of the file; below 0 from its end. Undefined: all. */
  readonly bytes: { readonly from: number; readonly to: number | undefined } | undefined
}

/**
 * Reads the parameters of a CAR, from the query or else from the media type of the Accept header. Throws PaymentError.
 * @param type the parameters of `application/vnd.ipld.car` in the Accept header
 */
function readCarTerms(query: URLSearchParams, type: ReadonlyMap<string, string>): CarTerms {
  const given = (name: string): string | undefined => query.get(`car-${name}`) ?? type.get(name)
  only('version', given('version'), ['1'])
  // Depth first is an order that clients may take for unknown.
  only('order', given('order'), ['dfs', 'unk'])
  only('dups', given('dups'), ['y', 'n'])
  const bytes = readBytes(query.get('entity-bytes'))
  const scope = readScope(query.get('dag-scope'))
  return { scope, duplicates: given('dups') === 'y', bytes }
}

function only(name: string, value: string | undefined, known: readonly string[]): void {
  if (value === undefined || known.includes(value)) return
  throw new PaymentError('value', `${name} of a CAR must be ${known.join(' or ')}`)
}

function readScope(text: string | null): CarTerms['scope'] {
  if (text === null || text === '') return 'all'
  if (text === 'all' || text === 'entity' || text === 'block') return text
  throw new PaymentError('value', 'dag-scope must be all, entity or block')
}

function readBytes(text: string | null): CarTerms['bytes'] {
  if (text === null || text === '') return undefined
  const [, from, to] = /^(-?\d{1,15}):(-?\d{1,15}|\*)$/.exec(text) ?? []
  if (from === undefined) throw new PaymentError('value', 'entity-bytes must be two positions, such as 0:* or -10:-1')
  return { from: Number(from), to: to === '*' ? undefined : Number(to) }
}
