import { type Database, tableOf } from '../../store/database.js'
import { NetworkError, type Provider } from '../network.js'
import { asUnavailable } from './kubo-errors.js'
import type { KuboNode, NodeIdentity } from './kubo-node.js'

export const providerSchema = `
  CREATE TABLE IF NOT EXISTS kubo_node (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    peer_id TEXT NOT NULL
  ) STRICT;
`

const MIN_PIECE = 128
/** The largest sector of Filecoin, 64 GiB, which bounds the size of pieces. */
const MAX_PIECE = 2 ** 36

/** The peer id of the node when it was last reached. */
export class NodeTable extends tableOf({
  find: 'SELECT peer_id AS "peerId" FROM kubo_node',
  save: 'INSERT INTO kubo_node (id, peer_id) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET peer_id = excluded.peer_id',
}) {
  async peerId(): Promise<string | undefined> {
    return (await this.sql.find.get<{ peerId: string }>())?.peerId
  }

  /** Call it inside a transaction. */
  async save(peerId: string): Promise<void> {
    await this.sql.save.run(peerId)
  }
}

/**
 * The node as a storage provider: its peer id is its name, it is free of charge, and it accepts what fits into its
 * repository.
 */
export class KuboProvider {
  readonly #db: Database<{ readonly node: NodeTable }>
  readonly #node: KuboNode
  /** The peer id that this process has recorded last. */
  #recorded: string | undefined

  constructor(db: Database<{ readonly node: NodeTable }>, node: KuboNode) {
    this.#db = db
    this.#node = node
  }

  /** The provider as it is now. Throws NetworkError Unavailable. */
  async find(signal?: AbortSignal): Promise<Provider> {
    try {
      const identity = await this.#node.identity(signal)
      await this.#remember(identity.peerId)
      return toProvider(identity, await this.#node.room(signal))
    } catch (error) {
      throw asUnavailable(error)
    }
  }

  /**
   * Like `find`, but a node that cannot be reached shows as offline. Throws NetworkError Unavailable when it has never
   * been reached.
   */
  async lastKnown(): Promise<Provider> {
    try {
      return await this.find()
    } catch (error) {
      const peerId = error instanceof NetworkError ? await this.#db.read.node.peerId() : undefined
      if (peerId === undefined) throw error
      return { ...toProvider({ peerId, addresses: [] }, MAX_PIECE), status: 'Offline' }
    }
  }

  /**
   * Throws NetworkError NoSuchProvider when the id belongs to another provider, ProviderOffline when the node cannot be
   * reached.
   */
  async willing(minerId: string, signal: AbortSignal): Promise<Provider> {
    const provider = await this.find(signal).catch((error) => {
      if (!(error instanceof NetworkError)) throw error
      throw new NetworkError('ProviderOffline', `${error.message} Try again later.`, { cause: error })
    })
    if (provider.minerId === minerId) return provider
    throw new NetworkError(
      'NoSuchProvider',
      `There is no storage provider "${minerId.slice(0, 64)}" in this network, only the Kubo node ${provider.minerId}.`,
    )
  }

  async #remember(peerId: string): Promise<void> {
    if (this.#recorded === peerId) return
    await this.#db.transaction(async ({ node }) => {
      if ((await node.peerId()) !== peerId) await node.save(peerId)
    })
    this.#recorded = peerId
  }
}

function toProvider({ peerId, addresses }: NodeIdentity, room: number): Provider {
  return {
    minerId: peerId,
    location: 'Global',
    price: '0',
    verifiedPrice: '0',
    minPieceSize: MIN_PIECE,
    maxPieceSize: pieceWithin(room),
    offlineDealAvailable: false,
    score: 100,
    status: 'Active',
    contactInfo: addresses[0] ?? '',
  }
}

/** The largest piece that takes no more than `bytes`. */
function pieceWithin(bytes: number): number {
  return Math.max(MIN_PIECE, Math.min(MAX_PIECE, 2 ** Math.floor(Math.log2(Math.max(1, bytes)))))
}
