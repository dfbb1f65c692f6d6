import { join } from 'node:path'
import { createProxy, type ProxyOptions, type Proxy as S3Proxy } from '../../src/create-proxy.js'
import { createLogger } from '../../src/log.js'
import { serve } from '../../src/serve.js'
import { legacy, startServices } from '../../src/services/index.js'

/** What the embedded gateway can do: everything, or what public deployments do. */
export const modes = ['full', 'legacy'] as const
export type Mode = (typeof modes)[number]

/** What of tap's `t` is needed here. */
interface Test {
  testdir(): string
  teardown(run: () => unknown): void
}

export interface InProcess {
  readonly endpoint: string
  readonly proxy: S3Proxy
  /** The gateway's address and account. */
  readonly gateway: { readonly url: string; readonly account: { accessKey: string; secretKey: string } }
}

/** The embedded gateway and a proxy over it in this process, until the test ends. */
export async function startInProcess(
  t: Test,
  mode: Mode,
  options: Pick<ProxyOptions, 'identities'> & Partial<ProxyOptions>,
): Promise<InProcess> {
  const data = t.testdir()
  const services = await startServices({
    data: join(data, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: mode === 'legacy' ? legacy : [] },
  })
  t.teardown(() => services.stop())
  const gateway = { url: services.gateway.url, account: await services.gateway.credentials() }
  const proxy = await createProxy({
    gateway,
    data: join(data, 'proxy'),
    log: createLogger({ level: 'silent' }),
    ...options,
  })
  t.teardown(() => proxy.close())
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  return { endpoint: serving.url, proxy, gateway }
}
