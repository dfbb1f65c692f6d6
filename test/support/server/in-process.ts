import { join } from 'node:path'
import { S3 } from '@aws-sdk/client-s3'
import { serve } from '../../../cli/process/listen.js'
import { ownWire } from '../../../cli/serve/wire/own-wire.js'
import { portTo } from '../../../common/port-messages.js'
import { openReads } from '../../../services/gateway/reads.js'
import { startServices } from '../../../services/index.js'
import { silentLog } from '../../../services/log.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { ProxyOptions, Proxy as S3Proxy } from '../../../src/server/proxy-options.js'
import { temporaryFolder } from '../content/folders.js'
import type { GatewayAddress } from '../gateway/gateway-address.js'
import { keptLog, type LogLine } from './kept-log.js'
import { type Mode, quirksOf } from './modes.js'
import { type StandardOptions, standardPlugins } from './standard-plugins.js'

/** The parts of tap's `t` that a server needs. */
interface Test {
  teardown(run: () => unknown): void
}

/** `plugins` run beside the standard ones. */
interface InProcessOptions extends Partial<ProxyOptions> {
  readonly standard?: StandardOptions | undefined
}

export interface InProcess {
  /** Data folder of the proxy, unless `options` name another one. */
  readonly data: string
  readonly endpoint: string
  /** The proxy that runs now. */
  readonly proxy: S3Proxy
  /** A client with the first identity. It does not retry. */
  readonly s3: S3
  /** The embedded gateway, for calls past the proxy; `account` as `createProxy` takes it. */
  readonly gateway: GatewayAddress & { readonly account: { accessKey: string; secretKey: string } }
  /** Lines of the log from level debug, without the access log; none if `options` name a log. */
  readonly lines: LogLine[]
  /** Stops the proxy alone and starts another one on the same data. The endpoint stays. */
  restart(options?: InProcessOptions): Promise<void>
}

/** The identity of a server that is started without any. */
const IDENTITY = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

/** Starts the embedded gateway and a proxy to it in this process. Both stop when the test ends. */
export async function startInProcess(
  t: Test,
  mode: Mode,
  { standard, ...options }: InProcessOptions = {},
): Promise<InProcess> {
  const root = temporaryFolder(t)
  const data = join(root, 'proxy')
  const services = await startServices({
    data: join(root, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
  })
  t.teardown(() => services.stop())
  const account = await services.gateway.credentials()
  const gateway = { url: services.gateway.url, ...account, account }
  const { log, lines } = keptLog()
  const reads = mode === 'full' ? openReads(join(root, 'services'), { log: silentLog }) : undefined
  t.teardown(() => reads?.close())
  const open = ({ standard: changed = standard, ...more }: InProcessOptions) =>
    createProxy({
      gateway: {
        url: gateway.url,
        ...(mode === 'full' && { wire: ownWire({ port: portTo(services.gateway), reads }) }),
        account,
      },
      identities: [IDENTITY],
      data,
      ...(!options.log && { log, accessLog: false }),
      ...options,
      ...more,
      plugins: [...standardPlugins(changed), ...(more.plugins ?? options.plugins ?? [])],
    })
  let proxy = await open({})
  t.teardown(() => proxy.close())
  const serving = await serve({ handler: (req, res) => proxy(req, res), host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  const s3 = new S3({
    endpoint: serving.url,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: Array.isArray(options.identities) ? options.identities[0] : IDENTITY,
  })
  t.teardown(() => s3.destroy())
  return {
    data,
    endpoint: serving.url,
    get proxy() {
      return proxy
    },
    s3,
    gateway,
    lines,
    async restart(more = {}) {
      await proxy.close()
      proxy = await open(more)
    },
  }
}
