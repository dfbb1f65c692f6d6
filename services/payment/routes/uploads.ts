import pMap from 'p-map'
import { z } from 'zod'
import { documents } from '../../../common/service-documents.js'
import { documentSchema } from '../../rest/schemas.js'
import { parseAddress } from '../addresses.js'
import { PaymentError } from '../errors.js'
import { formed, id, required, text, walletAddress } from '../fields.js'
import { pageOf, pageQuery } from '../page.js'
import { ownUpload, type PaymentRoute, route, walletOf } from '../route.js'
import { freeRoom } from '../uploads/free-room.js'
import { receiveUpload, uploadFields } from '../uploads/upload.js'
import { shownStatus, uploadOrders } from '../uploads/upload-table.js'
import { uploadView } from '../uploads/upload-view.js'

/** The content is stored at once; the upload is then to be paid. */
const upload = route({
  method: 'POST',
  path: '/api/v1/storage/ipfs/upload',
  access: 'wallet',
  summary: 'stores a file by its content; the upload is then to be paid',
  body: uploadFields,
  files: ['file'],
  data: documentSchema(documents.uploadAnswer).extend({ status: z.string().optional() }),
  handle: receiveUpload,
})

/** Uploads of a page that are looked up at the same time: a database has few connections. */
const AT_ONCE = 4

const flags = { is_free: z.boolean().optional(), idempotency_key: z.string() }

const listUploads = route({
  method: 'GET',
  path: '/api/v1/storage/tasks/deals',
  access: 'wallet',
  summary: 'lists the uploads of a wallet, each with its offline deals',
  query: {
    wallet_address: walletAddress(),
    is_minted: text('is_minted').describe('`y` or `n`.'),
    file_name: text('file_name').describe('A part of the name.'),
    status: text('status'),
    ...pageQuery,
  },
  data: z.object({
    source_file_upload: z.array(
      documentSchema(documents.upload).extend({
        ...flags,
        offline_deal: z.array(documentSchema(documents.offlineDeal)),
      }),
    ),
    total_record_count: z.int(),
    free_usage: z.int().optional().describe('Bytes that the wallet has uploaded for nothing in this month.'),
    free_quota_per_month: z.int().optional(),
  }),
  async handle({ context, caller, query }) {
    await context.scheduler.catchUp()
    const wallet = walletOf(caller, query.wallet_address)
    const minted = query.is_minted
    const filter = {
      wallet,
      fileName: query.file_name,
      minted: minted === 'y' ? true : minted === 'n' ? false : undefined,
      status: query.status,
    }
    const table = context.db.read.uploads
    const room = context.mode === 'signedIn' ? await freeRoom(context, table, wallet) : undefined
    const { uploads, total } = await table.list(filter, pageOf(query, uploadOrders, 'upload_at'))
    return {
      source_file_upload: await pMap(uploads, (upload) => uploadView(context, upload, room !== undefined), {
        concurrency: AT_ONCE,
      }),
      total_record_count: total,
      ...(room && { free_usage: room.usage, free_quota_per_month: room.quota }),
    }
  },
})

const payable = { w_cid: z.string(), status: z.string(), is_free: z.boolean() }

/**
 * What a wallet needs to pay for an upload. `pay_amount` is the least amount, in the smallest units of the coin:
 * millionths in the embedded ledger. It is empty until the token of a chain is known.
 */
const showUpload = route({
  method: 'GET',
  path: '/api/v1/storage/source_file_upload/:id',
  access: 'wallet',
  summary: 'shows what a wallet needs to pay for an upload',
  params: { id: id('id') },
  data: z.object({
    source_file_upload_id: z.int(),
    payload_cid: z.string(),
    ...payable,
    source_file_upload: z.object({ id: z.int(), ...payable }),
    pay_amount: z.string().describe('The least amount, in the smallest unit of the token.'),
    refused_payments: z.array(z.object({ pay_tx_hash: z.string(), pay_amount: z.string(), reason: z.string() })),
  }),
  async handle({ context, caller, params }) {
    const { scheduler, payments } = context
    await scheduler.catchUp()
    const upload = await ownUpload(context, caller, params.id)
    const least = upload.isFree === 1 ? 0n : await payments.inUnits(BigInt(upload.price))
    const refused = await payments.refused(upload.wCid)
    const shown = {
      w_cid: upload.wCid,
      status: shownStatus(upload.status),
      is_free: upload.isFree === 1,
    }
    return {
      source_file_upload_id: upload.id,
      payload_cid: upload.cid,
      ...shown,
      // Clients that pay on a chain read these members here.
      source_file_upload: { id: upload.id, ...shown },
      pay_amount: String(least ?? ''),
      refused_payments: refused.map(({ hash, amount, reason }) => ({
        pay_tx_hash: hash,
        pay_amount: String(amount),
        reason,
      })),
    }
  },
})

/** Once: another NFT of the same upload is refused. */
const recordMint = route({
  method: 'POST',
  path: '/api/v1/storage/mint/info',
  access: 'wallet',
  summary: 'records the NFT of an upload',
  body: {
    source_file_upload_id: id('source_file_upload_id'),
    tx_hash: required('tx_hash'),
    token_id: required('token_id'),
    // The text of the client is kept as it is.
    mint_address: formed(
      required('mint_address'),
      'value',
      'mint_address must be 0x and 40 hexadecimal digits',
      (text) => (parseAddress(text) === undefined ? undefined : text),
    ),
  },
  data: documentSchema(documents.mint),
  async handle({ context, caller, body }) {
    const { db, seconds } = context
    const { source_file_upload_id, tx_hash: txHash, token_id: tokenId, mint_address: mintAddress } = await body()
    const { id } = await ownUpload(context, caller, source_file_upload_id)
    const mint = await db.transaction(async ({ mints }) => {
      const known = await mints.find(id)
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
  },
})

/** Files that wallets have uploaded. */
export const uploads: readonly PaymentRoute[] = [upload, showUpload, listUploads, recordMint]
