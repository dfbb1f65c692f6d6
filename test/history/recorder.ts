import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../fuzz/random.js'
import type { Endpoint } from '../suites/sign.js'
import { md5 } from '../support/content/content.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

// Records what concurrent clients ask for and are told, for test/history/checker: one operation a line.

export const BUCKET = 'history'
/** Some bodies are larger than what goes out together with its headers. */
const LARGE = { probability: 0.15, repeats: 60_000 }
/** Longest pause between two operations of a client, ms. */
const PAUSE_MS = 40
/** After a refused connection, ms: the proxy is being started. */
const DOWN_MS = 100

type Outcome = 'ok' | 'refused' | 'absent' | 'fail' | 'info'

interface Found {
  readonly value: string
  readonly mark?: string
  readonly tags?: string
  readonly tagged?: boolean
}

/** The fields are those of `operation` in checker/main.go. */
interface Operation {
  readonly client: number
  readonly key: string
  readonly op: 'put' | 'delete' | 'read' | 'head' | 'tag' | 'tags'
  readonly value?: string
  readonly tags?: string
  readonly create?: boolean
  readonly match?: string
  readonly call: number
  readonly return: number
  readonly outcome: Outcome
  readonly found?: Found
}

type Intent = Omit<Operation, 'client' | 'call' | 'return' | 'outcome' | 'found'>

/** Likelihood of each kind of operation, in percent. */
const KINDS = [
  ...Array<'put'>(18).fill('put'),
  ...Array<'create'>(12).fill('create'),
  ...Array<'replace'>(14).fill('replace'),
  ...Array<'delete'>(12).fill('delete'),
  ...Array<'read'>(16).fill('read'),
  ...Array<'head'>(8).fill('head'),
  ...Array<'complete'>(8).fill('complete'),
  ...Array<'tag'>(5).fill('tag'),
  ...Array<'tags'>(7).fill('tags'),
]

export interface Plan {
  readonly seed: number
  /** See `header` in checker/main.go. */
  readonly model: 'fenced' | 'plain'
  readonly clients: number
  readonly keys: number
  /** Operations of each client. */
  readonly each: number
}

export class Recorder {
  readonly plan: Plan
  readonly #proxies: readonly Endpoint[]
  #over = false
  readonly #start = process.hrtime.bigint()
  readonly #operations: Operation[] = []
  /** Answers that none of the operations expects. */
  readonly strange: string[] = []
  /** The value that an ETag belongs to. */
  readonly #values = new Map<string, string>()
  /** The ETag that was last seen on a key. */
  readonly #seen = new Map<string, string>()

  constructor(proxies: readonly Endpoint[], plan: Plan) {
    this.#proxies = proxies
    this.plan = plan
  }

  /** Operations so far. */
  get done(): number {
    return this.#operations.length
  }

  /** Whether all clients have done theirs. */
  get over(): boolean {
    return this.#over
  }

  get lines(): string {
    const { seed, model } = this.plan
    return `${[{ seed, model }, ...this.#operations].map((line) => JSON.stringify(line)).join('\n')}\n`
  }

  count(outcome: Outcome): number {
    return this.#operations.filter((operation) => operation.outcome === outcome).length
  }

  /** All clients, until each has done its operations; then one that reads every key. */
  async run(disturb: () => Promise<void>): Promise<void> {
    const { clients, keys, seed, each } = this.plan
    const all = Array.from({ length: clients }, async (_, client) => {
      const random = new Random(seed * 1000 + client)
      for (let n = 0; n < each; n++) {
        await this.#next(client, n, `key-${random.below(keys)}`, random)
        await sleep(random.below(PAUSE_MS))
      }
    })
    const done = Promise.all(all).finally(() => (this.#over = true))
    await Promise.all([done, disturb()])
    const [proxy] = this.#proxies as [Endpoint]
    for (let key = 0; key < keys; key++) {
      const decided = () => ['ok', 'absent'].includes(this.#operations.at(-1)?.outcome ?? '')
      for (const op of ['read', 'head', 'tags'] as const) {
        await until(`key-${key} is read`, async () => {
          await this.#look(proxy, clients, op, `key-${key}`)
          return decided()
        })
      }
    }
  }

  async #next(client: number, n: number, key: string, random: Random): Promise<void> {
    const proxy = random.of(this.#proxies)
    const kind = random.of(KINDS)
    const value = `${client}.${n}`
    const repeats = random.chance(LARGE.probability) ? LARGE.repeats : 3
    const create = random.chance(0.5)
    const target = targetOf(BUCKET, key)
    if (kind === 'read' || kind === 'head' || kind === 'tags') return this.#look(proxy, client, kind, key)
    if (kind === 'delete')
      return this.#write(client, { key, op: 'delete' }, () => send(proxy, { method: 'DELETE', target }))
    if (kind === 'tag') {
      const document = `<Tagging><TagSet><Tag><Key>v</Key><Value>${value}</Value></Tag></TagSet></Tagging>`
      return this.#write(client, { key, op: 'tag', tags: value }, () =>
        send(proxy, { method: 'PUT', target: `${target}?tagging=`, body: Buffer.from(document) }),
      )
    }
    const body = Buffer.from(`${value} `.repeat(repeats))
    const put = { key, op: 'put', value, tags: value } as const
    const attributes = { 'x-amz-meta-mark': value, 'x-amz-tagging': `v=${value}` }
    if (kind === 'complete') return this.#complete(client, random, put, body, attributes, create)
    this.#values.set(md5(body), value)
    const seen = kind === 'replace' ? this.#seen.get(key) : undefined
    const known = seen === undefined ? undefined : this.#values.get(seen)
    const condition: Record<string, string> = {}
    if (kind === 'create') condition['if-none-match'] = '*'
    if (known !== undefined) condition['if-match'] = `"${seen}"`
    const match = known === undefined ? {} : { match: known }
    await this.#write(client, { ...put, ...match, create: kind === 'create' }, () =>
      send(proxy, { method: 'PUT', target, body, headers: { ...attributes, ...condition } }),
    )
  }

  /** A multipart upload of one part, over any proxies. Only the completion is an operation. */
  async #complete(
    client: number,
    random: Random,
    put: Intent,
    body: Buffer,
    attributes: Record<string, string>,
    create: boolean,
  ): Promise<void> {
    const [first, second, third] = [0, 1, 2].map(() => random.of(this.#proxies)) as [Endpoint, Endpoint, Endpoint]
    const target = targetOf(BUCKET, put.key)
    const headers = attributes
    const begun = await send(first, { method: 'POST', target: `${target}?uploads=`, headers }).catch(noAnswer)
    const id = /<UploadId>([^<]+)</.exec(begun.body.toString())?.[1]
    if (id === undefined) return
    const part = `${target}?partNumber=1&uploadId=${id}`
    const stored = await send(second, { method: 'PUT', target: part, body }).catch(noAnswer)
    if (stored.status !== 200) return
    this.#values.set(`${md5(Buffer.from(md5(body), 'hex'))}-1`, put.value ?? '')
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${stored.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    await this.#write(client, { ...put, create }, () =>
      send(third, {
        method: 'POST',
        target: `${target}?uploadId=${id}`,
        body: Buffer.from(list),
        headers: create ? { 'if-none-match': '*' } : {},
      }),
    )
  }

  async #write(client: number, intent: Intent, request: () => Promise<Answer>): Promise<void> {
    const call = this.#now()
    const answer: Told = await request().catch(noAnswer)
    const outcome = this.#outcomeOf(intent, answer)
    this.#operations.push({ client, ...intent, call, return: this.#now(), outcome })
    const etag = answer.headers.etag?.replaceAll('"', '')
    if (outcome === 'ok' && etag !== undefined && intent.op === 'put') this.#seen.set(intent.key, etag)
    if (answer.down) await sleep(DOWN_MS)
  }

  async #look(proxy: Endpoint, client: number, op: 'read' | 'head' | 'tags', key: string): Promise<void> {
    const target = targetOf(BUCKET, key)
    const call = this.#now()
    const answer: Told = await (op === 'tags'
      ? send(proxy, { method: 'GET', target: `${target}?tagging=` })
      : send(proxy, { method: op === 'read' ? 'GET' : 'HEAD', target })
    ).catch(noAnswer)
    const end = this.#now()
    const outcome = this.#outcomeOf({ key, op }, answer)
    const found = outcome === 'ok' ? { found: this.#found(op, key, answer) } : {}
    this.#operations.push({ client, key, op, call, return: end, outcome, ...found })
    if (answer.down) await sleep(DOWN_MS)
  }

  #found(op: 'read' | 'head' | 'tags', key: string, { headers, body }: Told): Found {
    if (op === 'tags') return { value: '', tags: /<Value>([^<]*)</.exec(body.toString())?.[1] ?? '' }
    const etag = headers.etag?.replaceAll('"', '') ?? ''
    this.#seen.set(key, etag)
    const named = this.#values.get(etag)
    const mark = String(headers['x-amz-meta-mark'] ?? '')
    const tagged = Number(headers['x-amz-tagging-count'] ?? 0) > 0
    if (op === 'head') return { value: named ?? (etag.includes('-') ? '?' : `unknown ETag ${etag}`), mark, tagged }
    const text = body.toString()
    const value = text.slice(0, text.indexOf(' '))
    if (text !== `${value} `.repeat(text.length / (value.length + 1)))
      return { value: `mixed bytes ${value}`, mark, tagged }
    // The ETag of a body is never that of another one.
    return {
      value: named === undefined && etag.includes('-') ? value : named === value ? value : `${value} as ${etag}`,
      mark,
      tagged,
    }
  }

  #outcomeOf({ op, key }: Pick<Intent, 'op' | 'key'>, { status, cut, down, code, message, body }: Told): Outcome {
    if (down) return 'fail'
    if (status === 0 || cut || status >= 500) return 'info'
    if (status === 412) return 'refused'
    if (status === 404 && code !== 'NoSuchUpload' && code !== 'NoSuchBucket') return 'absent'
    if (status === 409) return 'fail'
    // A completion may have sent 200 long before its error.
    if (status === 200 && /<Error>/.test(body.toString('utf8', 0, 1024))) {
      if (code === 'PreconditionFailed') return 'refused'
      if (code !== 'ServiceUnavailable' && code !== 'SlowDown' && code !== 'InternalError')
        this.strange.push(`${op} ${key}: 200 with ${code}`)
      return 'info'
    }
    if (status === 200 || status === 204) return 'ok'
    this.strange.push(`${op} ${key}: ${status} ${code} ${message}`)
    return 'fail'
  }

  #now(): number {
    return Number(process.hrtime.bigint() - this.#start)
  }
}

interface Told extends Pick<Answer, 'status' | 'headers' | 'body' | 'cut' | 'code' | 'message'> {
  /** The request was not sent: nothing listens there. */
  readonly down?: boolean
}

function noAnswer(error: NodeJS.ErrnoException): Answer & Told {
  const nothing = { headers: {}, body: Buffer.alloc(0), code: undefined, message: undefined }
  return { ...nothing, status: 0, cut: true, down: error.code === 'ECONNREFUSED' }
}
