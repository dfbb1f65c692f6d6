import { createHash, createHmac } from 'node:crypto'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { presignQuery } from '../../../common/sigv4.js'
import { type Endpoint, type Headers, sign } from '../sign.js'

/** An answer is waited for so long, ms. */
const PATIENCE_MS = 60_000

/** How a request vouches for itself. */
export type Vouching = 'signed' | 'presigned' | 'unsigned' | 'wrong secret' | 'version 2' | 'version 2 link'

export interface Asked {
  readonly method: string
  /** Path and query as they go over the wire. */
  readonly target: string
  readonly headers?: Headers
  readonly body?: Buffer
}

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Of an error document, in XML or JSON. */
  readonly code: string | undefined
}

/** Sends one request over a connection of its own. Rejects when no answer comes. */
export function ask(server: Endpoint, asked: Asked, vouching: Vouching = 'signed'): Promise<Answered> {
  const { method, body } = asked
  const { target, headers } = vouched(server, asked, vouching)
  const { hostname, port } = new URL(server.endpoint)
  const length: Headers = method === 'GET' || method === 'HEAD' ? {} : { 'content-length': String(body?.length ?? 0) }
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      ...{ host: hostname, port, method, path: target, agent: false },
      headers: { ...headers, ...length },
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    request.on('error', reject)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, code: codeOf(text) }),
      )
    })
    request.end(body)
  })
}

function vouched(server: Endpoint, asked: Asked, vouching: Vouching): { target: string; headers: Headers } {
  const { method, target, headers = {}, body } = asked
  const expires = Math.floor(Date.now() / 1000) + 300
  switch (vouching) {
    case 'unsigned':
      return { target, headers }
    case 'presigned':
      return { target: presigned(server, method, target), headers: {} }
    case 'version 2': {
      const date = new Date().toUTCString()
      const signature = version2(server, `${method}\n\n\n${date}\n${pathOf(target)}`)
      return { target, headers: { ...headers, date, authorization: `AWS ${server.accessKey}:${signature}` } }
    }
    case 'version 2 link': {
      // Signed for the path alone: version 2 leaves out of a signature all parameters that it does not know.
      const signature = encodeURIComponent(version2(server, `${method}\n\n\n${expires}\n${pathOf(target)}`))
      const link = `AWSAccessKeyId=${server.accessKey}&Expires=${expires}&Signature=${signature}`
      return { target: `${target}${target.includes('?') ? '&' : '?'}${link}`, headers }
    }
    default: {
      const secretKey = vouching === 'signed' ? server.secretKey : `${server.secretKey}x`
      const payloadHash = createHash('sha256')
        .update(body ?? '')
        .digest('hex')
      return { target, headers: sign({ ...server, secretKey }, { method, target, headers, payloadHash }).headers }
    }
  }
}

function presigned(server: Endpoint, method: string, target: string): string {
  const { host, pathname, searchParams } = new URL(target, server.endpoint)
  const query = presignQuery({
    brand: 'Amz',
    method,
    path: decodeURIComponent(pathname),
    host,
    query: [...searchParams],
    accessKeyId: server.accessKey,
    secretAccessKey: server.secretKey,
    region: server.region,
    expires: 300,
    now: new Date(),
  })
  return `${pathname}?${query}`
}

function version2(server: Endpoint, toSign: string): string {
  // https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html
  return createHmac('sha1', server.secretKey).update(toSign).digest('base64')
}

function pathOf(target: string): string {
  return target.split('?')[0] ?? ''
}

function codeOf(text: string): string | undefined {
  return (
    /^(?:<\?xml[^>]*>)?\s*(?:<ErrorResponse[^>]*>)?<Error>.*?<Code>([^<]+)<\/Code>/s.exec(text)?.[1] ?? jsonCode(text)
  )
}

function jsonCode(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const { Code, __type } = JSON.parse(text)
    return Code === __type && typeof Code === 'string' ? Code : undefined
  } catch {
    return undefined
  }
}

/** What is wrong with this answer as a refusal; undefined for nothing. */
export function refusalProblem(answer: Answered, status: number, ...codes: string[]): string | undefined {
  if (answer.status !== status || !codes.includes(answer.code ?? ''))
    return `the answer is ${described(answer)}, not ${status} ${codes.join(' or ')}`
  return documentProblem(answer)
}

/** An error is S3's document, or the same as JSON where the client did not ask for XML. */
export function documentProblem(answer: Answered): string | undefined {
  const { status, headers, body, code } = answer
  if (status < 400) return undefined
  // HEAD has no body.
  if (body === '' && headers['content-length'] !== '0') return undefined
  const type = headers['content-type'] ?? ''
  if (code === undefined || !/^application\/(xml|json)/.test(type))
    return `the error is no S3 error document: ${described(answer)} as ${type}: ${body.slice(0, 200)}`
  return headers['x-amz-request-id'] === undefined ? 'the error has no x-amz-request-id' : undefined
}

export function described({ status, code }: Answered): string {
  return code === undefined ? String(status) : `${status} ${code}`
}
