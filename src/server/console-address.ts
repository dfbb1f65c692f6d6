import { S3Error } from '../../common/errors/s3-error.js'
import type { ReplyHeaders, RequestHead } from '../api/request.js'
import { empty } from '../http/reply.js'
import { defineOperation } from '../plugins/define-plugin.js'
import type { Selected } from '../plugins/table.js'

/** Where browsers find the console of a server. */
export interface ConsoleAddress {
  /** Scheme, host and port at which this machine reaches its pages, such as http://127.0.0.1:9001. */
  readonly at: string
  /** Its address for browsers, if it is another one: behind a reverse proxy. */
  readonly url?: string | undefined
}

/** How the S3 endpoint treats browsers that come from the console, or look for it. */
export interface ConsoleAccess {
  /** The operation for a preflight from the console, and for a browser at `/`. Undefined for all other requests. */
  select(head: RequestHead): Selected | undefined
  /** The headers that let the console read an answer; undefined if the request does not come from it. */
  headersFor(headers: RequestHead['headers'], host: string): ReplyHeaders | undefined
}

const SOURCE = 'docs/console.md'
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Time for which a browser may keep the answer to a preflight, s; Chromium keeps it for at most two hours. */
const PREFLIGHT_SECONDS = 7200

/**
 * The console is a page of another origin. Its requests carry no cookie, only a signature, so that the permission to
 * read their answers gives a page nothing that it could not sign for itself.
 * @throws TypeError for an address that is no URL
 */
export function consoleAccess(address: ConsoleAddress): ConsoleAccess {
  const at = new URL(address.at)
  const configured = address.url === undefined ? undefined : new URL(address.url)

  /** Without a configured address, the console is at its port of whatever host the browser has asked. */
  const isConsole = (origin: string | undefined, host: string): boolean => {
    if (origin === undefined) return false
    if (configured !== undefined) return origin === configured.origin
    const name = nameOf(host)
    return name !== undefined && originAt(at, name) === origin
  }

  const preflight = defineOperation({
    name: 'PreflightConsole',
    source: SOURCE,
    access: 'public',
    action: 'none',
    on: { method: 'OPTIONS', resource: 'service' },
    async run({ headers }) {
      if (!METHODS.includes(String(headers['access-control-request-method'])))
        throw new S3Error('BadRequest', { message: 'The preflight requests no method of S3.' })
      return empty(
        {
          'access-control-allow-methods': METHODS.join(', '),
          // `*` does not include Authorization: https://fetch.spec.whatwg.org/#cors-non-wildcard-request-header-name
          'access-control-allow-headers': 'authorization, *',
          'access-control-max-age': PREFLIGHT_SECONDS,
        },
        204,
      )
    },
  })

  const frontPage = defineOperation({
    name: 'ShowConsole',
    source: SOURCE,
    access: 'public',
    action: 'none',
    on: { method: 'GET', resource: 'service' },
    async run({ host }) {
      const headers = { 'cache-control': 'no-store', vary: 'Accept' }
      // The link leads to an address of ours alone: that of the request is the client's word.
      const known = configured ?? (LOOPBACK.has(nameOf(host) ?? '') ? at : undefined)
      if (known !== undefined) return empty({ ...headers, location: `${known.origin}/` }, 302)
      return {
        status: 200,
        headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' },
        body: `This is an S3 endpoint. Its console is at port ${at.port || (at.protocol === 'https:' ? 443 : 80)} of this host.\n`,
      }
    },
  })

  return {
    select(head) {
      if (head.method === 'OPTIONS' && isConsole(head.headers.origin, head.host))
        return { plugin: 'server', operation: preflight, params: {} }
      return isVisit(head) ? { plugin: 'server', operation: frontPage, params: {} } : undefined
    },
    headersFor({ origin }, host) {
      if (origin === undefined || !isConsole(origin, host)) return undefined
      return { 'access-control-allow-origin': origin, 'access-control-expose-headers': '*', vary: 'Origin' }
    },
  }
}

/** True for a person who opens the address of the endpoint. Clients of S3 sign, and do not ask for HTML. */
function isVisit({ method, path, rawQuery, resource, headers }: RequestHead): boolean {
  if (method !== 'GET' || resource !== 'service' || path !== '/' || rawQuery !== '') return false
  return headers.authorization === undefined && /\btext\/html\b/.test(headers.accept ?? '')
}

/** The origin of another host at this scheme and port. */
export function originAt({ protocol, port }: Pick<URL, 'protocol' | 'port'>, name: string): string {
  return new URL(`${protocol}//${name}${port && `:${port}`}`).origin
}

/** The name or address in a Host header, without its port; undefined for what is none. */
export function nameOf(host: string): string | undefined {
  const [, name] =
    /^((?:[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?)|\[[0-9a-f:.]{2,45}\])\.?(?::\d{1,5})?$/i.exec(host) ?? []
  return name !== undefined && URL.canParse(`http://${name}`) ? name.toLowerCase() : undefined
}
