import { S3Client } from '@aws-sdk/client-s3'
import type { Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import { createLogger } from '../../../common/log.js'
import deal from '../../../plugins/deal/index.js'
import { startServices } from '../../../services/index.js'
import type { Gateway } from '../../../src/api/gateway.js'
import type { PluginHooks } from '../../../src/api/hooks.js'
import type { Identity } from '../../../src/api/identity.js'
import type { PluginHost, PluginServices } from '../../../src/api/plugin.js'
import type { State } from '../../../src/api/state.js'
import { createGatewayPool } from '../../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../../src/gateway/brand.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { ProxyOptions, Proxy as S3Proxy } from '../../../src/server/proxy-options.js'
import { openState } from '../../../src/state/open-state.js'
import type { Endpoint } from '../../suites/sign.js'
import { temporaryFolder } from '../content/folders.js'
import type { GatewayAddress } from '../gateway/gateway-address.js'
import { quirksOf } from '../server/modes.js'
import { standardPlugins } from '../server/standard-plugins.js'

export const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }

export interface DealProxy {
  readonly endpoint: string
  readonly proxy: S3Proxy
  /** As the owner reaches it. */
  readonly server: Endpoint
  /** What plugins are started with. */
  readonly host: PluginHost
  close(): Promise<void>
}

type Options = Parameters<typeof deal>[0]

/** A proxy with the plugin `deal`, in this process, until the test ends or it is closed. */
export async function startDealProxy(
  t: Test,
  gateway: GatewayAddress,
  options: {
    readonly data?: string
    readonly state?: State
    readonly deal?: Options
    readonly now?: () => number
    readonly identities?: readonly Identity[]
    readonly hooks?: PluginHooks
    /** What other plugins offer `deal`. */
    readonly offers?: PluginServices
    readonly proxy?: Partial<ProxyOptions>
  } = {},
): Promise<DealProxy> {
  let host: PluginHost | undefined
  const { now, identities = [owner] } = options
  const data = options.data ?? temporaryFolder(t)
  // Many tests start servers with stores of their own on one gateway, which takes the second one for a store that was
  // lost.
  const own =
    options.state || options.data ? undefined : await openState({ data, log: createLogger({ level: 'silent' }) })
  const state = options.state ?? own
  const proxy = await createProxy({
    gateway: {
      url: gateway.url,
      account: { accessKey: gateway.accessKey, secretKey: gateway.secretKey },
      timeoutMs: 10_000,
    },
    data,
    state,
    identities,
    now,
    log: createLogger({ level: 'silent' }),
    plugins: [
      ...standardPlugins(),
      // Most tests pay much more than is asked; those of the limits say so.
      deal({ statusIntervalSeconds: 86_400, maxSpendPerDay: 'none', maxTimesAsk: 'none', ...options.deal }),
      {
        name: 'probe',
        operations: [],
        hooks: options.hooks,
        ...(options.offers && { offers: options.offers }),
        async start(started) {
          host = started
        },
      },
    ],
    ...options.proxy,
  })
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= serving.close(0).then(async () => {
      await proxy.close()
      await own?.close()
    })
    return closed
  }
  t.teardown(close)
  if (!host) throw new Error('the probe was not started')
  const keys = { accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey }
  const server = { endpoint: serving.url, region: 'us-east-1', ...keys }
  return { endpoint: serving.url, proxy, server, host, close }
}

export interface Embedded extends GatewayAddress {
  /** The gateway past all proxies. */
  readonly calls: Gateway
  /** See `POST network/control` of the embedded gateway. */
  control(body: Readonly<Record<string, string>>): Promise<void>
  /** Lets so many epochs go by in the storage network. */
  advance(epochs: number): Promise<void>
  fault(minerId: string, fault: string, on?: boolean): Promise<void>
}

/**
 * The embedded gateway and storage network in this process, until the test ends.
 * @param epochSeconds by default so long that no epoch ends in the middle of a test
 */
export async function startEmbedded(
  t: Test,
  mode: 'full' | 'legacy',
  { epochSeconds = 86_400, platform = false } = {},
): Promise<Embedded> {
  const services = await startServices({
    data: temporaryFolder(t),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
    ...(platform && { platform: { host: '127.0.0.1', port: 0 } }),
    network: { control: true, epochSeconds },
  })
  t.teardown(() => services.stop())
  await services.platform?.makeFirstUser()
  const address = { url: services.gateway.url, ...(await services.gateway.credentials()) }
  const pool = createGatewayPool({ url: address.url, brand: neutralBrand, log: createLogger({ level: 'silent' }) })
  t.teardown(() => pool.close())
  const calls = pool.for(address)
  const control: Embedded['control'] = (body) => tell(calls, body)
  return {
    ...address,
    calls,
    control,
    advance: (epochs) => control({ AdvanceEpochs: String(epochs) }),
    fault: (MinerId, Fault, on = true) => control({ MinerId, Fault, On: String(on) }),
  }
}

async function tell(gateway: Gateway, body: Readonly<Record<string, string>>): Promise<void> {
  const { status, text } = await gateway.call({ method: 'POST', endpoint: 'network/control', body, access: 'write' })
  if (status !== 200) throw new Error(text)
}

/** Tells the embedded network of a server what happens in it. The server runs with `--network-control`. */
export async function controlNetwork(
  url: string,
  account: Pick<GatewayAddress, 'accessKey' | 'secretKey'>,
  body: Readonly<Record<string, string>>,
): Promise<void> {
  const pool = createGatewayPool({ url, brand: neutralBrand, log: createLogger({ level: 'silent' }) })
  await tell(pool.for(account), body).finally(() => pool.close())
}

/** A client of the proxy that does not retry, until the test ends. */
export function s3Client(t: Test, endpoint: string): S3Client {
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials: owner })
  t.teardown(() => s3.destroy())
  return s3
}
