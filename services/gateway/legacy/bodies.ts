import { randomBytes } from 'node:crypto'
import type { HeaderList } from '../../http/errors.js'
import { GatewayError } from '../errors.js'
import { decode, type GatewayExchange, headerText, replyXmlError, splitFirst } from '../exchange.js'
import type { Endpoint } from '../handler.js'
import { isKept } from '../rest/object-headers.js'
import { replyConsolePage } from './console-page.js'
import { LegacyError } from './errors.js'
import type { QuirkName } from './quirks.js'

type Quirks = ReadonlySet<QuirkName>
type Handle = Endpoint['handle']

const MAX_HEADER_BYTES = 8 * 1024

/** Bytes of user metadata that `small-metadata` allows. */
export const SMALL_METADATA_BYTES = 2 * 1024

/** PUT upload as a gateway with these quirks answers it. */
export function uploading(quirks: Quirks, upload: Handle): Handle {
  return async (exchange, rest) => {
    const { request, context } = exchange
    if (quirks.has('line-feed-keys') && decode(splitFirst(rest)[1]).includes('\n')) {
      return replyXmlError(exchange, new LegacyError('MalformedXML'))
    }
    const etag = `${context.names.header}etag`
    if (quirks.has('query-metadata')) takeQuery(exchange)
    if (quirks.has('no-upload-etag')) delete request.headers[etag]
    if (quirks.has('random-etags')) request.headers[etag] = `${randomBytes(16).toString('hex')}-1`
    if (quirks.has('no-upload-etag')) onHead(exchange, (_, headers) => without(headers, isOfUpload(exchange)))
    try {
      const small = quirks.has('small-metadata')
      if (small && sizeOf(request.rawHeaders) > MAX_HEADER_BYTES) throw new GatewayError('MetadataTooLarge')
      await upload(exchange, rest)
    } catch (error) {
      // Public gateways check the size of metadata first, and answer as S3 does (MinIO cmd/generic-handlers.go).
      const early = error instanceof GatewayError && error.kind === 'MetadataTooLarge' && quirks.has('small-metadata')
      if (early) replyXmlError(exchange, error)
      else throw refusalAs(quirks, error)
    }
  }
}

/** Takes the attributes of an object from the query, too. */
function takeQuery({ request, target, context: { names } }: GatewayExchange): void {
  for (const [given, value] of target.parameters) {
    const name = given.toLowerCase()
    const isAttribute = name === 'content-type' || name === `${names.header}etag` || isKept(names, name)
    if (isAttribute) request.headers[name] = headerText(given, value)
  }
}

function sizeOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** GET download as a gateway with these quirks answers it. */
export function downloading(quirks: Quirks, download: Handle): Handle {
  return async (exchange, rest) => {
    const token = exchange.target.parameters.get('token')
    if (token === null && quirks.has('html-without-token')) return replyConsolePage(exchange)
    try {
      await sending(quirks, exchange, rest, () => download(exchange, rest))
    } catch (error) {
      throw refusalAs(quirks, error)
    }
  }
}

/** The answer to an object of another account that its bucket does not allow. */
function refusalAs(quirks: Quirks, error: unknown): unknown {
  const isRefusal = error instanceof GatewayError && error.kind === 'NotPermitted'
  return isRefusal && quirks.has('foreign-auth-failures') ? new GatewayError('Authentication', {}, error) : error
}

// Go writes these into a header unchanged, and replaces line ends by spaces (net/http, `headerNewlineToSpace`).
// biome-ignore lint/suspicious/noControlCharactersInRegex: the class is made of control characters
const RAW_CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/

/** The head of an answer is sent by other means: it ends the work of the core, which has sent nothing. */
class BrokenHead extends GatewayError {
  constructor() {
    super('Internal')
  }
}

/** Sends an object by `send` as a gateway with these quirks does. */
export async function sending(
  quirks: Quirks,
  exchange: GatewayExchange,
  path: string,
  send: () => Promise<void> | void,
): Promise<void> {
  const { request, response, target } = exchange
  if (quirks.has('ignore-range')) for (const name of CONDITIONS) delete request.headers[name]
  const last = lastElement(path)
  const overridden = (name: string) => target.parameters.has(`response-${name}`)
  const breaks = quirks.has('raw-disposition') && !overridden('content-disposition') && RAW_CONTROL.test(last)
  let broken = false
  onHead(exchange, (status, given) => {
    broken ||= breaks && status < 400
    // Thrown again where the core would answer with the error that it has caught.
    if (broken) throw new BrokenHead()
    if (status >= 400) return given
    let headers = quirks.has('no-upload-etag') ? without(given, isOfDownload(exchange)) : given
    if (!quirks.has('forced-disposition')) return headers
    if (!overridden('content-disposition')) headers = withFirst(headers, 'content-disposition', attachment(last))
    if (!overridden('cache-control')) headers = withFirst(headers, 'cache-control', 'no-store')
    return headers
  })
  try {
    await send()
  } catch (error) {
    if (!(error instanceof BrokenHead)) throw error
    // Strict clients cannot parse this head.
    const head = `HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename="${last.replace(/[\r\n]/g, ' ')}"\r\n`
    response.socket?.end(`${head}Connection: close\r\n\r\n`, 'latin1')
  }
}

const CONDITIONS = ['range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since']

/** The part of a key behind its last slash; UTF-8 bytes, one character each. '' where the key is none. */
function lastElement(path: string): string {
  try {
    const key = decode(splitFirst(path)[1])
    return key.subarray(key.lastIndexOf('/') + 1).toString('latin1')
  } catch {
    return ''
  }
}

function attachment(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: headers cannot carry these characters
  const text = name.replace(/[\x00-\x1f\x7f]/g, '').replace(/["\\]/g, '\\$&')
  return `attachment; filename="${text}"`
}

/** Headers that public gateways do not know. */
function isOfUpload({ context: { names } }: GatewayExchange): (name: string) => boolean {
  return (name) => name === 'etag' || [`${names.header}generation`, `${names.header}last-modified`].includes(name)
}

function isOfDownload(exchange: GatewayExchange): (name: string) => boolean {
  return (name) => name !== 'etag' && isOfUpload(exchange)(name)
}

/** Changes the head of the answer before it is sent. */
function onHead({ response }: GatewayExchange, change: (status: number, headers: HeaderList) => HeaderList): void {
  const writeHead = response.writeHead.bind(response)
  response.writeHead = (status, headers) => writeHead(status, change(status, headers))
}

function without(headers: HeaderList, unwanted: (name: string) => boolean): HeaderList {
  return headers.filter((_, n) => !unwanted(String(headers[n - (n % 2)]).toLowerCase()))
}

/** Content-Length must follow Content-Disposition: Node decodes the latter as UTF-8 once it knows the former. */
function withFirst(headers: HeaderList, name: string, value: string): HeaderList {
  return [name, value, ...without(headers, (other) => other === name)]
}
