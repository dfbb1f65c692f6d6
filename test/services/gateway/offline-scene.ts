import type { Test } from 'tap'
import type { GatewayLimits } from '../../../services/gateway/limits.js'
import { type QuirkName, type Services, startServices } from '../../../services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { send } from '../platform/platform-client.js'
import { connectTo } from './client.js'
import { DealClient, type Envelope, EPOCH_SECONDS } from './deal-client.js'

/** What a bucket is stored for, with the provider t01000. */
export const PRIVATE = { Task_Name: 'nightly', Is_Public: '0', Miner_Id: 't01000', Type: 'regular' }
/** What a bucket is stored for, with the provider of the best bid. */
export const PUBLIC = { Task_Name: 'holidays', Is_Public: '1', Auto_bid: '1', Type: 'regular', Max_Price: '0.0000005' }

/** Epochs in which that provider seals what it has imported. */
const UNTIL_ACTIVE = 252

interface OfflineDeal {
  readonly deal_id: number | null
  readonly deal_cid: string | null
  readonly status: string
  readonly note: string
  readonly miner_fid: string | null
  readonly file_source_url: string
  readonly car_size: number
  readonly objects: readonly string[]
}

export interface OfflineScene {
  readonly data: string
  readonly services: Services
  readonly client: DealClient
  /** Asks for offline deals of the bucket `bucket`. */
  post(changes?: object, token?: string, bucket?: string): Promise<Envelope>
  /** What the gateway says of a task. */
  show(uuid: string): Promise<{ task_status: string; deals: OfflineDeal[] }>
  /** Waits until the deals have these states. */
  has(uuid: string, ...states: readonly string[]): Promise<OfflineDeal[]>
  advance(epochs: number): Promise<void>
  /** Writes the state of a deal, by its number, as the owner of the providers. Only if the folder is new. */
  write(deal: number | null, status: string): Promise<void>
}

interface SceneOptions {
  readonly limits?: Partial<GatewayLimits>
  readonly quirks?: readonly QuirkName[]
  readonly daemon?: 'embedded' | 'external'
  /** Port of the gateway; default any free one. */
  readonly port?: number
  readonly publicUrl?: string
}

/** All services with a clock that only the test moves, and an empty bucket `bucket` if the folder is new. */
export async function startOffline(t: Test, options: SceneOptions = {}, folder?: string): Promise<OfflineScene> {
  const data = folder ?? temporaryFolder(t)
  const { limits = {}, quirks = [], daemon = 'embedded', port = 0, publicUrl } = options
  const services = await startServices({
    data,
    gateway: { host: '127.0.0.1', port, limits, quirks, ...(publicUrl !== undefined && { publicUrl }) },
    platform: { host: '127.0.0.1', port: 0, daemon },
    network: { control: true, epochSeconds: EPOCH_SECONDS },
  })
  t.teardown(() => services.stop())
  const owner = await services.platform?.makeFirstUser()
  const client = new DealClient(await connectTo(services))
  if (folder === undefined) await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
  const show: OfflineScene['show'] = async (uuid) => {
    const { status, data, message } = await client.ask(`offlinedeals/bucket?uuid=${uuid}`)
    if (status !== 'success') throw new Error(message)
    return data
  }
  return {
    data,
    services,
    client,
    post: (changes = PRIVATE, token, bucket = 'bucket') =>
      client.ask(`offlinedeals/${bucket}`, changes, token === undefined ? {} : { 'x-cloud-client-token': token }),
    show,
    has: (uuid, ...states) =>
      until(`the deals are ${states.join()}`, async () => {
        const { deals } = await show(uuid)
        return deals.map(({ status }) => status).join() === states.join() && deals
      }),
    async write(deal, status) {
      const platform = services.platform?.url ?? ''
      const { json } = await send(platform, 'POST', '/auth/login', { body: { ...owner } })
      const update = { token: json.auth_token, body: { status } }
      const answer = await send(platform, 'PUT', `/my_miner/deals/${deal}`, update)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.json))
    },
    async advance(epochs) {
      await client.advance(String(epochs))
    },
  }
}

/** Lets the provider import what it has downloaded, and seal it. */
export async function untilActive(scene: OfflineScene, uuid: string, deals = 1): Promise<void> {
  const all = (state: string): string[] => Array.from({ length: deals }, () => state)
  await scene.has(uuid, ...all('Downloaded'))
  await scene.advance(1)
  await scene.has(uuid, ...all('ReadyForImport'))
  await scene.advance(1)
  await scene.has(uuid, ...all('FileImported'))
  await scene.advance(UNTIL_ACTIVE)
  await scene.has(uuid, ...all('DealActive'))
}
