import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { PeriodicTask } from '../../common/time.js'
import type { PortClients } from '../http/port.js'
import { type Listening, listen, localUrlOf } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { OpenedNetwork } from '../network/open.js'
import type { PlatformUsers } from '../platform/users.js'
import { type Bodies, generationOf } from '../store/bodies.js'
import type { Database } from '../store/database.js'
import { openStore, requireSharedFolder } from '../store/open.js'
import { Run } from '../store/runs.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import type { Account } from './accounts/accounts.js'
import type { KeyPair } from './accounts/key-pair.js'
import { assemble, type GatewayOptions, limitsOf } from './assemble.js'
import type { GatewayContext } from './context.js'
import { keepLocked } from './deals/locked-bodies.js'
import { keepPruning } from './deals/pruning.js'
import { type GatewayTables, indexSchema } from './index-schema.js'
import { frontOf } from './legacy/front.js'
import type { QuirkName } from './legacy/quirks.js'
import { createGatewayServer } from './server.js'
import { openBodies } from './store/open-bodies.js'
import { INDEX_FILE } from './store/schema.js'
import { keepUp } from './upkeep.js'

export interface RunningGateway extends Omit<Listening, 'close'> {
  readonly quirks: readonly QuirkName[]
  /** True when this start generated the key pair of the first account. */
  readonly madeKeys: boolean
  /** Answers what comes over the port, of a client in this process. */
  attach(port: MessagePort): void
  /** The current key pair of the first account, also after web.SetAuth. */
  credentials(): Promise<KeyPair>
  stop(): Promise<void>
}

/**
 * Starts the gateway over a folder that no other instance uses, unless all of them use one PostgreSQL database. Rejects
 * when the port is taken or the folder holds files of something else.
 * @param network stopped by the caller, after the gateway
 * @param platform knows the users to whom GET on the gateway hands out key pairs
 */
export async function startGateway(
  folder: string,
  options: GatewayOptions,
  network: OpenedNetwork,
  log: ServicesLog,
  platform?: PlatformUsers,
  metrics?: StoreMetrics,
): Promise<RunningGateway> {
  makePrivateFolder(folder)
  const place = { file: join(folder, INDEX_FILE), database: options.database, reserve: true, metrics }
  const db = await openStore(indexSchema, place, log)
  let run: Run | undefined
  let bodies: Bodies | undefined
  let context: GatewayContext | undefined
  try {
    await requireSharedFolder(db, folder, indexSchema.owner)
    run = await Run.begin(db)
    bodies = await openBodies(folder, db, options.bodies, limitsOf(options), log, metrics)
    context = await assemble(folder, options, db, run, bodies, network, log, platform, metrics)
    await context.dealService.recover()
    await context.offlineDealService?.recover()
    const { http, ports } = createGatewayServer(context, frontOf(new Set(options.quirks ?? [])))
    const listening = await listen(http, options.host, options.port)
    return running(context, options, db, listening, ports, metrics)
  } catch (error) {
    await context?.tasks.stop()
    await bodies?.close()
    await run?.end()
    await db.close()
    throw error
  }
}

function running(
  context: GatewayContext,
  options: GatewayOptions,
  db: Database<GatewayTables>,
  { url, port, ownUrl, close }: Listening,
  ports: PortClients,
  metrics: StoreMetrics | undefined,
): RunningGateway {
  const sweeping = keepSweeping(context, options.bodies !== undefined || db.shared, metrics)
  keepPruning(context)
  keepLocked(context)
  keepUp(context)
  context.offlineDealService?.start(options.publicUrl?.replace(/\/+$/, '') ?? localUrlOf(options.host, port))
  return {
    url,
    port,
    ownUrl,
    attach: (to) => ports.attach(to),
    quirks: options.quirks ?? [],
    madeKeys: context.madeKeys,
    credentials: async () => {
      const { accessKey, secretKey } = (await db.read.accounts.first()) as Account
      return { accessKey, secretKey }
    },
    stop: async () => {
      await Promise.all([close(context.limits.stopMs), ports.close(context.limits.stopMs)])
      await context.tasks.stop()
      sweeping.stopTimer()
      await context.bodies.close()
      await sweeping.stop()
      await context.upkeep.release()
      await context.run.end()
      await db.close()
    },
  }
}

/**
 * A store is swept again: requests that had timed out may take effect until then. So is a folder of several processes,
 * one of which may die.
 */
function keepSweeping(context: GatewayContext, again: boolean, metrics: StoreMetrics | undefined): PeriodicTask {
  const { log, limits } = context
  const task = new PeriodicTask(
    () => sweep(context, metrics),
    (error) => log.warn({ err: error }, 'Could not remove all bodies of interrupted uploads.'),
  )
  if (again) task.start(limits.orphanPauseMs)
  else void task.run()
  return task
}

async function sweep({ bodies, db, log, upkeep }: GatewayContext, metrics: StoreMetrics | undefined): Promise<void> {
  if (!(await upkeep.take())) return
  const { objects, retained, doomed } = db.read
  const withRow = async (names: readonly string[]) => {
    if (names.length === 0) return new Set<string>()
    const generations = names.map(generationOf)
    // In the order in which a body moves from one table to the other.
    const ofObjects = await objects.bodiesOf(generations)
    const kept = await retained.bodiesOf(generations)
    return new Set([...ofObjects, ...kept, ...(await doomed.among(names))])
  }
  const removed = await bodies.sweep(withRow)
  metrics?.swept(removed)
  if (removed > 0) log.info({ removed }, 'Removed bodies of interrupted uploads.')
}
