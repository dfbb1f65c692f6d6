import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from '../server/listen.js'
import type { GatewayAddress } from './gateway-address.js'
import { GatewayUser } from './gateway-user.js'

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params?: { readonly bucketName?: string; readonly username?: string }
}

const TOKEN = 'token-of-the-second-account'
/** What the second account may do in buckets of others: all that only looks. */
const LOOKS = new Set(['web.ListObjects', 'web.ListAllBucketPolicies', 'web.PresignedGet', 'web.GetBucketPolicy'])

/**
 * Stands before an embedded gateway, which has one account, and adds a second account: it owns the buckets that it
 * makes, may list and read all others as well, and may write none of them but below `pub/`, which everybody may write.
 * web.ListBuckets tells it of its own buckets alone. Deals it may make of every bucket.
 */
export class SecondAccount implements GatewayAddress {
  readonly accessKey: string
  readonly secretKey: string
  readonly account = { accessKey: 'second-account', secretKey: 'secret-of-the-second' }
  url = ''
  readonly #owned = new Set<string>()
  readonly #gateway: GatewayAddress
  #ownersToken = ''

  readonly #looks: boolean

  private constructor(gateway: GatewayAddress, looks: boolean) {
    this.#looks = looks
    this.#gateway = gateway
    this.accessKey = gateway.accessKey
    this.secretKey = gateway.secretKey
  }

  /** @param looks false: the second account sees nothing of the buckets of others, unless their rules let everybody */
  static async start(
    t: { teardown(run: () => unknown): void },
    gateway: GatewayAddress,
    { looks = true } = {},
  ): Promise<SecondAccount> {
    const hop = new SecondAccount(gateway, looks)
    const user = new GatewayUser(gateway)
    const { accessKey: username, secretKey: password } = gateway
    hop.#ownersToken = String((await user.call('web.Login', { username, password })).token)
    const server = createServer((incoming, outgoing) => {
      hop.#serve(incoming, outgoing).catch(() => outgoing.destroy())
    })
    hop.url = await listen(server, t)
    return hop
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const call = incoming.url === '/gateway/webrpc' ? (JSON.parse(body.toString()) as Call) : undefined
    if (call?.method === 'web.Login' && call.params?.username === this.account.accessKey)
      return answer(outgoing, call, { result: { token: TOKEN, uiVersion: '' } })
    const isSecond = incoming.headers.authorization === `Bearer ${TOKEN}` || incoming.url?.includes(`token=${TOKEN}`)
    if (isSecond && call?.method === 'web.CreateURLToken')
      return answer(outgoing, call, { result: { token: TOKEN, uiVersion: '' } })
    if (isSecond && this.#refuses(incoming, call)) {
      if (call) return answer(outgoing, call, { error: { code: 0, message: 'Access Denied.', data: null } })
      outgoing.writeHead(403, { 'content-type': 'text/plain' }).end('Access Denied.')
      return
    }
    const passed = await this.#passOn(incoming, body, isSecond === true)
    const text = await buffer(passed)
    if (isSecond && call?.method === 'web.ListBuckets') {
      const { result } = JSON.parse(text.toString()) as { result: { buckets: { name: string }[] | null } }
      const buckets = (result.buckets ?? []).filter(({ name }) => this.#owned.has(name))
      return answer(outgoing, call, { result: { ...result, buckets } })
    }
    const bucketName = call?.params?.bucketName
    if (isSecond && call?.method === 'web.MakeBucket' && bucketName && !text.includes('"error":{'))
      this.#owned.add(bucketName)
    outgoing.writeHead(passed.statusCode ?? 500, passed.headers).end(text)
  }

  /** Whether the second account may not do this. */
  #refuses({ method, url = '' }: IncomingMessage, call: Call | undefined): boolean {
    if (call) {
      const { bucketName } = call.params ?? {}
      const isForeign = bucketName !== undefined && !this.#owned.has(bucketName)
      return isForeign && call.method !== 'web.MakeBucket' && !(this.#looks && LOOKS.has(call.method))
    }
    const [, seen = ''] = /^\/gateway\/(?:upload|download)\/([^/?]+)/.exec(url) ?? []
    if (!this.#looks) return seen !== '' && !this.#owned.has(decodeURIComponent(seen))
    const [, bucket = '', key = ''] = /^\/gateway\/upload\/([^/?]+)\/?([^?]*)/.exec(url) ?? []
    return (
      method === 'PUT' && !decodeURIComponent(key).startsWith('pub/') && !this.#owned.has(decodeURIComponent(bucket))
    )
  }

  #passOn({ method, url = '', headers }: IncomingMessage, body: Buffer, isSecond: boolean): Promise<IncomingMessage> {
    const path = isSecond ? url.replace(`token=${TOKEN}`, `token=${encodeURIComponent(this.#ownersToken)}`) : url
    const authorization = isSecond && headers.authorization ? `Bearer ${this.#ownersToken}` : headers.authorization
    const sent = { ...headers, ...(authorization !== undefined && { authorization }) }
    return new Promise((resolve, reject) => {
      const onward = request(this.#gateway.url, { path, method, headers: sent, agent: false }, resolve)
      onward.on('error', reject)
      onward.end(body)
    })
  }
}

function answer(outgoing: ServerResponse, { id }: Call, outcome: object): void {
  outgoing.setHeader('content-type', 'application/json; charset=utf-8')
  outgoing.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
}
