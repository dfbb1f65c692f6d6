import { createServer, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { listen } from '../../support/server/listen.js'

export interface Recorded {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly authorization: string | undefined
  readonly type: string
  readonly body: string
  /** X-Forwarded-For, where it was sent. */
  readonly forwarded?: string
}

/** Status and body; a string is sent as it is. `lost`: the connection ends without an answer. */
type Answer = readonly [status: number, body: object | string] | 'lost'
/** A function decides by the requests so far. */
export type Scripted = Answer | (() => Answer)

export interface RecordedPlatform {
  readonly url: string
  /** All requests so far. */
  readonly requests: Recorded[]
  /** Answers of `METHOD /path`, without query; a list is used up one by one, its last answer stays. */
  readonly answers: Map<string, Scripted[]>
  /** An answer to a request of `METHOD /path` waits for this. */
  readonly waits: Map<string, Promise<unknown>>
}

/** A task platform whose every answer the test decides, and which records the requests byte by byte. */
export async function startRecordedPlatform(t: Test): Promise<RecordedPlatform> {
  const requests: Recorded[] = []
  const answers = new Map<string, Scripted[]>()
  const waits = new Map<string, Promise<unknown>>()
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const body = await textOf(request).catch(() => undefined)
    // The client has cut the connection.
    if (body === undefined) return
    requests.push({
      method,
      target: url,
      authorization: headers.authorization,
      type: headers['content-type'] ?? '',
      body,
      ...(headers['x-forwarded-for'] !== undefined && { forwarded: String(headers['x-forwarded-for']) }),
    })
    const route = `${method} ${url.split('?')[0]}`
    await waits.get(route)
    const scripted = answers.get(route) ?? []
    const next = scripted.length > 1 ? scripted.shift() : scripted[0]
    const answer = typeof next === 'function' ? next() : next
    if (answer === 'lost') return void request.socket.destroy()
    const [status, told] = answer ?? [404, { status: 'fail', message: 'no such path' }]
    response.writeHead(status, { 'content-type': typeof told === 'string' ? 'text/html' : 'application/json' })
    response.end(typeof told === 'string' ? told : JSON.stringify(told))
  })
  const url = await listen(server)
  t.teardown(() => server.close())
  return { url, requests, answers, waits }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
