import type { GatewayAddress } from './gateway-address.js'

const USER_AGENT = 'Mozilla/5.0 (test)'

interface GatewayWords {
  /** First element of the gateway's paths. */
  readonly path: string
  /** Name of the JSON-RPC service. */
  readonly service: string
}

/** Uses the gateway without the proxy. To be logged in first. */
export class GatewayUser {
  readonly #gateway: GatewayAddress
  readonly #words: GatewayWords
  #token = ''

  constructor(gateway: GatewayAddress, words: Partial<GatewayWords> = {}) {
    this.#gateway = gateway
    this.#words = { path: 'gateway', service: 'web', ...words }
  }

  /** @param name as in `web.ListBuckets`, whatever the service is called */
  async call(name: string, params: object): Promise<Record<string, unknown>> {
    const { path, service } = this.#words
    const method = name.replace(/^web\./, `${service}.`)
    const response = await fetch(`${this.#gateway.url}/${path}/webrpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.#headers() },
      body: JSON.stringify({ id: 1, jsonrpc: '2.0', method, params }),
    })
    const { result, error } = (await response.json()) as {
      result?: Record<string, unknown>
      error?: { message: string }
    }
    if (!result) throw new Error(`${method}: ${error?.message}`)
    return result
  }

  async login(): Promise<void> {
    const { accessKey: username, secretKey: password } = this.#gateway
    this.#token = String((await this.call('web.Login', { username, password })).token)
  }

  async put(bucket: string, key: string, body: Buffer, headers: Record<string, string> = {}): Promise<void> {
    const response = await fetch(`${this.#gateway.url}/${this.#words.path}/upload/${bucket}/${key}`, {
      method: 'PUT',
      headers: { ...this.#headers(), ...headers },
      body,
    })
    if (response.status !== 200) throw new Error(`upload: ${response.status} ${await response.text()}`)
  }

  /** The bytes as the gateway has them, and the headers with them. */
  async get(bucket: string, key: string): Promise<{ body: Buffer; headers: Headers }> {
    const { token } = await this.call('web.CreateURLToken', {})
    const url = `${this.#gateway.url}/${this.#words.path}/download/${bucket}/${key}?token=${token}`
    const response = await fetch(url, { headers: this.#headers() })
    const body = Buffer.from(await response.arrayBuffer())
    if (response.status !== 200) throw new Error(`download: ${response.status} ${body}`)
    return { body, headers: response.headers }
  }

  /** Deletes the bucket with what is in it, and makes it again. */
  async remake(bucketName: string): Promise<void> {
    const { objects } = await this.call('web.ListObjects', { bucketName, prefix: '' })
    for (const { name } of (objects ?? []) as { name: string }[]) await this.remove(bucketName, name)
    await this.call('web.DeleteBucket', { bucketName })
    await this.call('web.MakeBucket', { bucketName })
  }

  remove(bucket: string, key: string): Promise<unknown> {
    return this.call('web.RemoveObject', { bucketName: bucket, objects: [key] })
  }

  #headers(): Record<string, string> {
    return { 'user-agent': USER_AGENT, ...(this.#token === '' ? {} : { authorization: `Bearer ${this.#token}` }) }
  }
}
