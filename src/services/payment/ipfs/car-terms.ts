import { PaymentError } from '../errors.js'

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
export function readCarTerms(query: URLSearchParams, type: ReadonlyMap<string, string>): CarTerms {
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

/**
 * The bytes of a file of that size; undefined for all. A span without bytes is beyond the file.
 */
export function spanOf(
  { bytes }: CarTerms,
  size: number,
): { readonly first: number; readonly last: number } | undefined {
  if (bytes === undefined) return undefined
  const position = (at: number): number => (at < 0 ? Math.max(0, size + at) : at)
  const last = bytes.to === undefined ? size - 1 : bytes.to < 0 ? size + bytes.to : bytes.to
  const first = position(bytes.from)
  return first <= last ? { first, last } : { first: size, last: -1 }
}
