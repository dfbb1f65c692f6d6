// Signature version 4 by WebCrypto: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html

const encoder = new TextEncoder()
const ALGORITHM = 'AWS4-HMAC-SHA256'
const HMAC = { name: 'HMAC', hash: 'SHA-256' }

/** SHA-256 of no bytes. */
export const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Signs requests with one key pair or session. The secret is a key that scripts can use and not read. */
export class Signer {
  #secret
  #keys = new Map()

  constructor(secret, { accessKeyId, sessionToken, region }) {
    this.#secret = secret
    this.accessKeyId = accessKeyId
    this.sessionToken = sessionToken
    this.region = region
    /** Time of the server less that of this machine, ms. */
    this.skew = 0
  }

  /** @param pair { accessKeyId, secretAccessKey, sessionToken?, region } */
  static async of(pair) {
    return new Signer(await hmacKey(encoder.encode(`AWS4${pair.secretAccessKey}`)), pair)
  }

  /**
   * Returns the headers of a signed request, those given included.
   * @param request { method, url, headers?, hash, service? }: `hash` is the SHA-256 of the body in hexadecimal
   */
  async sign({ method, url, headers = {}, hash, service = 's3' }) {
    const time = this.#time()
    const all = lowerCase({
      ...headers,
      'x-amz-date': time,
      'x-amz-content-sha256': hash,
      ...(this.sessionToken && { 'x-amz-security-token': this.sessionToken }),
    })
    const { host, pathname, search } = new URL(url)
    const signed = { ...all, host }
    const names = Object.keys(signed).sort()
    const canonical = canonicalRequest(method, pathname, search.slice(1), signed, names, hash)
    const signature = await this.#signature(canonical, time, service)
    const credential = `${this.accessKeyId}/${this.#scope(time, service)}`
    const authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`
    return {
      ...Object.fromEntries(Object.entries(all).map(([name, value]) => [name, headerBytes(value)])),
      authorization,
    }
  }

  /** Returns a URL that is valid for so many seconds without any header. */
  async presign({ method = 'GET', url, expires }) {
    const time = this.#time()
    const place = new URL(url)
    const query = canonicalQuery([
      ...[...place.searchParams],
      ['X-Amz-Algorithm', ALGORITHM],
      ['X-Amz-Credential', `${this.accessKeyId}/${this.#scope(time, 's3')}`],
      ['X-Amz-Date', time],
      ['X-Amz-Expires', String(expires)],
      ['X-Amz-SignedHeaders', 'host'],
      ...(this.sessionToken ? [['X-Amz-Security-Token', this.sessionToken]] : []),
    ])
    const headers = { host: place.host }
    const canonical = canonicalRequest(method, place.pathname, query, headers, ['host'], 'UNSIGNED-PAYLOAD')
    return `${place.origin}${place.pathname}?${query}&X-Amz-Signature=${await this.#signature(canonical, time, 's3')}`
  }

  #time() {
    return new Date(Date.now() + this.skew).toISOString().replace(/[-:]|\.\d+/g, '')
  }

  #scope(time, service) {
    return `${time.slice(0, 8)}/${this.region}/${service}/aws4_request`
  }

  async #signature(canonical, time, service) {
    const scope = this.#scope(time, service)
    const text = [ALGORITHM, time, scope, await sha256(encoder.encode(canonical))].join('\n')
    return hex(await hmac(await this.#keyFor(scope), text))
  }

  /** The key of one day and service. */
  #keyFor(scope) {
    let key = this.#keys.get(scope)
    if (key === undefined) {
      key = scope
        .split('/')
        .reduce(async (before, word) => hmacKey(await hmac(await before, word)), Promise.resolve(this.#secret))
      this.#keys.clear()
      this.#keys.set(scope, key)
    }
    return key
  }
}

/** Browsers send a header as the bytes of its characters: these are the bytes of UTF-8, which the signature covers. */
function headerBytes(value) {
  return Array.from(encoder.encode(String(value)), (byte) => String.fromCharCode(byte)).join('')
}

/** The text of a header that came in an answer. */
export function headerText(value) {
  const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return value
  }
}

/** The text of user metadata: what is not ASCII comes as an encoded word of RFC 2047. */
export function metadataText(value) {
  const [, form, word] = /^=\?UTF-8\?([BQ])\?(.*)\?=$/.exec(value) ?? []
  try {
    if (form === 'B') return headerText(atob(word))
    if (form) return decodeURIComponent(word.replace(/[%=]/g, (c) => (c === '=' ? '%' : '%25')).replaceAll('_', ' '))
  } catch {}
  return headerText(value)
}

function canonicalRequest(method, path, query, headers, names, hash) {
  const lines = names.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}\n`)
  return [method, path, query, lines.join(''), names.join(';'), hash].join('\n')
}

function hmacKey(bytes) {
  return crypto.subtle.importKey('raw', bytes, HMAC, false, ['sign'])
}

async function hmac(key, text) {
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)))
}

/** @param bytes an ArrayBuffer or a view; returns hexadecimal digits */
export async function sha256(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function lowerCase(headers) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Encodes every byte that S3 does, and no other: encodeURIComponent leaves five characters. */
export function uriEncode(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** A query in the order in which it is signed. @param pairs [name, value] */
export function canonicalQuery(pairs) {
  return pairs
    .map(([name, value]) => `${uriEncode(name)}=${uriEncode(String(value))}`)
    .sort((one, other) => compare(one.split('='), other.split('=')))
    .join('&')
}

function compare([name, value], [otherName, otherValue]) {
  if (name === otherName) return value < otherValue ? -1 : value > otherValue ? 1 : 0
  return name < otherName ? -1 : 1
}

/** The path of a bucket or object. */
export function pathOf(bucket, key) {
  if (bucket === undefined) return '/'
  return `/${uriEncode(bucket)}${key === undefined ? '' : `/${key.split('/').map(uriEncode).join('/')}`}`
}

/** False for a key that no browser can request: it removes such segments from every path. */
export function isReachable(key) {
  return !key.split('/').some((segment) => segment === '.' || segment === '..')
}
