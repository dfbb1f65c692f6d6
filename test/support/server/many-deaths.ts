import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { DAY_MS } from '../../../common/time.js'
import { parseAmount } from '../../../src/plugins/parts/fil.js'
import { countRows } from '../content/rows.js'
import { type Endpoint, send } from '../sign/send.js'
import { until } from '../waiting.js'
import type { Dealgate } from './dealgate.js'

interface Asking {
  readonly json?: object
  readonly headers?: Readonly<Record<string, string>>
}

export interface Told {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look at documents of any shape
  readonly json: any
}

/** Sends a request whose answer is JSON. */
export async function ask(server: Endpoint, method: string, target: string, asking: Asking = {}): Promise<Told> {
  const { json, headers = {} } = asking
  const answer = await send(server, {
    method,
    target: `${target}${target.includes('?') ? '&' : '?'}format=json`,
    headers: { ...(json && { 'content-type': 'application/json' }), ...headers },
    ...(json && { body: Buffer.from(JSON.stringify(json)) }),
  })
  return { status: answer.status, json: JSON.parse(answer.body.toString()) }
}

/** Kills a server at random moments while it carries out orders. */
export class ManyDeaths {
  readonly #server: Dealgate
  /** How long orders take in a server that lives on, ms. Deaths are spread over it and a little more. */
  #usual: number | undefined

  constructor(server: Dealgate) {
    this.#server = server
  }

  /** Sends orders and kills the server meanwhile, once or twice; for the first orders, when they are carried out. */
  async during(place: () => Promise<unknown>): Promise<void> {
    const began = performance.now()
    const placed = Promise.allSettled([place()])
    if (this.#usual === undefined) {
      await placed
      this.#usual = performance.now() - began
    } else await this.#somewhere()
    await this.#dies()
    await placed
    // It may die once more while it finds out the outcome.
    if (randomInt(3) > 0) return
    const again = Promise.allSettled([place()])
    await this.#somewhere()
    await this.#dies()
    await again
  }

  async #somewhere(): Promise<void> {
    await sleep(randomInt(1, Math.ceil((this.#usual ?? 0) * 1.2) + 2))
  }

  async #dies(): Promise<void> {
    await this.#server.kill9()
    await this.#server.start()
  }
}

/** Sends an order until its job is complete, and returns the answer. Rejects for a refusal. */
export function completed<Result>(what: string, place: () => Promise<Told>): Promise<Result> {
  return until(`${what} is complete`, async () => {
    const { status, json } = await place()
    if (status !== 200 && status !== 202) throw new Error(`${what}: ${status} ${JSON.stringify(json)}`)
    return status === 200 && (json as Result)
  })
}

/** Attofil that count for today, as the refusal of an order beyond the cap states them. */
export function spentOf(refusal: Told['json']): bigint {
  const [, amount = ''] = /(\d+(?:\.\d+)?)(?: fil)? are spent/.exec(refusal.Message ?? '') ?? []
  const spent = parseAmount(amount)
  if (spent === undefined) throw new Error(`no amount in ${JSON.stringify(refusal)}`)
  return spent
}

/** Number of rows in a database of the embedded services. */
export function rows(server: Dealgate, file: string, what: string): number {
  return countRows(`${server.data}/services/${file}`, what)
}

/** The day, UTC, to which money counts. */
export const today = (): number => Math.floor(Date.now() / DAY_MS)
