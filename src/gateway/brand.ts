/**
 * The words that a deployment uses in place of `gateway` (paths, ServerInfo members) and `cloud` (header and query
 * names) of the interface description.
 */
export interface Brand {
  /** Path word: `gateway` gives `/gateway/webrpc` and the member `GatewayVersion`. */
  readonly path: string
  /** Header word: `cloud` gives `x-cloud-meta-*` and `X-Cloud-Signature`. */
  readonly header: string
}

export const neutralBrand: Brand = Object.freeze({ path: 'gateway', header: 'cloud' })

/** All names on the wire that contain a word of the brand. */
export interface BrandNames {
  readonly rpcPath: string
  /** `/gateway/<rest>`; `rest` is percent-encoded already. */
  ownPath(rest: string): string
  uploadPath(bucket: string, key: string): string
  downloadPath(bucket: string, key: string): string
  /** `x-cloud-<suffix>`, lower-case. */
  header(suffix: string): string
  /** Lower-case prefix of user metadata headers. */
  readonly metaPrefix: string
  /** `X-Cloud-<suffix>`, as in signed queries. */
  query(suffix: string): string
  /** `Gateway<suffix>`, a member of web.ServerInfo. */
  member(suffix: string): string
}

/** Throws TypeError when a word is not valid in a path or header name. */
export function brandNames(brand: Brand): BrandNames {
  const path = checked(brand.path)
  const header = checked(brand.header)
  const target = (verb: string, bucket: string, key: string) =>
    `/${path}/${verb}/${encodeSegment(bucket)}/${encodePath(key)}`
  const known = new Map<string, string>()
  /** One text for each suffix: engines look objects up by it without comparing characters. */
  const headerName = (suffix: string): string => {
    let name = known.get(suffix)
    if (name === undefined) {
      name = `x-${header}-${suffix}`
      known.set(suffix, name)
    }
    return name
  }
  return {
    rpcPath: `/${path}/webrpc`,
    ownPath: (rest) => `/${path}/${rest}`,
    uploadPath: (bucket, key) => target('upload', bucket, key),
    downloadPath: (bucket, key) => target('download', bucket, key),
    header: headerName,
    metaPrefix: `x-${header}-meta-`,
    query: (suffix) => `X-${capital(header)}-${suffix}`,
    member: (suffix) => capital(path) + suffix,
  }
}

/** Texts that need no encoding. */
const PLAIN = /^[A-Za-z0-9\-._~]*$/

const PLAIN_PATH = /^[A-Za-z0-9\-._~/]*$/

/** Percent-encodes each segment as SigV4 does, and changes nothing else: `..`, `//` and a final `/` stay. */
export function encodePath(path: string): string {
  if (PLAIN_PATH.test(path)) return path
  return path.split('/').map(encodeSegment).join('/')
}

/** Percent-encodes a segment of a path, or a parameter, as SigV4 does. */
export function encodeSegment(segment: string): string {
  if (PLAIN.test(segment)) return segment
  return encodeURIComponent(segment).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function checked(word: string): string {
  if (!/^[a-z][a-z0-9-]*$/.test(word)) throw new TypeError(`"${word}" cannot be a brand word: use a-z, 0-9 and "-"`)
  return word
}

function capital(word: string): string {
  return word[0]?.toUpperCase() + word.slice(1)
}
