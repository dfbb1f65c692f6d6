import { type ServiceCall, ServiceClient } from '../../../common/service-client.js'
import { parseFil } from '../../network/fil.js'
import type { Network, Provider } from '../../network/network.js'
import { pieceSizeOf } from '../../platform/units.js'
import type { PlatformLogin } from '../../platform/users.js'
import type { CarToStore, Dealer, TaskProgress } from './dealing.js'

/** Source of tasks that come from a storage payment API, by the interface of the task platform. */
const SOURCE = '4'

/** States of a deal that its provider has given up. */
const FAILURES = ['DownloadFailed', 'ImportFailed']

interface PlatformAnswer {
  readonly message?: unknown
  readonly data?: unknown
}

/**
 * Brings CARs to storage providers by private tasks on a task platform, each to the cheapest provider that takes it.
 * The first user posts them.
 */
export class PlatformDealer implements Dealer {
  readonly #platform: PlatformLogin
  readonly #network: Network
  readonly #client: ServiceClient

  constructor(platform: PlatformLogin, network: Network) {
    this.#platform = platform
    this.#network = network
    this.#client = new ServiceClient({ service: 'task platform', url: platform.url })
  }

  async post(car: CarToStore, signal: AbortSignal): Promise<boolean> {
    const providers = (await this.#network.providers()).filter(({ minerId }) => !car.tried.includes(minerId))
    const provider = cheapest(providers, car.size)
    if (provider === undefined) return false
    const fields = {
      task_name: `uploads-${car.task}`,
      is_public: '0',
      type: 'regular',
      miner_id: provider.minerId,
      duration: String(car.duration),
      fast_retrieval: 'true',
      source_id: SOURCE,
    }
    const row = [car.task, provider.minerId, car.payloadCid, car.url, car.md5, String(car.size)]
    const csv = `uuid,miner_id,payload_cid,file_source_url,md5,file_size\n${row.join(',')}\n`
    const file = { field: 'file', name: `${car.task}.csv`, type: 'text/csv', content: Buffer.from(csv) }
    const body = { kind: 'multipart', fields: Object.entries(fields), file } as const
    return (await this.#call({ method: 'POST', path: ['tasks'], body, signal })) !== undefined
  }

  async progress(task: string, signal: AbortSignal): Promise<TaskProgress> {
    const answer = await this.#call({ method: 'GET', path: ['tasks', task], signal })
    const { task: shown, deal } = (answer?.data ?? {}) as { task?: { miner_id?: unknown } | null; deal?: unknown }
    const deals = (Array.isArray(deal) ? deal : []) as readonly ({ deal_cid?: unknown; status?: unknown } | null)[]
    const hasFailed = deals.length > 0 && deals.every((one) => FAILURES.includes(String(one?.status)))
    return {
      dealCids: deals.flatMap((one) => (typeof one?.deal_cid === 'string' ? [one.deal_cid] : [])),
      failedBy: hasFailed ? String(shown?.miner_id) : undefined,
    }
  }

  /** Undefined while there is no user to post as. */
  async #call(call: ServiceCall): Promise<PlatformAnswer | undefined> {
    const token = await this.#platform.tokenFor(undefined)
    if (token === undefined) return undefined
    const { status, json } = await this.#client.send({ ...call, token })
    const answer = (json ?? {}) as PlatformAnswer
    if (status !== 200 || json === undefined) {
      throw new Error(
        `The task platform refuses ${call.method} ${call.path.join('/')}: ${String(answer.message).slice(0, 500)}`,
      )
    }
    return answer
  }
}

/** @param size of the CAR, bytes */
function cheapest(providers: readonly Provider[], size: number): Provider | undefined {
  const piece = pieceSizeOf(size)
  return providers
    .filter(({ status, offlineDealAvailable }) => status === 'Active' && offlineDealAvailable)
    .filter(({ minPieceSize, maxPieceSize }) => piece >= minPieceSize && piece <= maxPieceSize)
    .toSorted((a, b) => compare(parseFil(a.price) ?? 0n, parseFil(b.price) ?? 0n))[0]
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
