import { setTimeout as sleep } from 'node:timers/promises'
import { contentMd5 } from '../../support/content/content.js'
import { type Answer, type Endpoint, insist, type Sending, send, targetOf } from '../../support/sign/send.js'
import type { Found, KeyHistory, Locking, Removal, Span, Write } from './version-model.js'

/** A bucket with object lock, and one whose versioning is suspended and enabled again. */
export const LOCKED = 'locked'
export const SWITCHED = 'switched'
const CLIENTS = 4
/** Operations of a client in a round: at least and at most. */
const EACH = { least: 8, most: 30 }
const PAUSE_MS = 60
/** After a refused connection, ms: the proxy is being started. */
const DOWN_MS = 100
/** Repeats of a name in a body: in the index, in a file, and sent after its headers. */
const REPEATS = [3, 3, 3, 3, 3, 5000, 5000, 60_000]
const RETAINED = { mode: 'GOVERNANCE', until: '2100-01-01T00:00:00Z' } as const

interface Place {
  readonly bucket: string
  readonly key: string
}

/** How a request ended. */
interface Told {
  readonly outcome: 'done' | 'refused' | 'unknown'
  readonly answer: Answer | undefined
  readonly from: number
  readonly until: number
}

/** Clients of several proxies that write, delete, lock and read versions, and what each was told. */
export class VersionScene {
  readonly #proxies: readonly Endpoint[]
  readonly #histories = new Map<string, KeyHistory>()
  #names = 0
  /** Answers that nothing explains. */
  readonly strange: string[] = []

  constructor(proxies: readonly Endpoint[]) {
    this.#proxies = proxies
  }

  async makeBuckets(): Promise<void> {
    const [proxy] = this.#proxies as [Endpoint]
    const headers = { 'x-amz-bucket-object-lock-enabled': 'true' }
    await insist(proxy, LOCKED, { method: 'PUT', target: `/${LOCKED}`, headers })
    await insist(proxy, SWITCHED, { method: 'PUT', target: `/${SWITCHED}` })
    await insist(proxy, 'versioning', versioning('Enabled'))
  }

  /** What was told so far, by the place of the key. */
  get histories(): ReadonlyMap<string, KeyHistory> {
    return this.#histories
  }

  historyOf({ bucket, key }: Place): KeyHistory {
    const place = `${bucket}/${key}`
    const known = this.#histories.get(place)
    if (known !== undefined) return known
    const history = { writes: [], removals: [], lockings: [], suspends: bucket === SWITCHED }
    this.#histories.set(place, history)
    return history
  }

  /** All clients at a few keys, at least until `fault` is over; a last write of each key settles what was under way. */
  async round(places: readonly Place[], fault: () => Promise<void>): Promise<void> {
    let over = false
    const failing = fault().finally(() => (over = true))
    const clients = Array.from({ length: CLIENTS }, async () => {
      for (let n = 0; n < EACH.least || (!over && n < EACH.most); n++) {
        await this.#act(oneOf(places), oneOf(KINDS))
        await sleep(Math.random() * PAUSE_MS)
      }
    })
    await Promise.all([...clients, failing])
    await Promise.all(places.map((place) => this.#settle(place)))
  }

  async #settle(place: Place): Promise<void> {
    while ((await this.#put(place)) !== 'done') await sleep(DOWN_MS)
  }

  async #act(place: Place, kind: (typeof KINDS)[number]): Promise<unknown> {
    switch (kind) {
      case 'put':
        return this.#put(place)
      case 'put locked':
        return place.bucket === LOCKED && this.#put(place, oneOf(['hold', 'GOVERNANCE', 'COMPLIANCE']))
      case 'complete':
        return this.#complete(place)
      case 'copy':
        return this.#copy(place)
      case 'delete':
        return this.#delete(place)
      case 'delete by id':
        return this.#remove(place)
      case 'lock':
        return place.bucket === LOCKED && this.#lock(place)
      case 'switch':
        return this.#switch()
      case 'read':
        return this.#read(place)
    }
  }

  async #put(place: Place, lock?: Locking['lock']): Promise<Told['outcome']> {
    const { name, body } = this.#next()
    const headers = { ...named(name), ...(lock && { ...lockHeaders(lock), ...contentMd5(body) }) }
    return this.#write(place, { name, body }, { method: 'PUT', headers, body: Buffer.from(body) }, lock)
  }

  async #copy(place: Place): Promise<void> {
    // The version `null` may be another one by then.
    const isLasting = ({ body, versionId }: Write) => body !== undefined && versionId !== 'null'
    const source = oneOf(this.#known(place).filter(isLasting))
    if (source === undefined) return
    const { name } = this.#next()
    const from = targetOf(place.bucket, place.key, `versionId=${source.versionId}`)
    const headers = { ...named(name), 'x-amz-copy-source': from, 'x-amz-metadata-directive': 'REPLACE' }
    await this.#write(place, { name, body: source.body }, { method: 'PUT', headers })
  }

  /** A completion is repeated while its outcome is unknown, and makes one version all the same. */
  async #complete(place: Place): Promise<void> {
    const { name, body } = this.#next()
    const target = targetOf(place.bucket, place.key)
    const begun = await this.#ask({ method: 'POST', target: `${target}?uploads=`, headers: named(name) })
    const id = /<UploadId>([^<]+)</.exec(begun.answer?.body.toString() ?? '')?.[1]
    if (id === undefined) return
    const part = { method: 'PUT', target: `${target}?partNumber=1&uploadId=${id}`, body: Buffer.from(body) }
    const { outcome, answer } = await this.#ask(part)
    if (outcome !== 'done') return
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${answer?.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    const sending = { method: 'POST', query: `uploadId=${id}`, body: Buffer.from(list) }
    await this.#write(place, { name, body }, sending, undefined, 3)
  }

  async #delete(place: Place): Promise<void> {
    await this.#write(place, { name: `delete ${this.#next().name}`, body: undefined }, { method: 'DELETE' })
  }

  async #write(
    place: Place,
    written: Pick<Write, 'name' | 'body'>,
    { query = '', ...sending }: Omit<Sending, 'target'> & { readonly query?: string },
    lock?: Locking['lock'],
    attempts = 1,
  ): Promise<Told['outcome']> {
    const { writes, lockings } = this.historyOf(place)
    const target = targetOf(place.bucket, place.key, query)
    let told = await this.#ask({ ...sending, target })
    const { from } = told
    for (let n = 1; n < attempts && told.outcome === 'unknown'; n++) told = await this.#ask({ ...sending, target })
    const { outcome, until, answer } = told
    if (outcome === 'refused') {
      // The version to copy may be gone.
      if (!/NoSuch(Version|Key)/.test(String(answer?.code))) this.#wonder(place, sending.method, told)
      return outcome
    }
    const versionId = outcome === 'done' ? textOf(answer?.headers['x-amz-version-id']) : undefined
    writes.push({ ...written, from, until, outcome, versionId })
    if (lock !== undefined && versionId !== undefined)
      lockings.push({ from, until, outcome, versionId, lock, on: true })
    return outcome
  }

  async #remove(place: Place): Promise<void> {
    const { removals, lockings } = this.historyOf(place)
    const versionId = oneOf(this.#known(place))?.versionId
    if (versionId === undefined) return
    const bypass = Math.random() < 0.3
    const headers: Record<string, string> = bypass ? { 'x-amz-bypass-governance-retention': 'true' } : {}
    const target = targetOf(place.bucket, place.key, `versionId=${versionId}`)
    const told = await this.#change<Removal>(removals, { versionId, bypass }, { method: 'DELETE', target, headers })
    const isExplained = lockings.some((locking) => locking.versionId === versionId)
    if (told.outcome === 'refused' && !isExplained) this.#wonder(place, 'DELETE by id', told)
  }

  async #lock(place: Place): Promise<void> {
    const { lockings, removals } = this.historyOf(place)
    const versionId = oneOf(this.#known(place).filter(({ body }) => body !== undefined))?.versionId
    if (versionId === undefined) return
    const locked = (lock: Locking['lock']) => (one: Locking) => one.versionId === versionId && one.lock === lock
    // One in COMPLIANCE mode becomes none in GOVERNANCE mode.
    const lock = lockings.some(locked('COMPLIANCE')) ? 'hold' : oneOf(['hold', 'GOVERNANCE'] as const)
    const on = lock !== 'hold' || Math.random() < 0.6
    const [query, document] =
      lock === 'hold'
        ? ['legal-hold', `<LegalHold><Status>${on ? 'ON' : 'OFF'}</Status></LegalHold>`]
        : [
            'retention',
            `<Retention><Mode>${lock}</Mode><RetainUntilDate>${RETAINED.until}</RetainUntilDate></Retention>`,
          ]
    const target = targetOf(place.bucket, place.key, `${query}=&versionId=${versionId}`)
    const sending = { method: 'PUT', target, body: Buffer.from(document), headers: contentMd5(document) }
    const told = await this.#change<Locking>(lockings, { versionId, lock, on }, sending)
    const isExplained = removals.some((removal) => removal.versionId === versionId)
    if (told.outcome === 'refused' && !isExplained) this.#wonder(place, query, told)
  }

  /** Notes the change while it is under way, too: it explains what others are told. */
  async #change<C extends Span>(all: C[], change: Omit<C, keyof Span>, sending: Sending): Promise<Told> {
    const begun = { ...change, from: performance.now(), until: Infinity, outcome: 'unknown' } as C
    all.push(begun)
    const told = await this.#ask(sending)
    all.splice(all.indexOf(begun), 1)
    const { outcome, from, until } = told
    if (outcome !== 'refused') all.push({ ...change, from, until, outcome } as C)
    return told
  }

  async #switch(): Promise<void> {
    const told = await this.#ask(versioning(oneOf(['Enabled', 'Suspended'])))
    if (told.outcome === 'refused') this.#wonder({ bucket: SWITCHED, key: '' }, 'versioning', told)
  }

  async #read(place: Place): Promise<void> {
    const { answer, outcome } = await this.#ask({ method: 'GET', target: targetOf(place.bucket, place.key) })
    if (answer === undefined || outcome !== 'done') return
    const body = answer.body.toString()
    const name = body.slice(0, body.indexOf(' ') + 1)
    if (!REPEATS.some((count) => body === name.repeat(count))) this.strange.push(`${place.key}: ${body.slice(0, 40)}`)
  }

  /** Versions and delete markers whose ids are known. */
  #known(place: Place): Write[] {
    return this.historyOf(place).writes.filter(({ versionId }) => versionId !== undefined)
  }

  #next(): { readonly name: string; readonly body: string } {
    const name = `w${this.#names++}`
    return { name, body: `${name} `.repeat(oneOf(REPEATS)) }
  }

  async #ask(sending: Sending): Promise<Told> {
    const from = performance.now()
    const answer = await send(oneOf(this.#proxies), sending).catch(() => undefined)
    const until = performance.now()
    if (answer === undefined) await sleep(DOWN_MS)
    // A completion or a copy may have sent 200 long before its error.
    const isUnknown = answer === undefined || answer.cut || answer.status >= 500 || (answer.status < 300 && answer.code)
    return { outcome: isUnknown ? 'unknown' : (answer?.status ?? 0) < 300 ? 'done' : 'refused', answer, from, until }
  }

  #wonder({ bucket, key }: Place, what: string, { answer }: Told): void {
    this.strange.push(`${what} ${bucket}/${key}: ${answer?.status} ${answer?.code} ${answer?.message}`)
  }
}

const KINDS = [
  ...Array<'put'>(26).fill('put'),
  ...Array<'put locked'>(8).fill('put locked'),
  ...Array<'complete'>(8).fill('complete'),
  ...Array<'copy'>(10).fill('copy'),
  ...Array<'delete'>(12).fill('delete'),
  ...Array<'delete by id'>(16).fill('delete by id'),
  ...Array<'lock'>(8).fill('lock'),
  ...Array<'switch'>(4).fill('switch'),
  ...Array<'read'>(8).fill('read'),
]

/** The entries of a key from the newest, each read by its id, and how GET without an id differs from the first. */
export async function lookAt(server: Endpoint, { bucket, key }: Place): Promise<{ found: Found[]; wrong: string[] }> {
  const wrong: string[] = []
  const found: Found[] = []
  for (const { versionId, isLatest, isMarker } of await listed(server, { bucket, key })) {
    const entry = await read(server, { bucket, key }, versionId)
    if (entry.status !== (isMarker ? 405 : 200) || entry.versionId !== versionId)
      wrong.push(`${versionId} is listed, and its GET is ${entry.status} of ${entry.versionId}`)
    found.push({ versionId, isLatest, name: entry.name, body: isMarker ? undefined : entry.body })
  }
  const now = await read(server, { bucket, key })
  const [first] = found
  const status = first?.body === undefined ? 404 : 200
  const same = now.versionId === first?.versionId && (first?.body === undefined || now.body === first.body)
  if (now.status !== status || !same) wrong.push(`the current one is ${first?.versionId}, GET: ${JSON.stringify(now)}`)
  return { found, wrong }
}

/** The entries of a key from the newest. */
export async function listed(server: Endpoint, { bucket, key }: Place) {
  const { body } = await insist(server, 'versions', { method: 'GET', target: `/${bucket}?versions=&prefix=${key}` })
  const text = body.toString()
  if (!text.includes('<IsTruncated>false</IsTruncated>')) throw new Error('more versions than a page has')
  return [...text.matchAll(/<(Version|DeleteMarker)>(.*?)<\/\1>/gs)].map(([, kind, entry = '']) => ({
    versionId: /<VersionId>(.*?)</.exec(entry)?.[1] ?? '',
    isLatest: entry.includes('<IsLatest>true</IsLatest>'),
    isMarker: kind === 'DeleteMarker',
  }))
}

async function read(server: Endpoint, { bucket, key }: Place, versionId?: string) {
  const target = targetOf(bucket, key, versionId === undefined ? '' : `versionId=${versionId}`)
  for (;;) {
    const answer = await send(server, { method: 'GET', target }).catch(() => undefined)
    if (answer === undefined || answer.cut || answer.status >= 500) continue
    const { status, headers, body } = answer
    return {
      status,
      versionId: textOf(headers['x-amz-version-id']),
      name: textOf(headers['x-amz-meta-name']) ?? '',
      body: body.toString(),
    }
  }
}

function versioning(status: string): Sending {
  const document = `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`
  return {
    ...{ method: 'PUT', target: `/${SWITCHED}?versioning=`, headers: contentMd5(document) },
    body: Buffer.from(document),
  }
}

const named = (name: string) => ({ 'x-amz-meta-name': name })

function lockHeaders(lock: Locking['lock']): Record<string, string> {
  if (lock === 'hold') return { 'x-amz-object-lock-legal-hold': 'ON' }
  return { 'x-amz-object-lock-mode': lock, 'x-amz-object-lock-retain-until-date': RETAINED.until }
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined
}

function oneOf<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T
}
