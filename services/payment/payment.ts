import { join } from 'node:path'
import { ClientRate } from '../../common/client-rate.js'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { type Listening, listen, localUrlOf } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import { lazyPacking } from '../network/packing.js'
import type { PlatformLogin } from '../platform/users.js'
import { type RunningServer, runningServer } from '../rest/running.js'
import { type Database, randomSetting } from '../store/database.js'
import { openStore, requireSharedFolder } from '../store/open.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import { addressesOf } from './addresses.js'
import { type ChainDeps, type ChainOptions, openChain, requireNoChain } from './chain/open.js'
import { ContentStore } from './contents/content-store.js'
import { openKuboCopies } from './contents/open-node.js'
import { Restoring } from './contents/restoring.js'
import { Retention } from './contents/retention.js'
import type { PaymentContext } from './context.js'
import { CarFolder } from './dealing/car-folder.js'
import { Dealing } from './dealing/dealing.js'
import { PlatformDealer } from './dealing/platform-dealer.js'
import { EmbeddedPayments } from './embedded-payments.js'
import { PaymentError } from './errors.js'
import { BlockRate } from './ipfs/block-rate.js'
import { Denylist } from './ipfs/denylist.js'
import { type PaymentLimits, paymentLimits } from './limits.js'
import { TOKEN_NAME } from './prices.js'
import { UploadScheduler } from './scheduler.js'
import { createPaymentServer } from './server.js'
import { type PaymentTables, paymentSchema } from './store.js'
import { Shares, Slots } from './uploads/shares.js'
import { Nonces, Tokens } from './wallets.js'
import type { Words } from './words.js'

const DEFAULT_NETWORK = 'dealgate.testnet'

export interface PaymentOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Address by which others reach the service; default: that on which it listens. */
  readonly publicUrl?: string | undefined
  /** Address of the gateway of IPFS that `ipfs_url` names; default: that of the Kubo node, or the service. */
  readonly ipfsGateway?: string | undefined
  /** File with the contents that are neither sent nor taken; default: none. */
  readonly denylist?: string | undefined
  /** How callers are known; default `signedIn`. See PaymentContext. */
  readonly mode?: PaymentContext['mode']
  /** Name of the chain environment that a sign-in must name; default `dealgate.testnet`. */
  readonly networkName?: string
  /** Words of clients, by which names of the interface are given, too; default: none. */
  readonly words?: Words | undefined
  /** Address of the contract by which clients mint NFTs of uploads; default: none. */
  readonly mintContract?: string | undefined
  /** Where payments are made; default: the embedded ledger. */
  readonly chain?: ChainOptions | undefined
  readonly limits?: Partial<PaymentLimits>
  /** URL of the PostgreSQL database that holds the tables; default SQLite, in the folder. */
  readonly database?: string
}

export interface PaymentDeps {
  /** Stopped by the caller, after the service. */
  readonly network: Network
  /** The task platform by which deals are made for uploads; absent: none are made. */
  readonly platform?: PlatformLogin | undefined
  /** URL of the RPC of a Kubo node that gets all contents. */
  readonly kubo?: string | undefined
  readonly metrics?: StoreMetrics | undefined
  /** The time, Unix seconds; default that of the system. */
  readonly seconds?: () => number
}

export type RunningPayment = RunningServer

/**
 * Starts the storage payment API over a folder that no other instance uses. Rejects when the port is taken or the
 * folder holds files of something else.
 */
export async function startPayment(
  folder: string,
  options: PaymentOptions,
  deps: PaymentDeps,
  log: ServicesLog,
): Promise<RunningPayment> {
  makePrivateFolder(folder)
  const file = join(folder, 'payment.db')
  const place = { file, database: options.database, reserve: true, metrics: deps.metrics }
  // Among processes, one could take back a pin of the node that another makes.
  const db = await openStore({ ...paymentSchema, exclusive: deps.kubo !== undefined }, place, log)
  try {
    let listening: Listening | undefined
    const own = (): string => localUrlOf(options.host, listening?.port ?? options.port)
    const publicUrl = (): string => options.publicUrl?.replace(/\/+$/, '') ?? own()
    const context = await assemble(folder, db, options, { ...deps, publicUrl }, log)
    listening = await listen(createPaymentServer(context), options.host, options.port)
    context.scheduler.start()
    context.chain?.start()
    context.kubo?.copies.start()
    return running(context, listening)
  } catch (error) {
    await db.close()
    throw error
  }
}

async function assemble(
  folder: string,
  db: Database<PaymentTables>,
  { mode = 'signedIn', networkName = DEFAULT_NETWORK, ...options }: PaymentOptions,
  {
    network,
    platform,
    kubo: kuboUrl,
    publicUrl,
    seconds = () => Math.floor(Date.now() / 1000),
  }: PaymentDeps & Pick<PaymentContext, 'publicUrl'>,
  log: ServicesLog,
): Promise<PaymentContext> {
  const [id, tokenKey, nonceKey] = await Promise.all([
    randomSetting(db, 'id'),
    randomSetting(db, 'token-key'),
    randomSetting(db, 'nonce-key'),
  ])
  await requireSharedFolder(db, folder, paymentSchema.owner)
  const ownId = Buffer.from(id).toString('hex')
  const limits = { ...paymentLimits, ...options.limits }
  const contents = new ContentStore(folder, db, limits.maxStoredBytes, log)
  await contents.open()
  const { payments, ...place } =
    options.chain === undefined
      ? await embedded(db, ownId)
      : await onChain(options.chain, { db, network, seconds, log })
  const kubo = kuboUrl === undefined ? undefined : await openKuboCopies(kuboUrl, { db, contents, log })
  const carFolder = new CarFolder(folder, lazyPacking().pack, log)
  await carFolder.open(async (task) => {
    const car = await db.read.cars.ofTask(task)
    return car !== undefined && car.status !== 'Completed'
  }, db.shared)
  const retention = new Retention({ db, contents, network, seconds })
  await retention.open()
  const shared = { db, payments, network, seconds }
  const dealing =
    platform &&
    new Dealing({
      ...shared,
      lease: db.lease('dealing'),
      dealer: new PlatformDealer(platform, network),
      folder: carFolder,
      contents,
      log,
      urlOf: (task) => `${publicUrl()}/cars/${task}.car`,
    })
  return {
    id: ownId,
    mode,
    networkName,
    limits,
    log,
    seconds,
    db,
    network,
    nonces: new Nonces(nonceKey),
    signIns: new ClientRate(limits.signIns, tooOften),
    tokens: new Tokens(tokenKey, db.read.wallets, networkName),
    contents,
    retention,
    restoring: new Restoring({ table: db.read.retention, contents, retention, network }),
    shares: new Shares(db.read.uploads, limits),
    slots: new Slots('uploads arrive', limits.concurrentUploads, limits.uploadsPerWallet, limits.uploadsPerAddress),
    carSlots: new Slots('CARs are read', limits.maxConnections, limits.maxConnections, limits.carsPerAddress),
    blockRate: new BlockRate(limits.blockRates),
    payments,
    ...place,
    words: options.words,
    mintContract: options.mintContract,
    carFolder,
    scheduler: new UploadScheduler({ ...shared, retention, log, ...(dealing && { dealing }) }),
    denylist: options.denylist === undefined ? undefined : new Denylist(options.denylist, log),
    kubo,
    ipfsGateway: options.ipfsGateway?.replace(/\/+$/, ''),
    publicUrl,
  }
}

type BillingDeps = Pick<PaymentContext, 'payments' | 'ledger' | 'chain' | 'addresses' | 'tokenName'>

async function embedded(db: Database<PaymentTables>, id: string): Promise<BillingDeps> {
  await requireNoChain(db.read.chain)
  const ledger = new EmbeddedPayments(db, id)
  return { payments: ledger, ledger, chain: undefined, addresses: addressesOf(id), tokenName: async () => TOKEN_NAME }
}

async function onChain(options: ChainOptions, deps: ChainDeps): Promise<BillingDeps> {
  const chain = await openChain(options, deps)
  const { payments, addresses } = chain
  return {
    payments,
    ledger: undefined,
    chain,
    addresses,
    tokenName: async () => (await chain.tokenName()) ?? TOKEN_NAME,
  }
}

function tooOften(): PaymentError {
  return new PaymentError('often', 'sign in less often', ['Retry-After', 1])
}

function running(
  { db, limits, scheduler, chain, restoring, kubo }: PaymentContext,
  listening: Listening,
): RunningPayment {
  return runningServer(listening, async () => {
    await restoring.stop()
    await listening.close(limits.stopMs)
    await kubo?.stop()
    await chain?.stop()
    await scheduler.stop()
    await db.close()
  })
}
