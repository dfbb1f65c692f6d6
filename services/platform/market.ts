import { join } from 'node:path'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import type { Database } from '../store/database.js'
import { ProviderDaemon } from './daemon/provider-daemon.js'
import { deliveryOf, type MailOptions } from './mail-delivery.js'
import { Mailer } from './mailer.js'
import { TaskScheduler } from './scheduler.js'
import type { PlatformTables } from './store.js'
import { Drafts } from './tasks/task-table.js'

const MAX_CAR_BYTES = 16 * 2 ** 30

export interface Market {
  readonly drafts: Drafts
  readonly scheduler: TaskScheduler
  /**
   * Call it when the assignment of a task has been committed: sends its mail and fetches its CARs, in the background.
   */
  onAssigned(): void
  /**
   * Lets the embedded providers begin.
   * @param own URLs of the servers of this machine from which CARs may come
   */
  startProviders(own: readonly string[]): void
  /** Ends their work; the next start goes on with it. */
  stopProviders(): Promise<void>
  stop(): Promise<void>
}

interface MarketDeps {
  readonly db: Database<PlatformTables>
  readonly network: Network
  readonly seconds: () => number
  readonly log: ServicesLog
}

/** The CARs that embedded providers fetch. */
interface CarOptions {
  /** Most bytes of all of them; default 16 GiB. Further deals wait until CARs are removed. */
  readonly mostBytes?: number
  /**
   * Private addresses, and addresses of this machine, from which CARs may come, such as `10.1.0.0/16`; default none.
   * The gateway and the payment service need none, and link-local addresses are never used.
   */
  readonly networks?: readonly string[]
}

export interface MarketOptions {
  /** How mails to storage providers are sent; default as files into the folder `outbox` of the platform. */
  readonly mail?: MailOptions
  /**
   * `embedded`, the default: the providers of the network fetch the CARs of their deals. `external`: a program outside
   * does it for them, by the interface.
   */
  readonly daemon?: 'embedded' | 'external'
  readonly cars?: CarOptions
}

/**
 * Opens the market: removes what interrupted requests left, and begins to move tasks and to send mails.
 * @param folder for the outbox of mails and for fetched CARs
 */
export async function openMarket(deps: MarketDeps, folder: string, options: MarketOptions): Promise<Market> {
  const { db, network, seconds, log } = deps
  const drafts = new Drafts(db, seconds, log)
  await drafts.start()
  const mailer = new Mailer(db.lease('mails'), deliveryOf(options.mail ?? {}, join(folder, 'outbox')), log)
  const { mostBytes = MAX_CAR_BYTES, networks = [] } = options.cars ?? {}
  const daemon =
    options.daemon === 'external'
      ? undefined
      : new ProviderDaemon({ lease: db.lease('providers'), network, seconds, log }, join(folder, 'cars'), {
          mostBytes,
          networks,
        })
  const onAssigned = (): void => {
    void mailer.kick()
    void daemon?.kick()
  }
  const scheduler = new TaskScheduler({ ...deps, onAssigned, onMoved: () => void daemon?.catchUp() })
  scheduler.start()
  mailer.start()
  const stop = async (): Promise<void> => {
    await scheduler.stop()
    await Promise.all([drafts.stop(), mailer.stop(), daemon?.stop()])
  }
  const startProviders = (own: readonly string[]): void => daemon?.start(own)
  const stopProviders = async (): Promise<void> => daemon?.stop()
  return { drafts, scheduler, onAssigned, startProviders, stopProviders, stop }
}
