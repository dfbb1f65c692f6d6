import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Config } from '../config/config.js'
import { ownEndpoint } from '../running.js'

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** At most 64 KiB. */
  readonly body: string
}

interface Asking {
  readonly method?: 'GET' | 'HEAD'
  readonly timeoutMs: number
  readonly tls?: object | undefined
}

const MOST_CHARACTERS = 64 * 1024
const LOCAL_MS = 2000

/** Sends a request without a body. Rejects when no answer comes. */
export function ask(url: string, { method = 'GET', timeoutMs, tls = {} }: Asking): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest
    const request = send(url, { ...tls, method, agent: false, signal: AbortSignal.timeout(timeoutMs) })
    request.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        if (body.length < MOST_CHARACTERS) body += text
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
