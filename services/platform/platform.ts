import { join } from 'node:path'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { OwnFailures, SharedFailures } from '../failure-table.js'
import { type Listening, listen } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import { type RunningServer, runningServer } from '../rest/running.js'
import { type Database, randomSetting } from '../store/database.js'
import { openStore } from '../store/open.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import type { PlatformContext } from './context.js'
import { type PlatformLimits, platformLimits } from './limits.js'
import { type MarketOptions, openMarket } from './market.js'
import { createPlatformServer } from './server.js'
import { type PlatformTables, platformSchema } from './store.js'
import { SignInAttempts, TOKEN_KEY, Tokens } from './tokens.js'
import { Uploads } from './uploads.js'
import { FIRST_USER, makeFirstUser, type PlatformUsers, type SignIn } from './users.js'

export interface PlatformOptions extends MarketOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** What clients mean by `offset`; default `records`, as all known clients do. The documentation says `pages`. */
  readonly offsets?: PlatformContext['offsets']
  readonly limits?: Partial<PlatformLimits>
  /** URL of the PostgreSQL database that holds the tables; default SQLite, in the folder. */
  readonly database?: string
}

export interface PlatformDeps {
  /** Stopped by the caller, after the platform. */
  readonly network: Network
  readonly metrics?: StoreMetrics | undefined
  /** ms of a monotonic clock, by which guessers wait and slow bodies end; default that of the process. */
  readonly monotonicMs?: () => number
  /** True when the embedded providers wait for `startProviders`; default false. */
  readonly providersWait?: boolean
}

export interface RunningPlatform extends RunningServer, Required<PlatformUsers> {
  /**
   * Makes the first user with a random password, unless there is one: then undefined. The password is not kept: call
   * this when it can be shown.
   */
  makeFirstUser(): Promise<SignIn | undefined>
  /**
   * Lets the embedded providers begin: in a start that waits for the servers of their CARs, once these listen.
   * @param own URLs of these servers, from which CARs may come though they are on this machine
   */
  startProviders(own: readonly string[]): void
  /** Stops the embedded providers, which go on at the next start: call it before the servers of their CARs stop. */
  stopProviders(): Promise<void>
}

/**
 * Starts the task platform over a folder that no other instance uses. Rejects when the port is taken or the folder
 * holds files of something else.
 */
export async function startPlatform(
  folder: string,
  options: PlatformOptions,
  deps: PlatformDeps,
  log: ServicesLog,
): Promise<RunningPlatform> {
  makePrivateFolder(folder)
  const file = join(folder, 'platform.db')
  const place = { file, database: options.database, reserve: true, metrics: deps.metrics }
  const db = await openStore(platformSchema, place, log)
  try {
    const context = await assemble(folder, db, options, deps, log)
    try {
      const listening = await listen(createPlatformServer(context), options.host, options.port)
      if (!deps.providersWait) context.market.startProviders([])
      return running(context, listening)
    } catch (error) {
      await context.market.stop()
      throw error
    }
  } catch (error) {
    await db.close()
    throw error
  }
}

async function assemble(
  folder: string,
  db: Database<PlatformTables>,
  options: PlatformOptions,
  { network, monotonicMs: clock }: PlatformDeps,
  log: ServicesLog,
): Promise<PlatformContext> {
  const limits = { ...platformLimits, ...options.limits }
  const seconds = (): number => Math.floor(Date.now() / 1000)
  const [id, tokenKey] = await Promise.all([randomSetting(db, 'id'), randomSetting(db, TOKEN_KEY)])
  const monotonicMs = clock ?? (() => performance.now())
  // Processes have no monotonic clock in common.
  const failures = db.shared ? new SharedFailures(db, clock ?? Date.now) : new OwnFailures(monotonicMs)
  return {
    id: Buffer.from(id).toString('hex'),
    limits,
    offsets: options.offsets ?? 'records',
    log,
    seconds,
    monotonicMs,
    db,
    network,
    tokens: new Tokens(tokenKey, db.read),
    attempts: new SignInAttempts(log, failures),
    uploads: new Uploads(limits),
    market: await openMarket({ db, network, seconds, log }, folder, options),
  }
}

function running(context: PlatformContext, listening: Listening): RunningPlatform {
  const { db, limits, tokens, market } = context
  const started = runningServer(listening, async () => {
    await listening.close(limits.stopMs)
    await market.stop()
    await db.close()
  })
  return {
    ...started,
    makeFirstUser: () => makeFirstUser(db, context.seconds()),
    startProviders: (own) => market.startProviders(own),
    stopProviders: () => market.stopProviders(),
    login: {
      url: started.ownUrl,
      tokenFor: async (name) => {
        const [, id] = name?.startsWith(`${context.id}/`) ? name.split('/') : []
        const user = await db.read.users.get(name === undefined ? FIRST_USER : Number(id ?? 0))
        return user && tokens.ofSignIn(user)
      },
    },
    userOf: async (token) => {
      const { user } = (await tokens.callerOf(token)) ?? {}
      return user && { id: `${context.id}/${user.id}`, name: user.email, isFirst: user.id === FIRST_USER }
    },
  }
}
