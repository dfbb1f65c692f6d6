import type { Database } from '../database.js'
import { PaymentError } from './errors.js'
import { type Exchange, readJson } from './http.js'
import { readAddress } from './sign-in.js'
import { ownUpload } from './uploads/upload-table.js'

/** The NFT of an upload. */
interface Mint {
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

/** POST /storage/mint/info: records the NFT of an upload, once. */
export async function recordMint(exchange: Exchange): Promise<object> {
  const { mints, writer, seconds } = exchange.context
  const fields = await readJson(exchange)
  const { id } = ownUpload(exchange, fields.id('source_file_upload_id'))
  const txHash = fields.required('tx_hash')
  const tokenId = fields.required('token_id')
  const mintAddress = fields.required('mint_address')
  readAddress('mint_address', mintAddress)
  const mint = await writer.run(() => {
    const known = mints.find(id)
    if (known === undefined) return mints.add({ upload: id, txHash, mintAddress, tokenId, created: seconds() })
    const same = known.txHash === txHash && known.mintAddress === mintAddress && known.tokenId === tokenId
    return same ? known : undefined
  })
  if (mint === undefined) throw new PaymentError('conflict', `mint info exists for source file upload id:${id}`)
  return {
    id: mint.id,
    source_file_upload_id: mint.upload,
    nft_tx_hash: mint.txHash,
    mint_address: mint.mintAddress,
    token_id: mint.tokenId,
    create_at: mint.created,
    update_at: mint.updated,
  }
}
