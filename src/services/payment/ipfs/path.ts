import { PaymentError } from '../errors.js'

/** A content path: `/ipfs/<cid>/<name>/...` */
export interface ContentPath {
  /** As the client writes it. */
  readonly cid: string
  readonly names: readonly string[]
  /** Ends in a slash, as the path of a directory does. */
  readonly closed: boolean
  /** Percent-encoded, as the client sent it. */
  readonly text: string
}

/**
 * Most names of a path: each of them costs a block, a CID in the header X-Ipfs-Roots, and a link in the page of a
 * directory with all names before it.
 */
const MAX_NAMES = 128

/**
 * @param path percent-encoded, with one character for each byte
 * @throws PaymentError `value`
 */
export function readPath(path: string): ContentPath {
  const [, , cid = '', ...rest] = path.split('/')
  const names = rest.filter((part) => part !== '').map(decoded)
  if (names.length > MAX_NAMES) throw new PaymentError('value', `the path has more than ${MAX_NAMES} names`)
  return { cid, names, closed: rest.at(-1) === '', text: path.replaceAll(/[^\x21-\x7e]/g, escaped) }
}

/** The path of these names below a root. */
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
