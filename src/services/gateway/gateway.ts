import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Database, openDatabase } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { OpenedNetwork } from '../network/open.js'
import { makePrivateFolder } from '../private-file.js'
import type { KeyPair } from './access/account.js'
import { assemble } from './assemble.js'
import type { Brand } from './brand.js'
import type { GatewayContext } from './context.js'
import { keepPruning } from './deals/pruning.js'
import { dealSchema, migrateDeals } from './deals/schema.js'
import type { GatewayLimits } from './limits.js'
import type { QuirkName } from './quirks.js'
import { createGatewayServer } from './server.js'
import { INDEX_FILE, migrate, schema } from './store/schema.js'

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

/**
 * Starts the gateway over a folder that nobody else uses. Rejects when the port is taken or the folder's content is not its own.
 * @param network is to be stopped by the caller, after the gateway
 */
export async function startGateway(
  folder: string,
  options: GatewayOptions,
  network: OpenedNetwork,
  log: ServicesLog,
): Promise<RunningGateway> {
  makePrivateFolder(folder)
  const db = openDatabase(join(folder, INDEX_FILE), schema + dealSchema, (db) => {
    migrate(db)
    migrateDeals(db)
  })
  let context: GatewayContext | undefined
  try {
    context = assemble(folder, options, db, network, log)
    await context.desk.recover()
    const server = createGatewayServer(context)
    await listen(server, options.host, options.port)
    return running(context, options, db, server)
  } catch (error) {
    await context?.tasks.stop()
    db.close()
    throw error
  }
}

function running(context: GatewayContext, options: GatewayOptions, db: Database, server: Server): RunningGateway {
  const sweeping = sweep(context)
  keepPruning(context)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    port,
    quirks: options.quirks ?? [],
    credentials: async () => context.account.pair,
    stop: async () => {
      await close(server, context.limits.stopMs)
      await context.tasks.stop()
      context.writer.close()
      await context.blobs.close()
      await sweeping
      db.close()
    },
  }
}

async function sweep({ blobs, objects, holds, log }: GatewayContext): Promise<void> {
  try {
    const removed = await blobs.sweep((generation) => objects.hasFile(generation) || holds.isRetained(generation))
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
