import { parseJson } from '../../../common/json.js'

/** Media types of names that web pages and collections of NFTs consist of. */
const BY_EXTENSION: Readonly<Record<string, string>> = {
  ...{ html: 'text/html; charset=utf-8', htm: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8' },
  ...{ js: 'text/javascript; charset=utf-8', mjs: 'text/javascript; charset=utf-8' },
  ...{ txt: 'text/plain; charset=utf-8', md: 'text/markdown; charset=utf-8', csv: 'text/csv; charset=utf-8' },
  ...{ json: 'application/json', map: 'application/json', webmanifest: 'application/manifest+json' },
  ...{ xml: 'text/xml; charset=utf-8', svg: 'image/svg+xml', wasm: 'application/wasm', cbor: 'application/cbor' },
  ...{ png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' },
  ...{ avif: 'image/avif', bmp: 'image/bmp', ico: 'image/x-icon', tif: 'image/tiff', tiff: 'image/tiff' },
  ...{ woff: 'font/woff', woff2: 'font/woff2', ttf: 'font/ttf', otf: 'font/otf' },
  ...{ mp3: 'audio/mpeg', wav: 'audio/wav', flac: 'audio/flac', m4a: 'audio/mp4', oga: 'audio/ogg', ogg: 'audio/ogg' },
  ...{ mp4: 'video/mp4', m4v: 'video/mp4', webm: 'video/webm', mov: 'video/quicktime', ogv: 'video/ogg' },
  ...{ glb: 'model/gltf-binary', gltf: 'model/gltf+json', pdf: 'application/pdf', epub: 'application/epub+zip' },
  ...{ zip: 'application/zip', gz: 'application/gzip', tar: 'application/x-tar', car: 'application/vnd.ipld.car' },
}

/** First bytes in hex, and what they mean (https://mimesniff.spec.whatwg.org/). */
const BY_BYTES: readonly (readonly [pattern: RegExp, type: string])[] = [
  [/^89504e470d0a1a0a/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^47494638(37|39)61/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
  [/^52494646.{8}57415645/, 'audio/wav'],
  [/^.{8}6674797061766966/, 'image/avif'],
  [/^.{8}667479707174/, 'video/quicktime'],
  [/^.{8}66747970/, 'video/mp4'],
  [/^1a45dfa3/, 'video/webm'],
  [/^4f67675300/, 'application/ogg'],
  [/^494433/, 'audio/mpeg'],
  [/^664c6143/, 'audio/flac'],
  [/^255044462d/, 'application/pdf'],
  [/^504b0304/, 'application/zip'],
  [/^1f8b08/, 'application/gzip'],
  [/^0061736d/, 'application/wasm'],
  [/^676c5446/, 'model/gltf-binary'],
  [/^774f4632/, 'font/woff2'],
  [/^774f4646/, 'font/woff'],
]
/** First bytes of texts. */
const BY_TEXT: readonly (readonly [pattern: RegExp, type: string])[] = [
  [/^\s*<(!doctype html|html)[\s>]/i, 'text/html; charset=utf-8'],
  [/^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)?<svg[\s>]/i, 'image/svg+xml'],
  [/^\s*<\?xml/, 'text/xml; charset=utf-8'],
]

/** So many bytes of a file are looked at. */
export const SNIFFED_BYTES = 3072

const OCTETS = 'application/octet-stream'

/**
 * The media type of a file: by its name, else by its first bytes.
 * @param name of the file, from the path or the query
 * @param beginning its first bytes, `SNIFFED_BYTES` or all of them
 * @param isAll true when these are all
 */
export function contentType(name: string, beginning: Uint8Array, isAll: boolean): string {
  const known = typeOfName(name)
  if (known !== undefined) return known
  const hex = Buffer.from(beginning.subarray(0, 16)).toString('hex')
  const [, binary] = BY_BYTES.find(([pattern]) => pattern.test(hex)) ?? []
  if (binary !== undefined) return binary
  const text = textOf(beginning, isAll)
  if (text === undefined) return OCTETS
  const [, type] = BY_TEXT.find(([pattern]) => pattern.test(text)) ?? []
  return type ?? (isJson(text, isAll) ? 'application/json' : 'text/plain; charset=utf-8')
}

/** Undefined when the name says nothing. */
function typeOfName(name: string): string | undefined {
  const extension = /\.([a-z0-9]{1,12})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension] : undefined
}

/** Undefined for bytes that are not of a text in UTF-8. */
function textOf(bytes: Uint8Array, isAll: boolean): string | undefined {
  try {
    // A character may be cut in two at the end of a beginning.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isAll })
    return text === '' || /[^\P{Cc}\t\n\f\r]/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function isJson(text: string, isAll: boolean): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  if (!isAll) return /^\s*(\{\s*"|\[\s*[[{"\d])/.test(text)
  return parseJson(text) !== undefined
}
