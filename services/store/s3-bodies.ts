import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from '@node-rs/crc32'
import pLimit from 'p-limit'
import { childText, type XmlNode } from '../../common/xml.js'
import type { ServicesLog } from '../log.js'
import {
  type Bodies,
  BodyError,
  type Compared,
  isNameless,
  type NewBody,
  type OpenBody,
  type StoredBody,
  type WithRow,
} from './bodies.js'
import type { S3Claim } from './s3-claim.js'
import { bare, isPassing, type S3Client, S3Refusal, unavailable } from './s3-client.js'
import { markOf, NewS3Body, parseMark, UploadMemory } from './s3-upload.js'

interface S3BodiesOptions {
  /** What all keys begin with, up to a slash: of this index alone. */
  readonly folder: string
  /** Most memory for bodies that are being written, bytes. */
  readonly roomBytes: number
  /** Longest wait for that memory, ms. */
  readonly maxWaitMs: number
  /** Age from which a body without a row is removed, ms. */
  readonly orphanMs: number
  /** True when other processes use the folder, which do not know what this one writes. */
  readonly shared?: boolean
}

/** Says what may be done with the folder. */
type BodyClaim = Pick<S3Claim, 'proven' | 'mayWrite' | 'mayRemove'>

/** Part of that age in which a body must get its row, if others may remove it then: clocks differ. */
const FRESH = 11 / 12

const MAX_REMOVALS = 8

/** Removals that may wait; the sweep does those beyond. */
const MAX_WAITING = 10_000

/** Times that a body is asked for again while nothing of it comes. */
const MAX_RESUMES = 8

/** Time that removals under way get when the gateway stops, ms. The sweep does the others. */
const STOP_MS = 2000

/** Names of bodies; the sweep leaves everything else alone. */
const NAME = /^([0-9a-f]{16})[0-9a-f]{16}(?:\.[0-9a-f]{16})?$/

/**
 * Bodies as objects of an S3 store. A request that has timed out may still take effect: each attempt to write a body
 * has a name of its own, and no name is used again. The mark of a body is the ETag that the store gave it, which is a
 * hint, and the CRC-32 of its bytes, which a reader of the whole body compares before it gives the last of them. Where
 * a caller compares each chunk, neither counts: a store may answer another ETag after a migration or an encryption.
 */
export class S3Bodies implements Bodies {
  readonly #client: S3Client
  readonly #log: ServicesLog
  readonly #options: S3BodiesOptions
  readonly #claim: BodyClaim
  readonly #uploadMemory: UploadMemory
  /** Names that have no row yet. */
  readonly #underway = new Set<string>()
  /** Number of readers, by name. */
  readonly #readers = new Map<string, number>()
  /** Names to remove once the last reader has gone. */
  readonly #doomed = new Set<string>()
  readonly #removals = new Set<Promise<void>>()
  readonly #removalSlots = pLimit(MAX_REMOVALS)
  /** True after removals have been left to the sweep. */
  #left = false
  /** True after a removal has failed, until one succeeds. */
  #failing = false
  /** Of the last sweep. */
  #withRow: WithRow | undefined
  #sweeping: Promise<number> | undefined
  #stopping = false

  constructor(client: S3Client, claim: BodyClaim, options: S3BodiesOptions, log: ServicesLog) {
    this.#client = client
    this.#claim = claim
    this.#options = options
    this.#log = log
    this.#uploadMemory = new UploadMemory(options.roomBytes, options.maxWaitMs)
  }

  async create(name: string, size: number): Promise<NewBody> {
    await this.#claim.mayWrite().catch(asUnavailable)
    const hold = await this.#uploadMemory.begin(size)
    const context = {
      client: this.#client,
      underway: this.#underway,
      keyOf: (name: string) => this.#key(name),
      remove: (name: string, uploadId?: string) => this.#remove(name, uploadId),
      freshMs: this.#options.shared ? this.#options.orphanMs * FRESH : undefined,
    }
    return new NewS3Body(context, name, size, hold)
  }

  committed({ name }: StoredBody): void {
    this.#underway.delete(name)
  }

  /** The sweeps remove old bodies only, whose transactions have long ended. */
  leave({ name }: StoredBody): void {
    this.#underway.delete(name)
  }

  async open(body: StoredBody, compared: Compared = 'mark'): Promise<OpenBody> {
    const { name } = body
    await this.#claim.proven().catch(asUnavailable)
    this.#readers.set(name, (this.#readers.get(name) ?? 0) + 1)
    const begun: IncomingMessage[] = []
    let open = true
    return {
      stream: async (first, last) => {
        if (last < first) return none()
        const begin = (from: number) => this.#begin(body, from, last, compared === 'mark')
        const answer = await begin(first)
        begun.push(answer)
        return this.#chunks(body, first, last, answer, begin, compared)
      },
      close: async () => {
        if (!open) return
        open = false
        for (const answer of begun) if (!answer.readableEnded) answer.destroy()
        this.#closed(name)
      },
    }
  }

  /** The mark of a body as the store has it now. Throws BodyError. */
  async markOf(body: StoredBody): Promise<string> {
    const asked = { method: 'HEAD', key: this.#key(body.name) } as const
    const { head } = await this.#client.retry((_, signal) => this.#client.ask(asked, signal)).catch(asUnavailable)
    return markOf(bare(head.headers.etag), parseMark(body).crc)
  }

  discard({ name }: StoredBody): void {
    if (this.#readers.has(name)) this.#doomed.add(name)
    else this.#remove(name)
  }

  sweep(withRow: WithRow): Promise<number> {
    this.#withRow = withRow
    this.#sweeping ??= this.#sweepAll(withRow).finally(() => {
      this.#sweeping = undefined
    })
    return this.#sweeping
  }

  async close(): Promise<void> {
    this.#stopping = true
    await Promise.race([Promise.all(this.#removals), sleep(STOP_MS, undefined, { ref: false })])
    this.#client.close()
    await Promise.all([...this.#removals, this.#sweeping?.catch(() => {})])
  }

  #key(name: string): string {
    return `${this.#options.folder}${name.slice(-2)}/${name}`
  }

  #closed(name: string): void {
    const left = (this.#readers.get(name) ?? 1) - 1
    if (left > 0) this.#readers.set(name, left)
    else {
      this.#readers.delete(name)
      if (this.#doomed.delete(name)) this.#remove(name)
    }
  }

  /**
   * Removes a body, or an upload of it that has not been completed. What cannot be removed now is left to the sweep.
   */
  #remove(name: string, uploadId?: string): void {
    if (this.#removalSlots.pendingCount >= MAX_WAITING) {
      this.#underway.delete(name)
      this.#left = true
      return
    }
    const removal = this.#removalSlots(() => (this.#stopping ? false : this.#delete(name, uploadId)))
      .then(
        (removed) => {
          if (removed) this.#failing = false
        },
        (error) => {
          if (!this.#failing && !this.#stopping)
            this.#log.warn({ err: error, name }, 'Could not remove a body from the store; the sweep does so later.')
          this.#failing = true
        },
      )
      .then(() => {
        this.#underway.delete(name)
        this.#removals.delete(removal)
        if (this.#left && this.#removals.size === 0) this.#sweepLeft()
      })
    this.#removals.add(removal)
  }

  /** Removes what was left to the sweep, as far as it is old. */
  #sweepLeft(): void {
    if (this.#stopping || this.#withRow === undefined) return
    this.#left = false
    this.sweep(this.#withRow).catch((error) => this.#log.warn({ err: error }, 'Could not sweep the store of bodies.'))
  }

  /** Resolves with false when nothing may be removed now. */
  async #delete(name: string, uploadId?: string): Promise<boolean> {
    if (!(await this.#claim.mayRemove())) return false
    const query = uploadId === undefined ? undefined : { uploadId }
    const asked = { method: 'DELETE', key: this.#key(name), query } as const
    await this.#client.retry((_, signal) => this.#client.ask(asked, signal)).catch(unlessAbsent)
    return true
  }

  /** Gives the last chunk once all bytes have come and are those that were stored. */
  async *#chunks(
    body: StoredBody,
    first: number,
    last: number,
    begun: IncomingMessage,
    begin: (from: number) => Promise<IncomingMessage>,
    compared: Compared,
  ): AsyncGenerator<Buffer> {
    const isSummed = compared !== 'nothing' && first === 0 && last === body.size - 1
    const { crc: expected } = parseMark(body)
    let answer = begun
    let position = first
    let crc = 0
    let held: Buffer | undefined
    for (let resumes = 0; ; resumes++) {
      const from = position
      let failure: unknown
      try {
        for await (const chunk of this.#client.chunks(answer)) {
          position += chunk.length
          if (position > last + 1) throw changed(body, 'is longer than its object')
          if (isSummed) crc = crc32(chunk, crc)
          if (held !== undefined) yield held
          held = chunk
        }
      } catch (error) {
        if (error instanceof BodyError) throw error
        failure = error
      }
      if (position > last) break
      // Bodies do not change: what is missing can be asked for again.
      if (position > from) resumes = 0
      if (resumes >= MAX_RESUMES) throw unavailable(failure ?? new Error('The store ends bodies before their ends.'))
      answer = await begin(position)
    }
    if (isSummed && crc !== expected) throw changed(body, 'has another CRC-32 than its object')
    if (held !== undefined) yield held
  }

  /** The answer with exactly these bytes of exactly this body. */
  async #begin(body: StoredBody, first: number, last: number, byMark: boolean): Promise<IncomingMessage> {
    const isWhole = first === 0 && last === body.size - 1
    const etag = byMark ? parseMark(body).etag : undefined
    const range = isWhole ? undefined : { range: `bytes=${first}-${last}` }
    const condition = etag === undefined ? undefined : { 'if-match': `"${etag}"` }
    const asked = { method: 'GET', key: this.#key(body.name), headers: { ...condition, ...range } } as const
    let answer: IncomingMessage
    try {
      answer = await this.#client.retry((_, signal) => this.#client.send(asked, signal))
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw unavailable(error)
      if (error.status === 404 && error.code !== 'NoSuchBucket') {
        throw new BodyError('lost', `The store has lost the body ${body.name}.`, { cause: error })
      }
      if (error.status === 412 || error.status === 416) throw changed(body, 'has another ETag or length', error)
      throw unavailable(error)
    }
    const { headers, statusCode } = answer
    const found = isWhole ? headers['content-length'] : headers['content-range']
    const right = isWhole ? `${body.size}` : `bytes ${first}-${last}/${body.size}`
    const isRight = found === right || (isWhole && found === undefined)
    const isMarked = etag === undefined || bare(headers.etag) === etag
    if (statusCode === (isWhole ? 200 : 206) && isRight && isMarked) return answer
    answer.destroy()
    const wanted = etag === undefined ? right : `${right} "${etag}"`
    throw changed(body, `is said to be ${statusCode} ${found} ${headers.etag}, not ${wanted}`)
  }

  async #sweepAll(withRow: WithRow): Promise<number> {
    if (!(await this.#claim.mayRemove(true))) return 0
    const refusals: S3Refusal[] = []
    const count = (await this.#sweepBodies(withRow, refusals)) + (await this.#sweepUploads(refusals))
    if (refusals.length > 0)
      this.#log.warn({ err: refusals[0], refused: refusals.length }, 'The store refuses to remove bodies.')
    return count
  }

  /** Resolves with 1 for a removal, with 0 for one that the store refuses, and with undefined when none may be made. */
  async #sweepOne(refusals: S3Refusal[], name: string, uploadId?: string): Promise<number | undefined> {
    try {
      return (await this.#delete(name, uploadId)) ? 1 : undefined
    } catch (error) {
      if (!(error instanceof S3Refusal) || isPassing(error)) throw error
      refusals.push(error)
      return 0
    }
  }

  async #sweepBodies(withRow: WithRow, refusals: S3Refusal[]): Promise<number> {
    const isIdle = (name: string) => !this.#underway.has(name) && !this.#readers.has(name) && !this.#doomed.has(name)
    const isGarbage = async (name: string) => isIdle(name) && (await isNameless(withRow, name)) && isIdle(name)
    const query = { 'list-type': '2', prefix: this.#options.folder }
    let count = 0
    let after: string | undefined
    do {
      const page = await this.#list({ ...query, ...(after && { 'continuation-token': after }) }, 'ListBucketResult')
      const entries = page.children.get('Contents') ?? []
      const names = entries.map((entry) => this.#oldName(entry, 'LastModified')).filter((name) => name !== undefined)
      const rows = await withRow(names)
      for (const name of names) {
        if (this.#stopping) return count
        if (rows.has(name) || !(await isGarbage(name))) continue
        const removed = await this.#sweepOne(refusals, name)
        if (removed === undefined) return count
        count += removed
      }
      after = childText(page, 'IsTruncated') === 'true' ? childText(page, 'NextContinuationToken') : undefined
    } while (after)
    return count
  }

  async #sweepUploads(refusals: S3Refusal[]): Promise<number> {
    let count = 0
    let after: Record<string, string> | undefined = {}
    while (after !== undefined) {
      const page = await this.#list(
        { uploads: '', prefix: this.#options.folder, ...after },
        'ListMultipartUploadsResult',
      )
      for (const entry of page.children.get('Upload') ?? []) {
        if (this.#stopping) return count
        const name = this.#oldName(entry, 'Initiated')
        const uploadId = childText(entry, 'UploadId')
        // A row does not protect an upload: that of a body with a row has been completed.
        if (name === undefined || uploadId === undefined || this.#underway.has(name)) continue
        const removed = await this.#sweepOne(refusals, name, uploadId)
        if (removed === undefined) return count
        count += removed
      }
      const marker = childText(page, 'NextKeyMarker')
      after =
        childText(page, 'IsTruncated') === 'true' && marker
          ? { 'key-marker': marker, 'upload-id-marker': childText(page, 'NextUploadIdMarker') ?? '' }
          : undefined
    }
    return count
  }

  #list(query: Readonly<Record<string, string>>, root: string): Promise<XmlNode> {
    const asked = { method: 'GET', key: '', query } as const
    return this.#client.retry((_, signal) => this.#client.document(asked, root, signal))
  }

  /** The name of a body that is old by our clock and by that of the store; undefined for all else. */
  #oldName(entry: XmlNode, time: string): string | undefined {
    const key = childText(entry, 'Key') ?? ''
    const name = key.slice(key.lastIndexOf('/') + 1)
    const begun = NAME.exec(name)?.[1]
    if (begun === undefined || this.#key(name) !== key) return undefined
    const youngest = Date.now() - this.#options.orphanMs
    const isOld = Number(BigInt(`0x${begun}`) / 1_000_000n) <= youngest
    return isOld && Date.parse(childText(entry, time) ?? '') <= youngest ? name : undefined
  }
}

async function* none(): AsyncGenerator<Buffer> {}

function asUnavailable(error: unknown): never {
  throw unavailable(error)
}

function unlessAbsent(error: unknown): void {
  if (!(error instanceof S3Refusal) || error.status !== 404) throw error
}

function changed({ name }: StoredBody, how: string, cause?: unknown): BodyError {
  return new BodyError('changed', `The body ${name} ${how}.`, { cause })
}
