import type { Expected, Shot } from '../load/job.js'
import type { Gateway } from './dealgate.js'
import { bodyOf, headOf } from './s3-requests.js'
import { LISTED, type Operation } from './subject.js'

const USER_AGENT = 'Mozilla/5.0 (dealgate bench)'

/** The log-in of an account of the gateway, as its own clients have it. */
interface GatewayLogin {
  readonly authorization: string
  readonly urlToken: string
}

async function logIn(url: string, username: string, password: string): Promise<GatewayLogin> {
  const { token: bearer } = await rpc(url, 'web.Login', { username, password })
  const { token: urlToken } = await rpc(url, 'web.CreateURLToken', {}, String(bearer))
  return { authorization: `Bearer ${bearer}`, urlToken: String(urlToken) }
}

/** The requests that do at the gateway what the S3 operations do. The token in URLs lasts a minute. */
export function gatewayRequests(port: number, { url, accessKey, secretKey }: Omit<Gateway, 'program' | 'port'>) {
  const common = { host: `127.0.0.1:${port}`, 'user-agent': USER_AGENT }
  let login: GatewayLogin = { authorization: '', urlToken: '' }
  const call = (path: string, method: string, params: object): Shot => {
    const { authorization } = login
    const text = JSON.stringify({ id: 1, jsonrpc: '2.0', method, params })
    const headers = { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(text)}` }
    return { path, text, head: headOf('POST', '/gateway/webrpc', { ...common, authorization, ...headers }) }
  }
  const put = (path: string, size: number) =>
    headOf('PUT', `/gateway/upload/${path}`, {
      ...common,
      authorization: login.authorization,
      'content-length': `${size}`,
    })
  const read = (method: string, path: string) =>
    headOf(method, `/gateway/download/${path}?token=${login.urlToken}`, common)
  return {
    async prepare(): Promise<void> {
      login = await logIn(url, accessKey, secretKey)
    },
    shot(operation: Operation, path: string, size: number): Shot {
      if (operation === 'LIST') return call(path, 'web.ListObjects', { ...PAGE, bucketName: path })
      if (operation === 'DELETE') return call(path, 'web.RemoveObject', removal(path))
      return { path, head: operation === 'PUT' ? put(path, size) : read(operation, path) }
    },
    large: (method: 'GET' | 'PUT', path: string, size: number) =>
      method === 'PUT' ? put(path, size) : read(method, path),
    expected(operation: Operation): Expected {
      if (operation === 'LIST') return { status: 200, contains: { text: '"name":', times: LISTED } }
      if (operation === 'DELETE') return { status: 200, contains: { text: '"result"', times: 1 } }
      return { status: 200, ...bodyOf(operation) }
    },
  }
}

function removal(path: string): object {
  const slash = path.indexOf('/')
  return { bucketName: path.slice(0, slash), objects: [path.slice(slash + 1)] }
}

const PAGE = { prefix: '', marker: '', maxKeys: LISTED, delimiter: '' }

async function rpc(url: string, method: string, params: object, bearer?: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/gateway/webrpc`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      ...(bearer && { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify({ id: '1', jsonrpc: '2.0', method, params }),
  })
  const reply = (await response.json()) as { result?: Record<string, unknown> }
  if (!reply.result) throw new Error(`${method}: ${JSON.stringify(reply)}`)
  return reply.result
}
