import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Config } from '../config/config.js'
import { ownEndpoint } from '../running.js'

/** Brand words of public deployments, for `--brand-path` and `--brand-header`. */
const KNOWN_BRANDS = [
  { path: 'minio', header: 'amz' },
  { path: 'gateway', header: 'cloud' },
] as const

/**
 * Explains a conflict between the two words of the brand; returns undefined without one. A log-in uses only the word
 * of paths: with a wrong word of headers it succeeds, and metadata, dates and links are lost later. Ignores words of
 * unknown deployments.
 */
export function mixedBrand({ gatewayUrl, brandPath, brandHeader }: GatewayChoice): string | undefined {
  if (gatewayUrl === undefined) return undefined
  const byPath = KNOWN_BRANDS.find(({ path }) => path === brandPath)
  const byHeader = KNOWN_BRANDS.find(({ header }) => header === brandHeader)
  if (!byPath || !byHeader || byPath === byHeader) return undefined
  const words = ({ path, header }: (typeof KNOWN_BRANDS)[number]) => `--brand-path ${path} --brand-header ${header}`
  return (
    `the words of two brands are mixed: paths say ${brandPath}, headers ${brandHeader}. With the wrong word for headers, metadata, checksums and links are lost. ` +
    `This gateway answers at /${brandPath}: give ${words(byPath)}.`
  )
}

const CALL = JSON.stringify({ id: '1', jsonrpc: '2.0', method: 'web.ListBuckets', params: {} })

/** The kind of server that answers a JSON-RPC call; `other` includes none. */
type Answerer = 'json-rpc' | 's3' | 'other'

type GatewayChoice = Pick<Config, 'gatewayUrl' | 'brandPath' | 'brandHeader' | 'gatewayTimeoutMs'>

/**
 * Finds the likely mistake in the options if a gateway is unusable, and its remedy; undefined if none is found. Sends a
 * few requests without log-in.
 */
export async function likelyMistake(config: GatewayChoice): Promise<string | undefined> {
  if (config.gatewayUrl === undefined) return undefined
  const url = new URL(config.gatewayUrl)
  const ask = (base: string, word: string) =>
    answerer(`${base.replace(/\/+$/, '')}/${word}/webrpc`, config.gatewayTimeoutMs)
  const here = await ask(url.href, config.brandPath)
  if (here === 'json-rpc') return undefined

  const brands = [{ path: config.brandPath, header: config.brandHeader }, ...KNOWN_BRANDS]
  for (const brand of brands) {
    const words =
      brand.path === config.brandPath ? '' : ` with --brand-path ${brand.path} --brand-header ${brand.header}`
    if (words !== '' && (await ask(url.href, brand.path)) === 'json-rpc') {
      return `the gateway answers by other words: start${words}.`
    }
    if (url.pathname !== '/' && (await ask(url.origin, brand.path)) === 'json-rpc') {
      return `the path in --gateway-url leads past the gateway: give ${url.origin}${words}.`
    }
  }
  if (here !== 's3') return undefined
  return (
    `${url.origin} answers S3 and no JSON-RPC at /${config.brandPath}/webrpc. Its web console may be off (set MINIO_BROWSER=on), it may be the S3 port of a ` +
    'gateway whose console is elsewhere, or a MinIO newer than 2021-06-17, which has no JSON-RPC: use its S3 directly.'
  )
}

async function answerer(url: string, timeoutMs: number): Promise<Answerer> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Mozilla/5.0 (compatible; dealgate)' },
      body: CALL,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const type = answer.headers.get('content-type') ?? ''
    const text = (await answer.text()).slice(0, 4096)
    if (/^application\/json\b/i.test(type) && text.includes('"jsonrpc"')) return 'json-rpc'
    return /<Error>\s*<Code>/.test(text) || answer.headers.has('x-amz-request-id') ? 's3' : 'other'
  } catch {
    return 'other'
  }
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** At most 64 KiB. */
  readonly body: string
}

interface AskOptions {
  readonly method?: 'GET' | 'HEAD'
  readonly timeoutMs: number
  readonly tls?: object | undefined
}

const MAX_CHARACTERS = 64 * 1024
const LOCAL_MS = 2000

/** Sends a request without a body. Rejects when no answer comes. */
export function ask(url: string, { method = 'GET', timeoutMs, tls = {} }: AskOptions): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest
    const request = send(url, { ...tls, method, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    request.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        if (body.length < MAX_CHARACTERS) body += text
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    request.on('error', reject)
    request.end()
  })
}

/** For a server of this machine: it may have a certificate for another name. */
export const ANY = { rejectUnauthorized: false }

/** True if a dealgate answers where the options say, or one that runs with the data folder. */
export async function isRunning(config: Config): Promise<boolean> {
  const endpoint = ownEndpoint(config)
  if (endpoint === undefined) return false
  try {
    const { status, headers } = await ask(`${endpoint}/-/live`, { timeoutMs: LOCAL_MS, tls: ANY })
    return status === 200 && headers['x-amz-request-id'] !== undefined
  } catch {
    return false
  }
}
