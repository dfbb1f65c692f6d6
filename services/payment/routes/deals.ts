import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { type Document, documents } from '../../../common/service-documents.js'
import { stream } from '../../http/send.js'
import { formatFil } from '../../network/fil.js'
import { withUnit } from '../../network/provider-record.js'
import { documentSchema } from '../../rest/schemas.js'
import type { PaymentContext } from '../context.js'
import type { OfflineDeal } from '../dealing/deal-table.js'
import { PaymentError } from '../errors.js'
import { formed, id } from '../fields.js'
import { ipfsUrl } from '../ipfs/serve.js'
import { ownUpload, type PaymentCall, type PaymentRoute, route } from '../route.js'
import type { UploadRow } from '../uploads/upload-table.js'

/** A number in a path. */
function number(name: string) {
  return formed(z.string(), 'type', `${name} must be a valid number`, (text) =>
    /^\d{1,15}$/.test(text) ? Number(text) : undefined,
  )
}

/** The number 0 is for an upload without deals: what a deal would tell is empty then. */
const showDeal = route({
  method: 'GET',
  path: '/api/v1/storage/deal/detail/:deal_id',
  access: 'wallet',
  summary: 'shows a deal by its number in the network, and the upload that it is for',
  params: { deal_id: number('deal_id') },
  query: { source_file_upload_id: id('source_file_upload_id') },
  data: z.object({ dao_threshold: z.int(), source_file_upload_deal: documentSchema(documents.dealDetail) }),
  async handle({ context, caller, params, query }) {
    await context.scheduler.catchUp()
    const upload = await ownUpload(context, caller, query.source_file_upload_id)
    const deal = await findDeal(context, upload, params.deal_id)
    return { dao_threshold: 0, source_file_upload_deal: await detail(context, upload, deal) }
  },
})

async function findDeal({ db }: PaymentContext, upload: UploadRow, dealId: number): Promise<OfflineDeal | undefined> {
  if (dealId === 0) return undefined
  const deal = upload.car === null ? undefined : await db.read.deals.withDealId(upload.car, dealId)
  if (deal === undefined) throw new PaymentError('absent', `the upload ${upload.id} has no deal ${dealId}`)
  return deal
}

async function detail(
  context: PaymentContext,
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

/** An unknown deal has none. */
const showLog = route({
  method: 'GET',
  path: '/api/v1/storage/deal/log/:offline_deal_id',
  access: 'wallet',
  summary: 'lists the states of an offline deal in their order',
  params: { offline_deal_id: number('offline_deal_id') },
  data: z.object({ offline_deal_log: z.array(documentSchema(documents.dealLogEntry)) }),
  async handle({ context, caller, params }) {
    await context.scheduler.catchUp()
    const { deals, uploads } = context.db.read
    const deal = await deals.find(params.offline_deal_id)
    const isOwn = deal !== undefined && (caller === undefined || (await uploads.hasCar(caller.address, deal.car)))
    const log = isOwn ? await deals.logOf(deal.id) : []
    return {
      offline_deal_log: log.map((state) => ({
        id: state.id,
        offline_deal_id: state.deal,
        on_chain_status: state.onChainStatus,
        on_chain_message: state.message,
        create_at: state.created,
      })),
    }
  },
})

/** Name of the CAR of a task: its UUID. */
const CAR = /^([0-9a-f-]{36})\.car$/

/** For the storage provider that got the name, which is random. */
const sendCar = (method: 'GET' | 'HEAD') =>
  route({
    method,
    path: '/cars/:file',
    access: 'public',
    summary: 'sends the CAR of a task',
    params: { file: z.string() },
    produces: 'application/vnd.ipld.car',
    handle: ({ context, exchange, params }) => serveCar(context, exchange, params.file),
  })

async function serveCar(
  { db, carFolder, limits }: PaymentContext,
  { request, response }: PaymentCall['exchange'],
  file: string,
): Promise<undefined> {
  const [, task = ''] = CAR.exec(file) ?? []
  const car = await db.read.cars.ofTask(task)
  const size = car === undefined ? undefined : await carFolder.size(task)
  if (size === undefined) throw new PaymentError('absent', 'there is no such CAR')
  const type = ['Content-Type', 'application/vnd.ipld.car; version=1', 'X-Content-Type-Options', 'nosniff']
  response.writeHead(200, [...type, 'Content-Length', size])
  if (request.method === 'HEAD') response.end()
  else await stream(createReadStream(carFolder.path(task)), response, limits.bodyIdleMs)
}

/** The deals for uploads. */
export const deals: readonly PaymentRoute[] = [sendCar('GET'), sendCar('HEAD'), showDeal, showLog]
