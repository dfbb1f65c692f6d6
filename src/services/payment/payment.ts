import type { Server } from 'node:http'
import { ClientRate } from '../../common/client-rate.js'
import { type Database, openRandomSetting, overDatabase, type Writer } from '../database.js'
import { close, listen, localUrlOf, portOf, type RunningServer, runningServer } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import { lazyPacking } from '../network/packing.js'
import type { PlatformLogin } from '../platform/users.js'
import { addressesOf } from './addresses.js'
import { type ChainDeps, type ChainOptions, openChain, requireNoChain } from './chain/open.js'
import { ContentStore } from './contents/content-store.js'
import { ContentTable } from './contents/content-table.js'
import { openKuboCopies } from './contents/open-node.js'
import { Restoring } from './contents/restoring.js'
import { Retention, RetentionTable } from './contents/retention.js'
import type { PaymentContext } from './context.js'
import { CarFolder, CarTable } from './dealing/car-folder.js'
import { DealTable } from './dealing/deal-table.js'
import { Dealing } from './dealing/dealing.js'
import { PackedUploads } from './dealing/packed-uploads.js'
import { PlatformDealer } from './dealing/platform-dealer.js'
import { EmbeddedPayments } from './embedded-payments.js'
import { PaymentError } from './errors.js'
import { Denylist } from './ipfs/denylist.js'
import { type PaymentLimits, paymentLimits } from './limits.js'
import { TOKEN_NAME } from './prices.js'
import { Progress, UploadScheduler } from './scheduler.js'
import { createPaymentServer } from './server.js'
import { migrate } from './store.js'

import { Shares, Slots } from './uploads/shares.js'
import { MintTable, UploadTable } from './uploads/upload-table.js'
import { Nonces, Tokens, Wallets } from './wallets.js'
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
}

export interface PaymentDeps {
  /** Stopped by the caller, after the service. */
  readonly network: Network
  /** The task platform by which deals are made for uploads; absent: none are made. */
  readonly platform?: PlatformLogin | undefined
  /** URL of the RPC of a Kubo node that gets all contents. */
  readonly kubo?: string | undefined
  /** The time, Unix seconds; default that of the system. */
  readonly seconds?: () => number
}

export type RunningPayment = RunningServer

/**
 * Starts the storage payment API over a folder that no other instance uses. Rejects when the port is taken or the
 * folder holds files of something else.
 */
export function startPayment(
  folder: string,
  options: PaymentOptions,
  deps: PaymentDeps,
  log: ServicesLog,
): Promise<RunningPayment> {
  return overDatabase(folder, 'payment.db', migrate, async (db, writer) => {
    let server: Server | undefined
    const own = (): string => localUrlOf(options.host, server === undefined ? options.port : portOf(server))
    const publicUrl = (): string => options.publicUrl?.replace(/\/+$/, '') ?? own()
    const context = await assemble(folder, db, writer, options, { ...deps, publicUrl }, log)
    server = createPaymentServer(context)
    await listen(server, options.host, options.port)
    context.scheduler.start()
    context.chain?.start()
    context.kubo?.copies.start()
    return running(context, options, server)
  })
}

async function assemble(
  folder: string,
  db: Database,
  writer: Writer,
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
    openRandomSetting(db, writer, 'id'),
    openRandomSetting(db, writer, 'token-key'),
    openRandomSetting(db, writer, 'nonce-key'),
  ])
  const ownId = Buffer.from(id).toString('hex')
  const limits = { ...paymentLimits, ...options.limits }
  const wallets = new Wallets(db)
  const contentTable = new ContentTable(db)
  const contents = new ContentStore(folder, contentTable, writer, limits.maxStoredBytes, log)
  await contents.open()
  const { payments, ...place } =
    options.chain === undefined
      ? embedded(db, writer, ownId)
      : await onChain(options.chain, { db, writer, network, seconds, log })
  const kubo = kuboUrl === undefined ? undefined : await openKuboCopies(kuboUrl, { db, writer, contents, log })
  const progress = new Progress(db)
  const cars = new CarTable(db)
  const carFolder = new CarFolder(folder, lazyPacking().pack, log)
  await carFolder.open((task) => cars.ofTask(task)?.status !== 'Completed' && cars.ofTask(task) !== undefined)
  const deals = new DealTable(db)
  const uploads = new UploadTable(db)
  const retentionTable = new RetentionTable(db)
  const retention = new Retention({ table: retentionTable, wallets, contents, writer, network, seconds })
  await retention.open()
  const shared = { payments, writer, network, seconds }
  const dealing =
    platform &&
    new Dealing({
      ...shared,
      dealer: new PlatformDealer(platform, network),
      cars,
      folder: carFolder,
      uploads: new PackedUploads(db),
      deals,
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
    writer,
    network,
    wallets,
    nonces: new Nonces(db, nonceKey),
    signIns: new ClientRate(limits.signIns, tooOften),
    tokens: new Tokens(tokenKey, wallets, networkName),
    contentTable,
    contents,
    retention,
    restoring: new Restoring({ table: retentionTable, contents, retention, network }),
    uploads,
    shares: new Shares(uploads, limits),
    slots: new Slots('uploads arrive', limits.concurrentUploads, limits.uploadsPerWallet, limits.uploadsPerAddress),
    carSlots: new Slots('CARs are read', limits.maxConnections, limits.maxConnections, limits.carsPerAddress),
    payments,
    ...place,
    words: options.words,
    mintContract: options.mintContract,
    cars,
    carFolder,
    deals,
    mints: new MintTable(db),
    progress,
    scheduler: new UploadScheduler({ ...shared, progress, retention, log, ...(dealing && { dealing }) }),
    denylist: options.denylist === undefined ? undefined : new Denylist(options.denylist, log),
    kubo,
    ipfsGateway: options.ipfsGateway?.replace(/\/+$/, ''),
    publicUrl,
  }
}

type BillingDeps = Pick<PaymentContext, 'payments' | 'ledger' | 'chain' | 'addresses' | 'tokenName'>

function embedded(db: Database, writer: Writer, id: string): BillingDeps {
  requireNoChain(db)
  const ledger = new EmbeddedPayments(db, writer, id)
  return { payments: ledger, ledger, chain: undefined, addresses: addressesOf(id), tokenName: () => TOKEN_NAME }
}

async function onChain(options: ChainOptions, deps: ChainDeps): Promise<BillingDeps> {
  const chain = await openChain(options, deps)
  const { payments, addresses } = chain
  return { payments, ledger: undefined, chain, addresses, tokenName: () => chain.tokenName() ?? TOKEN_NAME }
}

function tooOften(): PaymentError {
  return new PaymentError('often', 'sign in less often', ['Retry-After', 1])
}

function running(
  { db, writer, limits, scheduler, chain, restoring, kubo }: PaymentContext,
  { host }: PaymentOptions,
  server: Server,
): RunningPayment {
  return runningServer(server, host, async () => {
    await restoring.stop()
    await close(server, limits.stopMs)
    await kubo?.stop()
    await chain?.stop()
    await scheduler.stop()
    writer.close()
    db.close()
  })
}
