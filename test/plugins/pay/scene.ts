import type { Test } from 'tap'
import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import task from '../../../plugins/task/index.js'
import { startServices } from '../../../services/index.js'
import { paymentOrderText } from '../../../services/payment/billing.js'
import { openWalletRegistry } from '../../../services/payment/store.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { type Keys, NETWORK } from '../../services/payment/payment-client.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { standardPlugins } from '../../support/server/standard-plugins.js'
import { farFromMidnight } from '../../support/waiting.js'
import { type Scripted, startRecordedPlatform } from '../task/recorded-platform.js'
import { startTaskProxy, type TaskProxy } from '../task/scene.js'

/** Millionths of a stable coin. */
const COINS = 1_000_000n

export interface PayScene {
  readonly gateway: ProxyOptions['gateway']
  /** Of the storage payment API. */
  readonly url: string
  /** Gives a wallet coins. */
  fund(keys: Keys): Promise<void>
  /** Pays for an upload, as a wallet does at the service itself. */
  payFor(keys: Keys, wCid: string): Promise<void>
  /** Lets epochs of the storage network pass. */
  advance(epochs: number): Promise<void>
}

/**
 * The embedded services, with the storage payment API, in this process until the test ends.
 * @param epochSeconds by default so long that no epoch ends in the middle of a test
 */
export async function startPayment(t: Test, variant: 'a' | 'b', epochSeconds = 86_400): Promise<PayScene> {
  const data = temporaryFolder(t)
  const services = await startServices({
    data,
    gateway: { host: '127.0.0.1', port: 0 },
    platform: { host: '127.0.0.1', port: 0 },
    payment: { host: '127.0.0.1', port: 0, mode: variant === 'a' ? 'signedIn' : 'open' },
    network: { control: true, epochSeconds },
  })
  t.teardown(() => services.stop())
  await services.platform?.makeFirstUser()
  const url = services.payment?.url ?? ''
  const account = await services.gateway.credentials()
  const logIn = {
    id: 1,
    jsonrpc: '2.0',
    method: 'web.Login',
    params: { username: account.accessKey, password: account.secretKey },
  }
  const post = async (path: string, body: object, token?: string) => {
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'Mozilla',
      ...(token && { authorization: `Bearer ${token}` }),
    }
    const target = `${services.gateway.url}/gateway/${path}`
    const answer = await fetch(target, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.status !== 200) throw new Error(await answer.text())
    return answer.json() as Promise<{ result?: { token: string } }>
  }
  return {
    gateway: { url: services.gateway.url, account },
    async advance(epochs) {
      const { result } = await post('webrpc', logIn)
      await post('network/control', { AdvanceEpochs: String(epochs) }, result?.token)
    },
    url,
    async fund({ address }) {
      const registry = await openWalletRegistry(data)
      try {
        await registry.fund(address, COINS)
      } finally {
        await registry.close()
      }
    },
    async payFor(keys, wCid) {
      const signature = keys.sign(paymentOrderText(wCid, COINS / 2n, NETWORK))
      const answer = await fetch(`${url}/api/v1/billing/deal/lockpayment`, {
        method: 'POST',
        body: JSON.stringify({ w_cid: wCid, pay_amount: String(COINS / 2n), signature }),
      })
      if (answer.status !== 200) throw new Error(await answer.text())
    },
  }
}

type Options = Parameters<typeof pay>[0]

/** A proxy with the plugins `pay`, `deal` and `task`. */
export function startPayProxy(
  t: Test,
  { gateway, url }: Pick<PayScene, 'gateway' | 'url'>,
  options: { readonly data?: string; readonly pay?: Options; readonly proxy?: Partial<ProxyOptions> } = {},
): Promise<TaskProxy> {
  return startTaskProxy(t, gateway, {
    ...(options.data !== undefined && { data: options.data }),
    proxy: {
      paymentUrl: url,
      plugins: [...standardPlugins(), pay(options.pay ?? {}), deal({ maxTimesAsk: 'none' }), task({})],
      ...options.proxy,
    },
  })
}

/** Signs a wallet in through the proxy and links it to the key pair. */
export async function link(proxy: TaskProxy, { address, sign }: Keys, keys?: Parameters<TaskProxy['ask']>[3]) {
  const { Nonce } = await proxy.ask('POST', '/-/pay/v1/wallet/nonce', { PublicKeyAddress: address }, keys)
  const session = { Nonce, Signature: sign(Nonce), PublicKeyAddress: address, Network: NETWORK }
  await proxy.ask('POST', '/-/pay/v1/wallet/session', { ...session, Store: true }, keys)
}

export const WALLET = `0x${'ab'.repeat(20)}`

export const UPLOAD = '/api/v1/storage/ipfs/upload'
const LIST = 'GET /api/v1/storage/tasks/deals'

/** A proxy before a payment service whose every answer the test decides. */
export async function startScripted(t: Test, pay: object = {}, data = temporaryFolder(t)) {
  await farFromMidnight()
  const service = await startRecordedPlatform(t)
  const { gateway } = await startInProcess(t, 'full')
  let time = Date.now()
  const options = { data, pay: { wallet: WALLET, ...pay }, proxy: { now: () => time } }
  const proxy = await startPayProxy(t, { gateway, url: service.url }, options)
  const on = (route: string, ...answers: Scripted[]) => service.answers.set(route, answers)
  const succeed = (data: object): [number, object] => [200, { status: 'success', data }]
  const answered = (uploads: readonly object[]) =>
    succeed({ source_file_upload: uploads, total_record_count: uploads.length })
  on('GET /api/v1/common/system/params', succeed({ PAYMENT_CONTRACT_ADDRESS: '0x1', PAY_MULTIPLY_FACTOR: 1.5 }))
  on('GET /stats/storage', succeed({ average_price_per_GB_per_year: '0.001 FIL' }))
  const posts = () => service.requests.filter(({ method, target }) => method === 'POST' && target === UPLOAD)
  return {
    ...{ service, proxy, on, posts, succeed },
    /** The list holds them from now on. */
    listed: (...uploads: readonly object[]) => on(LIST, answered(uploads)),
    /** The list holds each once a file with the end of its name was posted. */
    listedOncePosted: (...uploads: readonly ({ readonly file_name: string } & Readonly<Record<string, unknown>>)[]) =>
      on(LIST, () => {
        const names = posts().map(({ body }) => /filename="([^"]+)"/.exec(body)?.[1] ?? '')
        return answered(uploads.filter(({ file_name }) => names.some((name) => file_name.endsWith(name))))
      }),
    later(seconds: number) {
      time += seconds * 1000
    },
  }
}
