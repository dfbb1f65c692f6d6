import { createReadStream } from 'node:fs'
import type { Document, documents } from '../../../common/service-documents.js'
import { stream } from '../../http/send.js'
import { formatFil } from '../../network/fil.js'
import { withUnit } from '../../network/provider-record.js'
import { PaymentError } from '../errors.js'
import { Fields, ownUpload, type PaymentExchange } from '../exchange.js'
import { ipfsUrl } from '../ipfs/serve.js'
import type { UploadRow } from '../uploads/upload-table.js'
import type { OfflineDeal } from './deal-table.js'

/**
 * GET /storage/deal/detail/<deal_id>: a deal by its number in the network, and the upload that it is for. A number 0 is
 * for an upload without deals: what a deal would tell is empty then. Throws PaymentError.
 */
export async function showDeal(exchange: PaymentExchange): Promise<object> {
  const { context, query, path } = exchange
  const text = path.deal_id ?? ''
  if (!/^\d{1,15}$/.test(text)) throw new PaymentError('type', 'deal_id must be a valid number')
  await context.scheduler.catchUp()
  const upload = await ownUpload(exchange, new Fields(query).id('source_file_upload_id'))
  const deal = await findDeal(exchange, upload, Number(text))
  return { dao_threshold: 0, source_file_upload_deal: await detail(exchange, upload, deal) }
}

async function findDeal(
  { context }: PaymentExchange,
  upload: UploadRow,
  dealId: number,
): Promise<OfflineDeal | undefined> {
  if (dealId === 0) return undefined
  const deal = upload.car === null ? undefined : await context.db.read.deals.withDealId(upload.car, dealId)
  if (deal === undefined) throw new PaymentError('absent', `the upload ${upload.id} has no deal ${dealId}`)
  return deal
}

async function detail(
  { context }: PaymentExchange,
  upload: UploadRow,
  deal: OfflineDeal | undefined,
): Promise<Document<typeof documents.dealDetail>> {
  const { payments, networkName, network } = context
  const lock = await payments.find(upload.wCid)
  const epochs = deal === undefined ? 0 : deal.endEpoch - deal.startEpoch
  const perEpoch = BigInt(deal?.price ?? 0)
  return {
    deal_id: deal?.dealId ?? 0,
    deal_cid: deal?.dealCid ?? '',
    // The embedded network has no messages: the deal itself is on the chain.
    message_cid: deal?.dealCid ?? '',
    piece_cid: deal?.pieceCid ?? '',
    signature: '',
    signature_type: deal === undefined ? '' : 'secp256k1',
    piece_size_format: deal === undefined ? '' : withUnit(deal.pieceSize),
    client: deal?.client ?? '',
    client_collateral_format: deal === undefined ? '' : '0 FIL',
    provider: deal?.minerFid ?? '',
    provider_tag: '',
    provider_collateral_format: deal === undefined ? '' : '0 FIL',
    network_name: networkName,
    ipfs_url: await ipfsUrl(context, upload.cid),
    file_name: upload.fileName,
    w_cid: upload.wCid,
    height: deal === undefined ? 0 : network.epoch(),
    start_height: deal?.startEpoch ?? 0,
    end_height: deal?.endEpoch ?? 0,
    created_at: deal?.created ?? 0,
    locked_at: lock?.paidAt ?? 0,
    verified_deal: deal?.verified === 1,
    unlocked: deal?.status === 'Success',
    storage_price_per_epoch: Number(formatFil(perEpoch)),
    storage_price: Number(formatFil(perEpoch * BigInt(epochs))),
    verified_provider: 0,
    status: 0,
    locked_fee: String(lock?.amount ?? 0n),
  }
}

/** GET /storage/deal/log/<offline_deal_id>: the states of an offline deal in their order; none of an unknown one. */
export async function showLog({ context, path, caller }: PaymentExchange): Promise<object> {
  const text = path.offline_deal_id ?? ''
  if (!/^\d{1,15}$/.test(text)) throw new PaymentError('type', 'offline_deal_id must be a valid number')
  await context.scheduler.catchUp()
  const { deals, uploads } = context.db.read
  const deal = await deals.find(Number(text))
  const isOwn = deal !== undefined && (caller === undefined || (await uploads.hasCar(caller.address, deal.car)))
  const log = isOwn ? await deals.logOf(deal.id) : []
  return {
    offline_deal_log: log.map(
      (state): Document<typeof documents.dealLogEntry> => ({
        id: state.id,
        offline_deal_id: state.deal,
        on_chain_status: state.onChainStatus,
        on_chain_message: state.message,
        create_at: state.created,
      }),
    ),
  }
}

/** Name of the CAR of a task: its UUID. */
const CAR = /^([0-9a-f-]{36})\.car$/

/**
 * GET and HEAD of `/cars/<task>.car`: the CAR of a task, for the storage provider that got its name, which is
 * random. Throws PaymentError before the answer begins.
 */
export async function serveCar({ context, request, response, path }: PaymentExchange): Promise<undefined> {
  const [, task = ''] = CAR.exec(path.file ?? '') ?? []
  const car = await context.db.read.cars.ofTask(task)
  const size = car === undefined ? undefined : await context.carFolder.size(task)
  if (size === undefined) throw new PaymentError('absent', 'there is no such CAR')
  const type = ['Content-Type', 'application/vnd.ipld.car; version=1', 'X-Content-Type-Options', 'nosniff']
  response.writeHead(200, [...type, 'Content-Length', size])
  if (request.method === 'HEAD') response.end()
  else await stream(createReadStream(context.carFolder.path(task)), response, context.limits.bodyIdleMs)
}
