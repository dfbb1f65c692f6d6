import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { presignQuery, UNSIGNED_PAYLOAD, uriEncode } from '../../../common/sigv4.js'
import { type Endpoint, type Headers, type Signing, sign } from '../../suites/sign.js'
import { sha256 } from '../content/content.js'
import { until } from '../waiting.js'

export { type Endpoint, type Headers, sign, UNSIGNED_PAYLOAD }

/** A presigned URL. `path` is decoded. */
export function presigned(server: Endpoint, method: string, path: string, brand: 'Amz' | 'Cloud' = 'Amz'): string {
  const query = presignQuery({
    brand,
    method,
    path,
    host: new URL(server.endpoint).host,
    accessKeyId: server.accessKey,
    secretAccessKey: server.secretKey,
    region: server.region,
    expires: 300,
    now: new Date(),
  })
  return `${server.endpoint}${uriEncode(path, true)}?${query}`
}

/** `/bucket/key`, encoded. */
export function targetOf(bucket: string, key: string, query = ''): string {
  return `/${bucket}/${uriEncode(key, true)}${query === '' ? '' : `?${query}`}`
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** `<Code>` of an error document, or undefined. */
  readonly code: string | undefined
  readonly message: string | undefined
  /** True when the connection ended before the body was complete. */
  readonly cut: boolean
}

export interface Sending extends Omit<Signing, 'payloadHash'> {
  readonly body?: Buffer
  /** Default: the hash of the body. */
  readonly payloadHash?: string
  /** Sent but not signed. */
  readonly unsignedHeaders?: Headers
}

/** Signs and sends a request and takes in the whole answer. Rejects when none came. */
export function send(server: Endpoint, sending: Sending, agent: Agent | false = false): Promise<Answer> {
  const { method, target, body, unsignedHeaders } = sending
  const payloadHash = sending.payloadHash ?? sha256(body ?? '')
  const { headers } = sign(server, { ...sending, payloadHash })
  const length: Headers = body === undefined ? {} : { 'content-length': String(body.length) }
  const request = open(server, method, target, { ...length, ...headers, ...unsignedHeaders }, agent)
  const answer = answerTo(request)
  request.end(body)
  return answer
}

/** Repeats a request as clients do, until it is answered with success. Rejects if it is refused. */
export function insist(server: Endpoint, what: string, sending: Sending): Promise<Answer> {
  return until(what, async () => {
    const answer = await send(server, sending).catch(() => undefined)
    if (answer === undefined || answer.cut || answer.status >= 500) return undefined
    if (answer.status >= 400) throw new Error(`${what}: ${answer.status} ${answer.body}`)
    return answer
  })
}

/** Opens a request with exactly this target; nothing in it is normalised. Default: a connection of its own. */
export function open(
  server: Pick<Endpoint, 'endpoint'>,
  method: string,
  target: string,
  headers: Headers,
  agent: Agent | false = false,
): ClientRequest {
  const { hostname, port } = new URL(server.endpoint)
  return httpRequest({ host: hostname, port, method, path: target, headers, agent })
}

/** Sends many requests, some at once, over connections that are kept. Resolves to the answers in order. */
export async function sendAll(server: Endpoint, sendings: readonly Sending[]): Promise<Answer[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  try {
    return await Promise.all(sendings.map((sending) => send(server, sending, agent)))
  } finally {
    agent.destroy()
  }
}

/** Sends requests until each succeeded, since a server under load may answer 503. Rejects after ten rounds. */
export async function sendUntilDone(server: Endpoint, sendings: readonly Sending[]): Promise<void> {
  let left = sendings
  for (let round = 1; left.length > 0; round++) {
    const answers = await sendAll(server, left)
    const refused = answers.find(({ status }) => status >= 300)
    if (refused && round === 10) throw new Error(`${left.length} requests fail, with ${refused.status} ${refused.code}`)
    left = left.filter((_, at) => (answers[at]?.status ?? 0) >= 300)
  }
}

export function answerTo(request: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answered = false
    request.on('error', (error) => {
      // An answer given early may come together with a reset of what was still being sent.
      if (!answered) reject(error)
    })
    request.on('response', (response) => {
      answered = true
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', () => {})
      response.on('close', () => {
        const body = Buffer.concat(chunks)
        const text = body.subarray(0, 4096).toString('utf8')
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body,
          code: /<Code>(\w+)<\/Code>/.exec(text)?.[1],
          message: /<Message>([^<]*)<\/Message>/.exec(text)?.[1],
          cut: !response.complete,
        })
      })
    })
  })
}

/** A request whose head has gone out, and none of its body. */
export interface Begun {
  readonly request: ClientRequest
  readonly answer: Promise<Answer>
  /** The server has asked for the body; otherwise it has answered. */
  readonly continued: boolean
}

/** Sends the head of a request whose body waits for `100 Continue`. */
export async function sendHead(
  server: Pick<Endpoint, 'endpoint'>,
  method: string,
  target: string,
  headers: Headers,
): Promise<Begun> {
  const request = open(server, method, target, { ...headers, expect: '100-continue' })
  const answer = answerTo(request)
  answer.catch(() => {})
  const asked = new Promise<boolean>((resolve) => request.once('continue', () => resolve(true)))
  request.flushHeaders()
  return { request, answer, continued: await Promise.race([asked, answer.then(() => false)]) }
}
