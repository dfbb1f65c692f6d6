import type { Test } from 'tap'
import deal from '../../../plugins/deal/index.js'
import type { Identity } from '../../../src/auth/caller.js'
import { createProxy, type ProxyOptions, type Proxy as S3Proxy } from '../../../src/create-proxy.js'
import { createLogger } from '../../../src/log.js'
import type { PluginHooks } from '../../../src/registry/hooks.js'
import type { PluginHost } from '../../../src/registry/plugin.js'
import { serve } from '../../../src/serve.js'
import type { State } from '../../../src/state/state.js'
import type { GatewayAddress } from '../../harness/dealgate.js'

export const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }

export interface DealProxy {
  readonly endpoint: string
  readonly proxy: S3Proxy
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
    readonly proxy?: Partial<ProxyOptions>
  } = {},
): Promise<DealProxy> {
  let host: PluginHost | undefined
  const { data = t.testdir(), state, now, identities = [owner] } = options
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
      deal({ statusIntervalSeconds: 86_400, ...options.deal }),
      {
        name: 'probe',
        operations: [],
        hooks: options.hooks,
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
    closed ??= serving.close(0).then(() => proxy.close())
    return closed
  }
  t.teardown(close)
  if (!host) throw new Error('the probe was not started')
  return { endpoint: serving.url, proxy, host, close }
}
