import { JSON_TYPE, replyJson } from '../../http/reply.js'
import type { GatewayContext } from '../context.js'
import type { OfflineDealService } from '../deals/offline/offline-deal-service.js'
import type { OfflineCar, OfflineTask } from '../deals/offline/offline-tasks.js'
import { readForm } from '../deals/offline/task-form.js'
import { GatewayError } from '../errors.js'
import { decode, type GatewayExchange, sendParts } from '../exchange.js'
import { mustOwnBucket } from '../store/key-rules.js'
import { dealEndpoint, type Outcome, type SignedExchange, TextMembers } from './deal-envelope.js'
import { readToken } from './deals.js'

const MAX_KEY_BYTES = 1024
const PAGE = 500

/** POST offlinedeals/<bucket>: packs the bucket and posts a task that has its CARs stored. */
export function makeTask(exchange: GatewayExchange, rest: string): Promise<void> | void {
  return exchange.context.offlineDealService === undefined ? notHere(exchange) : packAndPost(exchange, rest)
}

function notHere(exchange: GatewayExchange): void {
  const { features, platform } = exchange.context
  const reason =
    features.has('deal-status') && platform?.login === undefined
      ? ': it needs a task platform beside it, or --platform-url with the keys of a user there.'
      : ' by this gateway.'
  const message = `Backing a bucket up as an offline deal is not implemented${reason}`
  replyJson(exchange, 501, { status: 'fail', message })
}

const packAndPost = dealEndpoint({
  nothing: (rest) => ({
    bucket_name: rest,
    deals: { data: { taskname: '', filename: '', uuid: '' }, status: 'fail', message: '' },
  }),
  async run(exchange, rest) {
    const { context, account } = exchange
    const service = offlineServiceOf(exchange)
    const bucketName = decode(rest).toString()
    const token = readToken(exchange)
    const isNew = token === undefined || !(await service.isRepeated(account.id, token))
    if (isNew) await mustOwnBucket(context, account, bucketName)
    const members = await TextMembers.read(exchange)
    const form = readForm((name) => members.get(name))
    const prefix = Buffer.from(members.get('Prefix'))
    if (prefix.length > MAX_KEY_BYTES) throw new GatewayError('KeyTooLong')
    const maxPieceBytes = readBytes(members, 'Max_Piece_Bytes')
    return made(await service.make({ account: account.id, bucketName, prefix, form, token, maxPieceBytes }))
  },
})

/** A whole number; undefined when the member is absent. Throws GatewayError InvalidBody. */
function readBytes(members: TextMembers, name: string): number | undefined {
  const text = members.get(name)
  if (text === '') return undefined
  if (!/^\d{1,15}$/.test(text)) throw new GatewayError('InvalidBody', { value: `${name} must be a whole number.` })
  return Number(text)
}

function made({ bucketName, form, fileName, message, uuid }: OfflineTask): Outcome {
  const text = message ?? ''
  const data = { taskname: form.task_name ?? '', filename: fileName ?? '', uuid }
  return { data: { bucket_name: bucketName, deals: { data, status: 'success', message: text } }, message: text }
}

/** GET offlinedeals/<bucket>?uuid=: the task of the bucket with this UUID, and each of its deals. */
export const showTask = dealEndpoint({
  nothing: () => null,
  async run(exchange, rest) {
    const { context, account, target } = exchange
    const service = offlineServiceOf(exchange)
    const bucketName = decode(rest).toString()
    await mustOwnBucket(context, account, bucketName)
    const task = await service.show(account.id, (target.parameters.get('uuid') ?? '').toLowerCase())
    if (task?.bucketName !== bucketName) throw new GatewayError('NoSuchTask')
    await sendParts(exchange, [...JSON_TYPE], write(context, service, task))
    return undefined
  },
})

/** Streams page by page, so that memory does not grow with the number of objects. */
async function* write(context: GatewayContext, service: OfflineDealService, task: OfflineTask): AsyncGenerator<string> {
  const { uuid, taskStatus } = task
  yield `{"data":{"uuid":${JSON.stringify(uuid)},"task_status":${JSON.stringify(taskStatus ?? '')},"deals":[`
  for (const [n, car] of (await context.db.read.offlineTasks.cars(task.id)).entries()) {
    yield `${n === 0 ? '' : ','}${JSON.stringify(await dealOf(context, service, car)).slice(0, -1)},"objects":[`
    yield* keysOf(context, car)
    yield ']}'
  }
  yield ']},"status":"success","message":""}'
}

async function* keysOf({ db }: GatewayContext, { deal }: OfflineCar): AsyncGenerator<string> {
  let comma = ''
  for await (const page of db.read.manifest.pages(deal, PAGE)) {
    yield comma + page.map(({ key }) => JSON.stringify(key.toString())).join(',')
    comma = ','
  }
}

async function dealOf(context: GatewayContext, service: OfflineDealService, car: OfflineCar): Promise<object> {
  const { record } = await context.db.read.deals.mustFind(car.deal)
  return {
    deal_id: car.platformDeal,
    deal_cid: record?.dealCid ?? null,
    status: car.status ?? 'Created',
    note: car.note ?? '',
    miner_fid: record?.terms.minerId ?? car.minerId,
    file_source_url: service.urlOf(car),
    payload_cid: car.dataCid,
    piece_cid: car.pieceCid,
    piece_size: car.pieceSize,
    car_size: car.carSize,
    start_epoch: record?.startEpoch ?? null,
    end_epoch: record?.endEpoch ?? null,
  }
}

function offlineServiceOf({ context }: SignedExchange): OfflineDealService {
  if (context.offlineDealService === undefined) throw new GatewayError('NotFound')
  return context.offlineDealService
}
