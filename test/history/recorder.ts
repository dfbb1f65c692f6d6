import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Endpoint } from '../suites/sign.js'
import { missing } from '../support/programs/run.js'
import { type Answer, type Headers, send } from '../support/sign/send.js'

/** One request, as `test/history/checker/main.go` reads it. */
export interface Operation {
  readonly key: string
  readonly client: number
  readonly f: 'put' | 'put-if-none' | 'put-if-match' | 'tag' | 'delete' | 'get' | 'tags'
  readonly value?: string
  readonly expected?: string
  /** Of one monotonic clock, ns. */
  readonly call: number
  /** Absent without a known outcome. */
  readonly return?: number
  readonly outcome: 'ok' | 'precondition' | 'absent' | 'unknown'
  readonly found?: string
}

const CHECKER = '.ci/history-checker/history-checker'
const SIZES = [10, 3_000, 300_000]
/** The checker has a bit for each value of a key. */
const MOST_VALUES = 60

export function withoutChecker(): false | string {
  return !existsSync(CHECKER) && missing('the checker is not built: .ci/build-go-checks needs Go 1.23 or newer')
}

export interface Verdict {
  readonly linearizable: boolean
  /** A line for each key. */
  readonly lines: string
}

/** Checks a history by Porcupine. */
export async function check(history: readonly Operation[]): Promise<Verdict> {
  const child = spawn(CHECKER, [], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.end(history.map((operation) => `${JSON.stringify(operation)}\n`).join(''))
  const ended = once(child, 'close')
  const [lines, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await ended
  if (code !== 0 && code !== 1) throw new Error(`the checker ended with ${code}: ${errors}${lines}`)
  return { linearizable: code === 0, lines }
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A body that begins with its value, and shows whether it is whole and of one write. */
function bodyOf(value: string, size: number): Buffer {
  const line = `${value} ${size}\n`
  return Buffer.from(line.repeat(Math.ceil(size / line.length)))
}

/** Clients that write and read keys at the same time, each request at any of the servers, and the history of that. */
export class Recorder {
  readonly history: Operation[] = []
  readonly #servers: readonly Endpoint[]
  readonly #bucket: string
  readonly #random: () => number
  readonly #values = new Map<string, number>()
  /** ETags by their values, as writes and reads have returned them. */
  readonly #etags = new Map<string, string>()

  constructor(servers: readonly Endpoint[], bucket: string, random: () => number) {
    this.#servers = servers
    this.#bucket = bucket
    this.#random = random
  }

  /** Lets a client do `count` operations, one after the other. */
  async client(client: number, keys: readonly string[], count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.#one(client, this.#pick(keys))
  }

  /** Reads each key, and its tag, until both are known. */
  async readAll(keys: readonly string[]): Promise<void> {
    for (const key of keys)
      for (const read of [() => this.#get(0, key), () => this.#tags(0, key)]) while (!(await read()));
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T
  }

  async #one(client: number, key: string): Promise<void> {
    const dice = this.#random()
    if (dice < 0.35) await this.#get(client, key)
    else if (dice < 0.45) await this.#tags(client, key)
    else if (dice < 0.55) await this.#delete(client, key)
    else {
      const value = this.#newValue(key)
      if (value === undefined) await this.#get(client, key)
      else if (dice < 0.65) await this.#complete(client, key, value)
      else if (dice < 0.78) await this.#put(client, key, value)
      else if (dice < 0.88) await this.#put(client, key, value, { f: 'put-if-none' })
      else await this.#putIfMatch(client, key, value)
    }
  }

  #newValue(key: string): string | undefined {
    const number = (this.#values.get(key) ?? 0) + 1
    this.#values.set(key, number)
    return number > MOST_VALUES ? undefined : `${key}.${number}`
  }

  /** Sends a request, and returns undefined where its outcome is unknown. */
  async #ask(method: string, key: string, more: { query?: string; headers?: Headers; body?: Buffer } = {}) {
    const { query, headers, body } = more
    const target = `/${this.#bucket}/${key}${query === undefined ? '' : `?${query}`}`
    const call = now()
    const answer = await send(this.#pick(this.#servers), {
      method,
      target,
      ...(headers && { headers }),
      ...(body && { body }),
    }).catch(() => undefined)
    return { call, return: now(), answer: isKnown(answer) ? answer : undefined }
  }

  async #get(client: number, key: string): Promise<boolean> {
    const { answer, ...times } = await this.#ask('GET', key)
    if (!answer) return false
    const f = 'get'
    if (answer.status === 404) this.#add({ key, client, f, ...times, outcome: 'absent', found: '' })
    else {
      const [value = '', size = ''] = answer.body.subarray(0, 100).toString().split('\n')[0]?.split(' ') ?? []
      if (answer.status !== 200 || !answer.body.equals(bodyOf(value, Number(size))))
        throw new Error(`${key}: ${answer.status} and a body of ${answer.body.length} bytes, which nothing has written`)
      if (answer.headers['x-amz-meta-value'] !== value)
        throw new Error(`${key}: the body of ${value} with the metadata of ${answer.headers['x-amz-meta-value']}`)
      this.#etags.set(value, String(answer.headers.etag))
      this.#add({ key, client, f, ...times, outcome: 'ok', found: value })
    }
    return true
  }

  async #tags(client: number, key: string): Promise<boolean> {
    const { answer, ...times } = await this.#ask('GET', key, { query: 'tagging=' })
    if (!answer) return false
    const found = /<Value>(.*?)<\/Value>/.exec(answer.body.toString())?.[1] ?? ''
    const outcome = answer.status === 404 ? 'absent' : 'ok'
    this.#add({ key, client, f: 'tags', ...times, outcome, found })
    return true
  }

  async #delete(client: number, key: string): Promise<void> {
    const { answer, call, return: end } = await this.#ask('DELETE', key)
    this.#add({ key, client, f: 'delete', call, ...(answer ? { return: end, outcome: 'ok' } : { outcome: 'unknown' }) })
  }

  async #putIfMatch(client: number, key: string, value: string): Promise<void> {
    const last = this.history.findLast((one) => one.key === key && one.f === 'get' && one.found !== '')?.found
    const etag = last === undefined ? undefined : this.#etags.get(last)
    if (last === undefined || etag === undefined) await this.#put(client, key, value)
    else await this.#put(client, key, value, { f: 'put-if-match', expected: last })
  }

  async #put(
    client: number,
    key: string,
    value: string,
    how: { readonly f: 'put' | 'put-if-none' | 'put-if-match'; readonly expected?: string } = { f: 'put' },
  ): Promise<void> {
    const condition: Headers =
      how.f === 'put-if-none'
        ? { 'if-none-match': '*' }
        : how.expected === undefined
          ? {}
          : { 'if-match': this.#etags.get(how.expected) ?? '' }
    const body = bodyOf(value, this.#pick(SIZES))
    this.#wrote(
      { key, client, value, ...how },
      await this.#ask('PUT', key, { headers: { ...attributesOf(value), ...condition }, body }),
    )
  }

  /** An upload of one part. Where it cannot begin, nothing is written. */
  async #complete(client: number, key: string, value: string): Promise<void> {
    const begun = await this.#ask('POST', key, { query: 'uploads=', headers: attributesOf(value) })
    const id = /<UploadId>(.*?)</.exec(begun.answer?.body.toString() ?? '')?.[1]
    if (id === undefined) return
    const body = bodyOf(value, this.#pick(SIZES))
    const part = await this.#ask('PUT', key, { query: `partNumber=1&uploadId=${id}`, body })
    if (part.answer?.status !== 200) return
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.answer.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    const done = await this.#ask('POST', key, { query: `uploadId=${id}`, body: Buffer.from(list) })
    this.#wrote({ key, client, value, f: 'put' }, done)
  }

  #wrote(
    write: Pick<Operation, 'key' | 'client' | 'value' | 'f' | 'expected'>,
    { call, return: end, answer }: { call: number; return: number; answer: Answer | undefined },
  ): void {
    const companion = { key: write.key, client: write.client, f: 'tag', call } as const
    const value = write.value ?? ''
    if (answer === undefined) {
      this.#add({ ...write, call, outcome: 'unknown' })
      this.#add({ ...companion, value, outcome: 'unknown' })
    } else if (answer.status === 200) {
      this.#add({ ...write, call, return: end, outcome: 'ok' })
      this.#add({ ...companion, value, return: end, outcome: 'ok' })
      const etag = answer.headers.etag ?? /<ETag>(.*?)</.exec(answer.body.toString())?.[1]?.replaceAll('&quot;', '"')
      if (etag !== undefined) this.#etags.set(value, String(etag))
    } else if (answer.status === 412) this.#add({ ...write, call, return: end, outcome: 'precondition' })
    else if (answer.status === 404 && answer.code === 'NoSuchKey')
      this.#add({ ...write, call, return: end, outcome: 'absent' })
    // A conflict with another conditional write says nothing about the key.
    else if (answer.status !== 409) throw new Error(`${write.f} of ${write.key}: ${answer.status} ${answer.code}`)
  }

  #add(operation: Operation): void {
    this.history.push(operation)
  }
}

function now(): number {
  return Math.round(performance.now() * 1e6)
}

function attributesOf(value: string): Headers {
  return { 'x-amz-meta-value': value, 'x-amz-tagging': `value=${value}` }
}

/** False for an answer that leaves open whether the request took effect: errors of the server, also late ones. */
function isKnown(answer: Answer | undefined): answer is Answer {
  if (answer === undefined || answer.cut || answer.status >= 500) return false
  return !(answer.status === 200 && answer.body.subarray(0, 200).includes('<Error>'))
}
