import { join } from 'node:path'
import { serve } from '../../../cli/process/listen.js'
import { startServices } from '../../../services/index.js'
import type { Locks } from '../../../src/api/locks.js'
import type { State } from '../../../src/api/state.js'
import { createGatewayPool } from '../../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../../src/gateway/brand.js'
import { stagingLocation } from '../../../src/server/backends.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { ProxyOptions, Proxy as S3Proxy } from '../../../src/server/proxy-options.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { GatewayAddress } from '../../support/gateway/gateway-address.js'
import { keptLog, type LogLine } from '../../support/server/kept-log.js'
import { quirksOf } from '../../support/server/modes.js'
import { type StandardOptions, standardPlugins } from '../../support/server/standard-plugins.js'
import { signedRequest, type TextAnswer, type Wanted } from '../../support/sign/signed-request.js'

interface Test {
  teardown(run: () => unknown): void
}

export interface OneOfSeveral {
  readonly endpoint: string
  readonly proxy: S3Proxy
  readonly state: State
  readonly data: string
  readonly lines: LogLine[]
  send(method: string, path: string, more?: Partial<Wanted>): Promise<TextAnswer>
  /** Closes it before the test ends. */
  close(): Promise<void>
}

const KEYS = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

export interface Several {
  readonly gateway: GatewayAddress
  /** Another proxy, with a data folder of that name. */
  start(
    name: string,
    options?: Partial<ProxyOptions> & { change?: (state: State) => State; standard?: StandardOptions },
  ): Promise<OneOfSeveral>
}

/**
 * An embedded gateway and any number of proxies over it, all in this process and on one state store, until the test
 * ends.
 */
export async function startSeveral(
  t: Test,
  stateUrl: string,
  mode: 'full' | 'legacy' = 'full',
  between: (gateway: GatewayAddress) => Promise<GatewayAddress> = async (gateway) => gateway,
): Promise<Several> {
  const folder = temporaryFolder(t)
  const services = await startServices({
    data: join(folder, 'services'),
    gateway: { host: '127.0.0.1', port: 0, quirks: quirksOf(mode) },
  })
  t.teardown(() => services.stop())
  const gateway = await between({ url: services.gateway.url, ...(await services.gateway.credentials()) })
  const account = { accessKey: gateway.accessKey, secretKey: gateway.secretKey }

  async function start(name: string, options: Parameters<Several['start']>[1] = {}): Promise<OneOfSeveral> {
    const {
      change = (same: State) => same,
      stateUrl: url = stateUrl,
      stateTimeoutMs: timeoutMs,
      staging,
      standard,
      ...more
    } = options
    const { log, lines } = keptLog()
    const data = join(folder, name)
    const pool = createGatewayPool({ url: gateway.url, brand: neutralBrand, log })
    const place = stagingLocation({ staging, gateway: { url: gateway.url, account } }, pool)
    const state = await openState({
      data,
      url,
      log,
      timeoutMs,
      leaseMs: more.lockLeaseMs,
      staging: place,
      staged: stagedOf(more),
      now: more.now,
    })
    const proxy = await createProxy({
      gateway: { url: gateway.url, account },
      identities: [KEYS],
      state: change(state),
      log,
      accessLog: false,
      lifecycleIntervalMs: 0,
      ...more,
      plugins: [...standardPlugins(standard), ...(more.plugins ?? [])],
    })
    const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
    let closed: Promise<void> | undefined
    const close = () => {
      closed ??= (async () => {
        await serving.close(0)
        await proxy.close()
        await state.close()
        await pool.close()
      })()
      return closed
    }
    t.teardown(close)
    return {
      endpoint: serving.url,
      proxy,
      state,
      data,
      lines,
      send: (method, path, more) => signedRequest(serving.url, KEYS, { method, path, ...more }),
      close,
    }
  }
  return { gateway, start }
}

function stagedOf({ limits }: Partial<ProxyOptions>) {
  const { maxStagedBytes: total, maxStagedBytesPerClient: perClient = total } = limits ?? {}
  return total === undefined || perClient === undefined ? undefined : { total, perClient }
}

/**
 * Locks that keep no other proxy out, as those of a proxy whose leases ran out or whose store came back without them.
 */
export function lostLocks(state: State): State {
  const held = () => ({ fence: Date.now() * 1000, ensure() {}, async raise() {}, leave() {} })
  const open: Locks = {
    withKey: (_bucket, _key, run) => run(held()),
    withSubtree: (_bucket, _prefix, run) => run(held()),
    withName: (_name, run) => run(held()),
  }
  return { ...state, shared: state.shared, locks: open }
}

/** Begins an upload to this key of the bucket `shared`. Resolves to its id. */
export async function begin(proxy: Pick<OneOfSeveral, 'send'>, key: string): Promise<string> {
  const begun = await proxy.send('POST', `/shared/${key}`, { query: { uploads: '' } })
  return /<UploadId>(.*?)<\/UploadId>/.exec(begun.body)?.[1] ?? ''
}

/** The document that completes an upload of these parts. */
export function listOf(etags: readonly string[]): string {
  const parts = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`)
  return `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
}
