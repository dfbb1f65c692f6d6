import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import type { Test } from 'tap'
import { type ServicesLog, silentLog } from '../../../services/log.js'
import { catalogue } from '../../../services/network/embedded/catalogue.js'
import type { EmbeddedNetwork } from '../../../services/network/embedded/embedded-network.js'
import { addressOfKey, signText } from '../../../services/payment/addresses.js'
import {
  type PaymentDeps,
  type PaymentOptions,
  type RunningPayment,
  startPayment,
} from '../../../services/payment/payment.js'
import { type RunningPlatform, startPlatform } from '../../../services/platform/platform.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'
import { open } from '../network/embedded-network.js'
import { type Answer, type Call, send } from '../platform/platform-client.js'

export const NETWORK = 'dealgate.testnet'

/** A wallet of a client: its key stays with it. */
export interface Keys {
  readonly address: string
  sign(text: string): string
}

export function newKeys(secretKey = secp256k1.utils.randomSecretKey()): Keys {
  return {
    address: addressOfKey(secp256k1.getPublicKey(secretKey, false)),
    sign: (text) => signText(text, secretKey),
  }
}

export interface PaymentScene {
  readonly payment: RunningPayment
  readonly network: EmbeddedNetwork
  /** Of the service. */
  readonly folder: string
  /** URL of the database of the service; undefined for SQLite in the folder. */
  readonly database: string | undefined
  /** Seconds that the clock of the service is ahead. */
  readonly clock: { ahead: number }
  /** Sends a request; the answer must be JSON. */
  call(method: string, path: string, call?: Call): Promise<Answer>
  /** The JWT of a wallet. */
  signIn(keys: Keys): Promise<string>
  /** Stops the service and starts it again on the same folder. */
  restart(options?: Partial<PaymentOptions>, parts?: Pick<PaymentDeps, 'kubo'>): Promise<PaymentScene>
}

/**
 * Starts a service over an embedded network with the usual providers and a clock that only the test moves.
 * @param folder of what another scene left
 */
export async function startPaymentScene(
  t: Test,
  options: Partial<PaymentOptions> = {},
  {
    withPlatform = false,
    log = silentLog,
    folder = temporaryFolder(t),
    kubo,
  }: { withPlatform?: boolean; log?: ServicesLog; folder?: string; kubo?: string } = {},
): Promise<PaymentScene> {
  const network = await open(t, join(folder, 'network'), { providers: catalogue })
  const platform = withPlatform ? await platformOver(t, join(folder, 'platform'), network) : undefined
  const database = await emptyDatabase()
  const all = { ...options, ...(database !== undefined && { database }) }
  return sceneOf(t, join(folder, 'payment'), { network, platform, log, kubo }, all, { ahead: 0 })
}

async function sceneOf(
  t: Test,
  folder: string,
  parts: {
    readonly network: EmbeddedNetwork
    readonly platform: PlatformBeside | undefined
    readonly log: ServicesLog
    readonly kubo?: string | undefined
  },
  options: Partial<PaymentOptions>,
  clock: { ahead: number },
): Promise<PaymentScene> {
  const seconds = (): number => Math.floor(Date.now() / 1000) + clock.ahead
  const all = { host: '127.0.0.1', port: 0, ...options }
  const payment = await startPayment(folder, all, { ...parts, seconds }, parts.log)
  t.teardown(() => payment.stop())
  // Providers fetch from the service.
  parts.platform?.startProviders([payment.url])
  const call = (method: string, path: string, more?: Call) => send(payment.url, method, path, more)
  return {
    payment,
    network: parts.network,
    folder,
    database: options.database,
    clock,
    call,
    async signIn(keys) {
      const { status, json } = await logIn(call, keys, await nonceFor(call, keys))
      if (status !== 200) throw new Error(`The sign-in was answered with ${status}: ${JSON.stringify(json)}`)
      return json.data.jwt_token
    },
    async restart(changed = {}, others = {}) {
      await payment.stop()
      return sceneOf(t, folder, { ...parts, ...others }, { ...options, ...changed }, clock)
    },
  }
}

/** The CARs of contents in the folder of the service. Several processes give each a name of its own. */
export function contentFiles({ folder }: PaymentScene): string[] {
  return readdirSync(join(folder, 'contents')).sort()
}

/** CIDs of the contents in the folder of the service. */
export function keptContents(scene: PaymentScene): string[] {
  return contentFiles(scene).map((name) => name.split('.')[0] ?? '')
}

/** The CAR of a content. */
export function fileOfContent(scene: PaymentScene, cid: string): string {
  return join(scene.folder, 'contents', contentFiles(scene).find((name) => name.startsWith(cid)) ?? '')
}

/** Runs statements in the database of the service. Gives the rows of a query. */
export async function inDatabase({ folder, database }: PaymentScene, sql: string): Promise<object[]> {
  if (database !== undefined) {
    const client = new pg.Client({ connectionString: database, options: '-c search_path=dealgate_payment' })
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }
  const db = new DatabaseSync(join(folder, 'payment.db'))
  try {
    if (/^SELECT /.test(sql)) return db.prepare(sql).all()
    db.exec(sql)
    return []
  } finally {
    db.close()
  }
}

type PlatformBeside = NonNullable<PaymentDeps['platform']> & Pick<RunningPlatform, 'startProviders'>

/** A task platform for the deals of uploads, with its first user. */
async function platformOver(t: Test, folder: string, network: EmbeddedNetwork): Promise<PlatformBeside> {
  const parts = { network, providersWait: true }
  const platform = await startPlatform(folder, { host: '127.0.0.1', port: 0 }, parts, silentLog)
  t.teardown(() => platform.stop())
  await platform.makeFirstUser()
  return { ...platform.login, startProviders: platform.startProviders }
}

type Calling = Pick<PaymentScene, 'call'>['call']

export async function nonceFor(call: Calling, { address }: Keys): Promise<string> {
  const { json } = await call('POST', '/api/v1/user/register', { body: { public_key_address: address } })
  return json.data.nonce
}

/** Signs the nonce and logs in. */
export function logIn(call: Calling, keys: Keys, nonce: string, more: object = {}): Promise<Answer> {
  const body = { nonce, signature: keys.sign(nonce), public_key_address: keys.address, network: NETWORK, ...more }
  return call('POST', '/api/v1/user/login_by_wallet_signature', { body })
}
