import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Endpoint } from '../../suites/sign.js'
import type { Told } from '../../support/server/many-deaths.js'
import { type Answer, insist, send, targetOf } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

export const BUCKET = 'shared'
const WRITERS = 6
/** Repeats of a name in a body: some are larger than what goes out together with its headers. */
const [SMALL, LARGE] = [3, 60_000]
const PATIENCE_MS = 120_000

interface Write {
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

/** Large enough for the price of a deal. */
export const DEALT = Buffer.alloc(150_000, 'deal')
const TERMS = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400, FastRetrieval: true }

/** Asks for the deal of an object, which a client token makes once, until there is an answer: the deal or its job. */
export async function askForDeal(server: Endpoint, key: string): Promise<Told> {
  const target = `/${BUCKET}/${key}?format=json&x-deal=`
  const headers = { 'content-type': 'application/json', 'x-amz-client-token': `token-${key}`, prefer: 'wait=60' }
  const body = Buffer.from(JSON.stringify(TERMS))
  const answer = await insist(server, `a deal of ${key}`, { method: 'POST', target, headers, body })
  return { status: answer.status, json: JSON.parse(answer.body.toString()) }
}

/** A multipart upload. Repeats each request until it succeeds. */
export async function upload(server: Endpoint, key: string, parts: readonly Buffer[]): Promise<void> {
  const target = `/${BUCKET}/${key}`
  const begun = await insist(server, `${key} begins`, { method: 'POST', target: `${target}?uploads=` })
  const id = /<UploadId>(.*?)</.exec(begun.body.toString())?.[1]
  const etags = await Promise.all(
    parts.map(async (body, i) => {
      const query = `partNumber=${i + 1}&uploadId=${id}`
      const stored = await insist(server, `part ${i + 1}`, { method: 'PUT', target: `${target}?${query}`, body })
      return stored.headers.etag
    }),
  )
  const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join('')
  const body = Buffer.from(`<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`)
  await until(`${key} ends`, async () => {
    const done = await insist(server, `${key} ends`, { method: 'POST', target: `${target}?uploadId=${id}`, body })
    // A completion may have sent 200 long before its error.
    if (done.code === 'ServiceUnavailable') return undefined
    if (!/CompleteMultipartUploadResult/.test(done.body.toString())) throw new Error(`${key}: ${done.body}`)
    return done
  })
}

export async function holds(t: Test, server: Endpoint, key: string, parts: readonly Buffer[]): Promise<void> {
  const found = await insist(server, `${key} is read`, { method: 'GET', target: `/${BUCKET}/${key}` })
  t.ok(found.body.equals(Buffer.concat(parts)), `${key} is whole`)
}

/** The model of acknowledged writes: what many writers of few keys were told, and what may be there after it. */
export class WriteScene {
  readonly #proxies: readonly Endpoint[]
  readonly #reads: boolean
  /** Every write there was, by key. */
  readonly writes = new Map<string, Write[]>()
  /** Bodies that a reader got and no client has written. */
  readonly strange: string[] = []

  /** @param options `reads`: the key is read all the time during a round, too */
  constructor(proxies: readonly Endpoint[], { reads = false } = {}) {
    this.#proxies = proxies
    this.#reads = reads
  }

  #any(): Endpoint {
    return this.#proxies[Math.floor(Math.random() * this.#proxies.length)] as Endpoint
  }

  async #write(key: string, name: string, kind: 'create' | 'mixed'): Promise<void> {
    const server = this.#any()
    const removal = kind === 'mixed' && Math.random() < 0.25
    const body = removal ? undefined : `${name} `.repeat(Math.random() < 0.3 ? LARGE : SMALL)
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
    let over = false
    const all = Promise.all([...writers, pause()]).finally(() => (over = true))
    while (this.#reads && !over) await this.#read(key, `${round}-`)
    await all
    return key
  }

  async #read(key: string, prefix: string): Promise<void> {
    await sleep(50)
    const answer = await send(this.#any(), { method: 'GET', target: targetOf(BUCKET, key) }).catch(() => undefined)
    if (answer?.status !== 200 || answer.cut) return
    const body = answer.body.toString()
    const name = body.slice(0, body.indexOf(' ') + 1)
    const written = name.startsWith(prefix) && [SMALL, LARGE].some((count) => body === name.repeat(count))
    if (!written) this.strange.push(`${key}: ${body.length} bytes that begin with ${body.slice(0, 20)}`)
  }

  /** What is there, once it is known. */
  async #look(key: string): Promise<string | undefined> {
    for (const end = performance.now() + PATIENCE_MS; ; await sleep(100)) {
      const [server] = this.#proxies as [Endpoint]
      const { status, body, cut } = await send(server, { method: 'GET', target: targetOf(BUCKET, key) })
      if (status === 200 && !cut) return body.toString()
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
