import { readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { packageFolder, version } from '../../common/files/package-folder.js'
import type { Logger } from '../../common/log.js'
import { isForS3, misdirected } from '../../common/misdirected.js'
import { nameOf, originAt } from '../../src/server/console-address.js'
import { type Serving, serve } from './listen.js'
import type { TlsSource } from './tls.js'

/** The S3 endpoint, as the pages of the console need to know it. */
export interface ConsoleTarget {
  /** Address at which this machine reaches it. */
  readonly at: string
  /** Its address for browsers, if it is another one: behind a reverse proxy. */
  readonly url?: string | undefined
  readonly region: string
  /** How users sign in at an OpenID Connect issuer; undefined without one. */
  readonly oidc?: ConsoleSignIn
}

interface ConsoleSignIn {
  readonly issuer: {
    readonly issuer: string
    /** What a page asks to sign in, and why that is not possible now. */
    origins(): Promise<{ readonly origins: readonly string[]; readonly problem?: string }>
  }
  readonly clientId: string
  readonly scope: string
  readonly redirectUri: string
}

interface ConsoleOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly tls?: TlsSource | undefined
  /** Undefined until the endpoint has started; the console answers 503 until then. */
  readonly target: () => ConsoleTarget | undefined
  readonly log: Logger
}

const compress = promisify(gzip)

/** Its pages are few and small. */
const MAX_CONNECTIONS = 256
/** How long a client may read nothing of an answer, ms. */
const STALL_MS = 30_000

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** No dot but that of the type: no path leads out of the folder, and none to a hidden file. */
const FILE = /^(?:\/[A-Za-z0-9-]+)+\.(?:html|js|css|svg|txt)$/

/**
 * Serves the files of the folder `console`, and what they need to find the S3 endpoint. They are read at each
 * request, so that a changed file needs no restart. Rejects with the system error if it cannot listen.
 */
export function serveConsole(options: ConsoleOptions): Promise<Serving> {
  const { host, port, tls, target, log } = options
  const folder = join(packageFolder(), 'console')
  const answering = new WeakSet<Socket>()
  const handler = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { socket } = incoming
    // No browser sends a request before the last one is answered. A client that does could open any number of files.
    if (answering.has(socket)) {
      socket.destroy()
      return
    }
    answering.add(socket)
    outgoing.once('close', () => answering.delete(socket))
    outgoing.setTimeout(STALL_MS, () => outgoing.destroy())
    answer(incoming, outgoing, folder, target()).catch((err) => {
      log.error({ err }, 'a file of the console cannot be sent')
      outgoing.destroy()
    })
  }
  return serve({ handler, host, port, tls, connections: { total: MAX_CONNECTIONS } })
}

async function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  folder: string,
  target: ConsoleTarget | undefined,
): Promise<void> {
  const [path = ''] = (incoming.url ?? '').split('?')
  if (isForS3(incoming.headers, incoming.url ?? '')) return answerS3(outgoing, target, incoming.headers.host ?? '')
  if (incoming.method !== 'GET' && incoming.method !== 'HEAD') return refuse(outgoing, 405, { allow: 'GET, HEAD' })
  if (target === undefined) return refuse(outgoing, 503, { 'retry-after': '1' })
  const name = path === '/' ? '/index.html' : path
  const document = path === '/config.json' || name.endsWith('.html')
  // Only a document has a policy of its own; other files do not wait for an issuer.
  const issuer = document ? await target.oidc?.issuer.origins() : undefined
  const headers = securityHeaders(target, incoming.headers.host ?? '', issuer?.origins)
  if (path === '/config.json') {
    const { url, at, region } = target
    const { port, protocol } = new URL(at)
    const oidc = signInFacts(target.oidc, issuer?.problem)
    const text = JSON.stringify({ endpoint: url ?? null, scheme: protocol, port, region, version: version(), oidc })
    return sendText(outgoing, text, { ...headers, 'content-type': 'application/json' }, incoming.method)
  }
  const file = FILE.test(name) ? await found(join(folder, name)) : undefined
  if (file === undefined) return refuse(outgoing, 404, headers)
  const encoding = /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? '')) ? 'gzip' : undefined
  const etag = `"${file.size.toString(16)}-${file.mtimeMs.toString(16)}${encoding ? '-gzip' : ''}"`
  const all = { ...headers, etag, vary: 'Accept-Encoding', 'content-type': TYPES[extname(name)] }
  if (incoming.headers['if-none-match'] === etag) {
    outgoing.writeHead(304, all).end()
    return
  }
  const bytes = await readFile(join(folder, name))
  if (encoding === undefined) return sendText(outgoing, bytes, all, incoming.method)
  sendText(outgoing, await compress(bytes), { ...all, 'content-encoding': encoding }, incoming.method)
}

/** What the pages need to sign in at an issuer; null if none is configured. */
function signInFacts(oidc: ConsoleSignIn | undefined, problem: string | undefined) {
  if (oidc === undefined) return null
  const { issuer, ...facts } = oidc
  return { issuer: issuer.issuer, ...facts, ...(problem !== undefined && { problem }) }
}

async function found(path: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  const facts = await stat(path).catch(() => undefined)
  return facts?.isFile() ? facts : undefined
}

type Headers = Record<string, string | undefined>

function sendText(outgoing: ServerResponse, body: Buffer | string, headers: Headers, method: string): void {
  outgoing.writeHead(200, { ...headers, 'content-length': Buffer.byteLength(body) })
  outgoing.end(method === 'HEAD' ? undefined : body)
}

function answerS3(outgoing: ServerResponse, target: ConsoleTarget | undefined, host: string): void {
  const named = target && endpointFor(target, host)
  // Where no policy can name it, as `http://*:9000`.
  const endpoint = named?.includes('*') ? target?.at : named
  const { status, type, body } = misdirected('the console of dealgate, a page for browsers', endpoint)
  outgoing.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
}

function refuse(outgoing: ServerResponse, status: number, headers: Headers): void {
  const body = `${status}\n`
  outgoing.writeHead(status, { ...headers, 'content-type': 'text/plain', 'content-length': body.length }).end(body)
}

/**
 * A page of the console loads its own files alone, sends requests to the S3 endpoint alone, has no frame, and is in
 * none. Bytes that are stored come only as `blob:` of a type that the page has chosen; sounds and films, which may be
 * large, from the endpoint.
 * @param more origins that the page may ask, too
 */
function securityHeaders(target: ConsoleTarget, host: string, more: readonly string[] = []): Headers {
  const endpoint = endpointFor(target, host)
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    `media-src ${endpoint}`,
    ["connect-src 'self'", endpoint, ...more].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cache-control': 'no-cache',
  }
}

/** The endpoint as a source of a policy: at the host that the browser has asked, as the page finds it, too. */
function endpointFor({ url, at }: ConsoleTarget, host: string): string {
  if (url !== undefined) return new URL(url).origin
  const place = new URL(at)
  const name = nameOf(host)
  if (name === undefined) return place.origin
  // A policy cannot name an IPv6 address: https://www.w3.org/TR/CSP3/#grammardef-host-source
  if (name.startsWith('[')) return `${place.protocol}//*${place.port && `:${place.port}`}`
  return originAt(place, name)
}
