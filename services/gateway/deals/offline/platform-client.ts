import { z } from 'zod'
import type { ServiceAnswer, ServiceCall, ServiceClient } from '../../../../common/service-client.js'
import { type Network, NetworkError, type Provider } from '../../../network/network.js'
import { GatewayError } from '../../errors.js'
import type { TaskForm } from './task-form.js'

/** Longest call of the platform, ms: it reads every deal of a posted task. */
const MAX_CALL_MS = 120_000

const PAGE = 1000
const MAX_DEALS = 100_000

/** The platform does not take a task. */
export class TaskRefusal extends Error {
  override readonly name = 'TaskRefusal'
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The platform cannot be reached, or its answer is none: the outcome is not known. */
export class PlatformFailure extends Error {
  override readonly name = 'PlatformFailure'
}

const posted = z.object({ data: z.object({ filename: z.string() }), message: z.string().default('') })

const text = z.string().nullish()
const details = z.object({
  data: z.object({
    task: z.object({ status: z.string(), miner_id: text }),
    bid: z.array(z.object({ price: z.string(), status: z.string(), username: z.string() })).default([]),
    deal: z.array(z.object({ id: z.number(), deal_cid: text, file_source_url: text, status: z.string(), note: text })),
    total_deal_count: z.number(),
  }),
})

export type TaskDetails = z.infer<typeof details>['data']

export class PlatformClient {
  readonly #client: ServiceClient
  readonly #token: string
  readonly #signal: AbortSignal

  constructor(client: ServiceClient, token: string, signal: AbortSignal) {
    this.#client = client
    this.#token = token
    this.#signal = signal
  }

  /**
   * Posts a task; a repeated call with the same UUID is the same task. Throws TaskRefusal and PlatformFailure.
   * @param csv its deals
   */
  async post(form: TaskForm, uuid: string, csv: string): Promise<{ fileName: string; message: string }> {
    const fields = Object.entries({ ...form, uuid })
    const file = { field: 'file', name: `${uuid}.csv`, type: 'text/csv', content: Buffer.from(csv) }
    const { status, json } = await this.#call({
      method: 'POST',
      path: ['tasks'],
      body: { kind: 'multipart', fields, file },
    })
    // A redirect is no refusal: the platform may have the task, which a repeated call with its UUID shows.
    const refused = status >= 400 && status < 500 && status !== 429
    if (status !== 200 && !refused) throw new PlatformFailure(messageOf(json, status))
    if (refused) throw new TaskRefusal(status, messageOf(json, status))
    const { data, message } = parsed(posted, json)
    return { fileName: data.filename, message }
  }

  /** Undefined when the platform has no such task. Throws PlatformFailure. */
  async task(uuid: string): Promise<TaskDetails | undefined> {
    const first = await this.#page(uuid, 0)
    if (first === undefined) return undefined
    const deal = [...first.deal]
    while (deal.length < Math.min(first.total_deal_count, MAX_DEALS)) {
      const more = (await this.#page(uuid, deal.length))?.deal ?? []
      if (more.length === 0) break
      deal.push(...more)
    }
    return { ...first, deal }
  }

  async #page(uuid: string, offset: number): Promise<TaskDetails | undefined> {
    const { status, json } = await this.#call({ method: 'GET', path: ['tasks', uuid], query: { limit: PAGE, offset } })
    if (status === 404) return undefined
    if (status !== 200) throw new PlatformFailure(messageOf(json, status))
    return parsed(details, json).data
  }

  async #call(call: ServiceCall): Promise<ServiceAnswer> {
    const bounds = { token: this.#token, signal: this.#signal, timeoutMs: MAX_CALL_MS }
    const answer = await this.#client.send({ ...call, ...bounds }).catch((cause) => {
      this.#signal.throwIfAborted()
      throw new PlatformFailure('The task platform cannot be reached, or its answer is too long.', { cause })
    })
    if (answer.json === undefined) throw new PlatformFailure('The task platform does not answer in JSON.')
    return answer
  }
}

function parsed<T>(schema: z.ZodType<T>, json: unknown): T {
  const result = schema.safeParse(json)
  if (!result.success) throw new PlatformFailure('The task platform answers in another form than the interface has.')
  return result.data
}

function messageOf(json: unknown, status: number): string {
  const { message } = (json ?? {}) as { message?: unknown }
  return typeof message === 'string' && message !== '' ? message : `The task platform answers with status ${status}.`
}

/** The storage providers of a network. Throws GatewayError NetworkUnavailable. */
export async function providersOf(network: Network): Promise<readonly Provider[]> {
  try {
    return await network.providers()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new GatewayError('NetworkUnavailable', { value: error.message }, error)
  }
}
