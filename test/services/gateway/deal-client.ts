import type { Test } from 'tap'
import type { GatewayOptions } from '../../../services/index.js'
import { type Answer, type Client, encodeKey, startGateway } from './client.js'

/** Terms that the provider t01000 of the embedded network takes. */
export const terms = {
  MinerId: 't01000',
  Price: '0.0001',
  Duration: '518400',
  VerifiedDeal: 'false',
  FastRetrieval: 'true',
}

/** Length of an epoch: so long that none ends in the middle of a test. Epochs go by only when a test lets them. */
export const EPOCH_SECONDS = 86_400

/** Epochs after which every deal with that provider is active. */
export const UNTIL_ACTIVE = '400'

export interface Envelope {
  readonly http: number
  readonly retryAfter: string | undefined
  readonly status: string
  readonly message: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at data of any shape
  readonly data: any
}

/** A client of the endpoints about deals. */
export class DealClient {
  readonly gateway: Client

  constructor(gateway: Client) {
    this.gateway = gateway
  }

  async ask(path: string, body?: object | string, headers: Record<string, string> = {}): Promise<Envelope> {
    const answer = await this.send(path, body, headers)
    return { http: answer.status, retryAfter: answer.headers['retry-after'], ...JSON.parse(answer.text) }
  }

  send(path: string, body?: object | string, headers: Record<string, string> = {}): Promise<Answer> {
    const text = typeof body === 'object' ? JSON.stringify(body) : body
    return this.gateway.send(`/gateway/${path}`, {
      method: text === undefined ? 'GET' : 'POST',
      headers: {
        ...this.gateway.headers(),
        ...headers,
        ...(text !== undefined && { 'content-length': Buffer.byteLength(text) }),
      },
      ...(text !== undefined && { body: text }),
    })
  }

  deal(bucket: string, key: string, changes: object = {}, token?: string): Promise<Envelope> {
    return this.ask(`deal/${bucket}/${encodeKey(key)}`, { ...terms, ...changes }, withToken(token))
  }

  deals(bucket: string, changes: object = {}, token?: string): Promise<Envelope> {
    return this.ask(`deals/${bucket}`, { ...terms, ...changes }, withToken(token))
  }

  retrieve(bucket: string, key: string): Promise<Envelope> {
    return this.ask(`retrieve/${bucket}/${encodeKey(key)}`)
  }

  history(bucket: string): Promise<Envelope> {
    return this.ask(`bucket/retrieve/${bucket}`)
  }

  evict(bucket: string, key: string, generation: string, more: object = {}): Promise<Envelope> {
    return this.ask(`evict/${bucket}/${encodeKey(key)}`, { Generation: generation, ...more })
  }

  verify(bucket: string, key: string, Generation: string, DealCid: string): Promise<Envelope> {
    return this.ask(`verify/${bucket}/${encodeKey(key)}`, { Generation, DealCid })
  }

  advance(epochs: string): Promise<Envelope> {
    return this.ask('network/control', { AdvanceEpochs: epochs })
  }

  fault(Fault: string, on = true, MinerId = terms.MinerId): Promise<Envelope> {
    return this.ask('network/control', { MinerId, Fault, On: String(on) })
  }

  /** Stores the object and returns its generation. */
  async put(bucket: string, key: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<string> {
    const { status, headers: told, text } = await this.gateway.put(bucket, key, body, headers)
    if (status !== 200) throw new Error(text)
    return String(told['x-cloud-generation'])
  }

  /** Stores the object and leaves its only copy in a deal. Returns its generation. */
  async putCold(bucket: string, key: string, body: Buffer | string): Promise<string> {
    const generation = await this.put(bucket, key, body)
    await this.deal(bucket, key)
    await this.advance(UNTIL_ACTIVE)
    const evicted = await this.evict(bucket, key, generation)
    if (evicted.status !== 'success') throw new Error(evicted.message)
    return generation
  }

  async used(): Promise<number> {
    return (await this.gateway.call('StorageInfo')).storageInfo.Used
  }
}

function withToken(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { 'x-cloud-client-token': token }
}

/** A gateway with an empty bucket `bucket`, over a network that does as it is told. */
export async function startDeals(t: Test, options: Partial<GatewayOptions> = {}): Promise<DealClient> {
  const client = new DealClient(await startGateway(t, options, { control: true, epochSeconds: EPOCH_SECONDS }))
  await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
  return client
}
