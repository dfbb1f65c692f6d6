import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { readJson } from '../http/json-body.js'
import { readAddress } from '../sign-in/caller.js'
import { ownUpload } from '../uploads/own-upload.js'

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
