import type { Database } from '../../database.js'

/** The NFT of an upload. */
export interface Mint {
  readonly id: number
  /** Number of the upload. */
  readonly upload: number
  readonly txHash: string
  readonly mintAddress: string
  readonly tokenId: string
  /** Unix seconds. */
  readonly created: number
  readonly updated: number
}

/** The table of NFTs. Call writing methods inside a transaction. */
export class MintTable {
  readonly #find
  readonly #add

  constructor(db: Database) {
    this.#find = db.prepare(
      'SELECT id, upload, tx_hash AS txHash, mint_address AS mintAddress, token_id AS tokenId, created, updated FROM mints WHERE upload = ?',
    )
    this.#add = db.prepare(
      'INSERT INTO mints (upload, tx_hash, mint_address, token_id, created, updated) VALUES (?, ?, ?, ?, ?, ?)',
    )
  }

  /** @param upload its number */
  find(upload: number): Mint | undefined {
    return this.#find.get(upload) as Mint | undefined
  }

  /** Throws when the upload has one. */
  add({ upload, txHash, mintAddress, tokenId, created }: Omit<Mint, 'id' | 'updated'>): Mint {
    this.#add.run(upload, txHash, mintAddress, tokenId, created, created)
    return this.find(upload) as Mint
  }
}
