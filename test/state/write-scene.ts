import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoint } from '../suites/sign.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'

/** The bucket of all writes. */
export const BUCKET = 'shared'
const WRITERS = 6
const PATIENCE_MS = 120_000

export interface Write {
  /** undefined removes. */
  readonly body: string | undefined
  readonly conditional: boolean
  /** By `performance.now()`, of the client. */
  readonly from: number
  readonly until: number
  /** The answer, or 0 when there was none. */
  readonly status: number
}

export const acknowledged = ({ status }: Write) => status === 200 || status === 204

/** The model of acknowledged writes: what many writers of few keys were told, and what may be there after it. */
export class WriteScene {
  readonly #proxies: readonly Endpoint[]
  /** Every write there was, by key. */
  readonly writes = new Map<string, Write[]>()

  constructor(proxies: readonly Endpoint[]) {
    this.#proxies = proxies
  }

  async #write(key: string, name: string, kind: 'create' | 'mixed'): Promise<void> {
    const server = this.#proxies[Math.floor(Math.random() * this.#proxies.length)] as Endpoint
    const removal = kind === 'mixed' && Math.random() < 0.25
    const body = removal ? undefined : `${name} `.repeat(Math.random() < 0.3 ? 60_000 : 3)
    const from = performance.now()
    const answer = await send(server, {
      method: removal ? 'DELETE' : 'PUT',
      target: targetOf(BUCKET, key),
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
      headers: kind === 'create' ? { 'if-none-match': '*' } : {},
    }).catch((): Pick<Answer, 'status'> => ({ status: 0 }))
    const write = { body, conditional: kind === 'create', from, until: performance.now(), status: answer.status }
    this.writes.get(key)?.push(write)
  }

  /** Writers to one key while `pause` stops something. */
  async round(round: number, pause: () => Promise<void>): Promise<string> {
    const kind = round % 2 === 0 ? 'create' : 'mixed'
    const key = `${kind}-${round}`
    this.writes.set(key, [])
    const writers = Array.from({ length: WRITERS }, async (_, i) => {
      for (const turn of ['a', 'b', 'c']) {
        await sleep(Math.random() * 300)
        await this.#write(key, `${round}-${i}-${turn}`, kind)
      }
    })
    await Promise.all([...writers, pause()])
    return key
  }

  /** What is there, once it is known. */
  async #look(key: string): Promise<string | undefined> {
    for (const end = performance.now() + PATIENCE_MS; ; await sleep(100)) {
      const [server] = this.#proxies as [Endpoint]
      const { status, body } = await send(server, { method: 'GET', target: targetOf(BUCKET, key) })
      if (status === 200) return body.toString()
      if (status === 404) return undefined
      if (performance.now() > end) throw new Error(`${key}: ${status}`)
    }
  }

  /** Undefined when all is well. */
  async whatIsWrong(key: string): Promise<string | undefined> {
    const writes = this.writes.get(key) ?? []
    const now = await this.#look(key)
    const made = writes.filter((write) => write.conditional && acknowledged(write))
    if (made.length > 1) return `${made.length} writers have created it`
    if (made.length === 1)
      return made[0]?.body === now ? undefined : 'another object is in the place of the created one'
    const candidates = writes.filter(({ body, status }) => body === now && status !== 412)
    if (now === undefined && !writes.some((write) => acknowledged(write) && write.body !== undefined)) return undefined
    if (candidates.length === 0) return `no client has written ${now?.slice(0, 20)}`
    // It may be any write that no acknowledged one came after.
    const standing = candidates.filter(
      (candidate) => !writes.some((later) => acknowledged(later) && later.from > candidate.until),
    )
    return standing.length > 0 ? undefined : `an acknowledged write was undone by ${now?.slice(0, 20) ?? 'a removal'}`
  }
}
