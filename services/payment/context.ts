import type { ClientRate } from '../../common/client-rate.js'
import type { ServicesLog } from '../log.js'
import type { Network } from '../network/network.js'
import type { Database } from '../store/database.js'
import type { PaymentAddresses } from './addresses.js'
import type { OpenedChain } from './chain/open.js'
import type { ContentStore } from './contents/content-store.js'
import type { KuboCopies } from './contents/open-node.js'
import type { Restoring } from './contents/restoring.js'
import type { Retention } from './contents/retention.js'
import type { CarFolder } from './dealing/car-folder.js'
import type { EmbeddedPayments, Payments } from './embedded-payments.js'
import type { BlockRate } from './ipfs/block-rate.js'
import type { Denylist } from './ipfs/denylist.js'
import type { PaymentLimits } from './limits.js'
import type { UploadScheduler } from './scheduler.js'
import type { PaymentTables } from './store.js'
import type { Shares, Slots } from './uploads/shares.js'
import type { Nonces, Tokens } from './wallets.js'
import type { Words } from './words.js'

/**
 * How callers are known: in `signedIn`, variant A of the interface, a wallet signs in and sees what is its own. In
 * `open`, variant B, there is no sign-in, and the address of the wallet in a request is trusted.
 */
export type Mode = 'signedIn' | 'open'

export interface PaymentContext {
  /** Random; another one after the data were lost. Hex. */
  readonly id: string
  readonly mode: Mode
  /** Name of the chain environment, which a sign-in must name. */
  readonly networkName: string
  readonly limits: PaymentLimits
  readonly log: ServicesLog
  /** The time, Unix seconds. */
  readonly seconds: () => number
  readonly db: Database<PaymentTables>
  readonly network: Network
  readonly nonces: Nonces
  /** How often clients may sign in at this process: it bounds the work for signatures, and guards no secret. */
  readonly signIns: ClientRate
  readonly tokens: Tokens
  readonly contents: ContentStore<PaymentTables>
  readonly retention: Retention
  readonly restoring: Restoring
  readonly shares: Shares
  /** Slots for uploads that arrive. */
  readonly slots: Slots
  /** Slots for CARs that are sent. */
  readonly carSlots: Slots
  /** For all contents that are sent. */
  readonly blockRate: BlockRate
  readonly payments: Payments
  /** The embedded ledger; undefined when payments are made on a chain. */
  readonly ledger: EmbeddedPayments | undefined
  /** The chain on which payments are made; undefined with the embedded ledger. */
  readonly chain: OpenedChain | undefined
  /** Words of clients, by which names of the interface are given, too; undefined: none. */
  readonly words: Words | undefined
  /** The contract by which clients mint NFTs of uploads, which the service only names; undefined: none. */
  readonly mintContract: string | undefined
  /** Where payments are made, with the checksum of EIP-55. */
  readonly addresses: PaymentAddresses
  /** Symbol of the stable coin. */
  readonly tokenName: () => Promise<string>
  readonly carFolder: CarFolder
  readonly scheduler: UploadScheduler
  /** Contents that are neither sent nor taken; undefined without a list. */
  readonly denylist: Denylist | undefined
  /** A Kubo node that has the contents, too; undefined without one. */
  readonly kubo: KuboCopies | undefined
  /** Address of the gateway of IPFS that `ipfs_url` names, without a slash at the end; undefined: as `ipfsUrl` says. */
  readonly ipfsGateway: string | undefined
  /** Where clients reach the service: `http://host:port`. */
  readonly publicUrl: () => string
}
