import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { GatewayOptions } from '../../../services/index.js'
import { startRealGateway } from '../../clients/real-gateway/real-gateway.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { type Answer, type Endpoint, send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

/** MinIO of June 2021, or the S3 endpoint of another dealgate. */
type StoreKind = 'minio' | 'dealgate'

const BUCKET = 'bodies'

/** An S3 store for the bodies of a gateway, with a proxy before it that may fail. */
export class S3Store {
  /** Where the gateway reaches it. */
  readonly between: Between
  readonly bodies: NonNullable<GatewayOptions['bodies']>
  readonly #endpoint: Endpoint

  private constructor(endpoint: Endpoint, between: Between, credentialsFile: string) {
    this.#endpoint = endpoint
    this.between = between
    this.bodies = { url: `s3://${BUCKET}/of/us?endpoint=${between.url}&region=${endpoint.region}`, credentialsFile }
  }

  /** Undefined, with the test skipped, when MinIO was not built. */
  static async start(t: Test, kind: StoreKind): Promise<S3Store | undefined> {
    const endpoint = kind === 'minio' ? (await startRealGateway(t, 1))?.s3 : await startDealgate(t)
    if (endpoint === undefined) return undefined
    const { accessKey, secretKey } = endpoint
    const between = await Between.start(t, { url: endpoint.endpoint, accessKey, secretKey })
    const file = join(temporaryFolder(t), 'credentials')
    writeFileSync(file, `[default]\naws_access_key_id = ${accessKey}\naws_secret_access_key=${secretKey}\n`)
    const store = new S3Store(endpoint, between, file)
    // MinIO listens before it has a disk.
    await until('there is a bucket', async () => (await store.send('PUT', `/${BUCKET}`)).status === 200)
    return store
  }

  /** Past the proxy. */
  send(method: string, target: string, body?: Buffer): Promise<Answer> {
    // A signature covers the host to which a request goes.
    return send(this.#endpoint, { method, target, ...(body && { body }) })
  }

  /** Keys of all bodies, by the store's own listing. */
  async keys(): Promise<string[]> {
    const { body } = await this.send('GET', `/${BUCKET}?list-type=2`)
    const keys = [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key as string)
    return keys.filter((key) => !key.endsWith('.json'))
  }
}
