import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Clock } from '../clock.js'
import { openDatabase, Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import { makePrivateFolder } from '../private-file.js'
import { Account, type KeyPair } from './access/account.js'
import { Tokens } from './access/tokens.js'
import { type Brand, namesOf, neutralBrand } from './brand.js'
import type { GatewayContext } from './context.js'
import { type GatewayLimits, gatewayLimits } from './limits.js'
import type { QuirkName } from './quirks.js'
import { createGatewayServer } from './server.js'
import { Blobs } from './store/blobs.js'
import { Buckets } from './store/buckets.js'
import { KeyRules } from './store/key-rules.js'
import { ObjectStore } from './store/object-store.js'
import { Objects } from './store/objects.js'
import { Policies } from './store/policies.js'
import { schema } from './store/schema.js'

export interface GatewayOptions {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Ways in which it is to behave as public gateways do; default none. */
  readonly quirks?: readonly QuirkName[]
  readonly brand?: Brand
  /** Region in share links; default none, as on public gateways. */
  readonly region?: string
  /** Both or neither. Without them a pair is made at the first start and kept. */
  readonly accessKey?: string
  readonly secretKey?: string
  /** Other bounds than the usual ones. */
  readonly limits?: Partial<GatewayLimits>
}

export interface RunningGateway {
  /** `http://host:port` */
  readonly url: string
  readonly port: number
  readonly quirks: readonly QuirkName[]
  /** The owner's current pair, also after web.SetAuth. */
  credentials(): Promise<KeyPair>
  stop(): Promise<void>
}

const URL_TOKEN_SECONDS = 5 * 60
const SHORT_URL_TOKEN_SECONDS = 60

/** Starts the gateway over a folder that nobody else uses. Rejects when the port is taken or the folder's content is not its own. */
export async function startGateway(folder: string, options: GatewayOptions, log: ServicesLog): Promise<RunningGateway> {
  makePrivateFolder(folder)
  const db = openDatabase(join(folder, 'index.db'), schema)
  try {
    const context = assemble(folder, options, db, log)
    const server = createGatewayServer(context)
    await listen(server, options.host, options.port)
    const sweeping = sweep(context)
    const { port } = server.address() as AddressInfo
    return {
      url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
      port,
      quirks: options.quirks ?? [],
      credentials: async () => context.account.pair,
      stop: async () => {
        await close(server, context.limits.stopMs)
        context.writer.close()
        await context.blobs.close()
        await sweeping
        db.close()
      },
    }
  } catch (error) {
    db.close()
    throw error
  }
}

function assemble(
  folder: string,
  options: GatewayOptions,
  db: ReturnType<typeof openDatabase>,
  log: ServicesLog,
): GatewayContext {
  const quirks = new Set(options.quirks ?? [])
  const clock = new Clock()
  const configured = configuredPair(options)
  const account = Account.open(folder, configured)
  const writer = new Writer(db)
  const buckets = new Buckets(db)
  const objects = new Objects(db)
  const rules = new KeyRules(quirks, buckets, objects)
  const blobs = new Blobs(join(folder, 'objects'), clock, log)
  return {
    names: namesOf(options.brand ?? neutralBrand),
    quirks,
    region: options.region ?? '',
    limits: { ...gatewayLimits, ...options.limits },
    folder,
    clock,
    log,
    account,
    configuredKeys: configured !== undefined,
    tokens: new Tokens(account, quirks.has('short-url-tokens') ? SHORT_URL_TOKEN_SECONDS : URL_TOKEN_SECONDS),
    writer,
    buckets,
    policies: new Policies(db),
    objects,
    store: new ObjectStore(writer, buckets, objects, blobs, clock, rules),
    blobs,
    rules,
  }
}

function configuredPair({ accessKey, secretKey }: GatewayOptions): KeyPair | undefined {
  if (accessKey === undefined && secretKey === undefined) return undefined
  if (accessKey === undefined || secretKey === undefined) {
    throw new RangeError("The gateway's access key and secret key must be given both or not at all.")
  }
  return { accessKey, secretKey }
}

async function sweep({ blobs, objects, log }: GatewayContext): Promise<void> {
  try {
    const removed = await blobs.sweep((generation) => objects.hasFile(generation))
    if (removed > 0) log.info({ removed }, 'Removed files that uploads cut short had left.')
  } catch (error) {
    log.warn({ err: error }, 'Not all files that uploads cut short had left could be removed.')
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const inUse = error.code === 'EADDRINUSE'
      const text = `Port ${port} of ${host} is in use by another program. Stop that one or choose another port.`
      reject(inUse ? Object.assign(new Error(text, { cause: error }), { code: error.code }) : error)
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}

/** How often connections that have become idle are looked for while the gateway stops, ms. */
const IDLE_CHECK_MS = 50

/** Lets running requests finish, up to a point. */
async function close(server: Server, stopMs: number): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  const deadline = setTimeout(() => server.closeAllConnections(), stopMs)
  await closed
  clearInterval(idle)
  clearTimeout(deadline)
}
