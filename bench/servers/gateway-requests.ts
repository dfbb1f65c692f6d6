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

type Address = Pick<Gateway, 'url' | 'brand'>

async function logIn(gateway: Omit<Gateway, 'program' | 'port'>): Promise<GatewayLogin> {
  const bearer = await bearerOf(gateway)
  const { token: urlToken } = await rpc(gateway, 'web.CreateURLToken', {}, bearer)
  return { authorization: `Bearer ${bearer}`, urlToken: String(urlToken) }
}

export async function bearerOf(gateway: Omit<Gateway, 'program' | 'port'>): Promise<string> {
  const { accessKey: username, secretKey: password } = gateway
  const { token } = await rpc(gateway, 'web.Login', { username, password })
  return String(token)
}

/** The requests that do at the gateway what the S3 operations do. The token in URLs lasts a minute. */
export function gatewayRequests(port: number, gateway: Omit<Gateway, 'program' | 'port'>) {
  const { brand } = gateway
  const common = { host: `127.0.0.1:${port}`, 'user-agent': USER_AGENT }
  let login: GatewayLogin = { authorization: '', urlToken: '' }
  const call = (path: string, method: string, params: object): Shot => {
    const { authorization } = login
    const text = JSON.stringify({ id: 1, jsonrpc: '2.0', method, params })
    const headers = { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(text)}` }
    return { path, text, head: headOf('POST', `/${brand}/webrpc`, { ...common, authorization, ...headers }) }
  }
  const put = (path: string, size: number) =>
    headOf('PUT', `/${brand}/upload/${path}`, {
      ...common,
      authorization: login.authorization,
      'content-length': `${size}`,
    })
  const read = (method: string, path: string) =>
    headOf(method, `/${brand}/download/${path}?token=${login.urlToken}`, common)
  return {
    async prepare(): Promise<void> {
      login = await logIn(gateway)
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

export async function rpc(
  { url, brand }: Address,
  method: string,
  params: object,
  bearer?: string,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/${brand}/webrpc`, {
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
