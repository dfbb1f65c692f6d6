import pLimit from 'p-limit'
import { withinDeadline } from '../../common/time.js'
import type { ServicesLog } from '../log.js'
import type { Bodies, Compared, NewBody, OpenBody, StoredBody, WithRow } from './bodies.js'
import type { S3Claim } from './s3-claim.js'
import { bare, type S3Client } from './s3-client.js'
import { S3Reader } from './s3-read.js'
import { S3Refusal, unavailable } from './s3-refusal.js'
import { S3Sweep } from './s3-sweep.js'
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

/** Time that removals under way get when the gateway stops, ms. The sweep does the others. */
const STOP_MS = 2000

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
  /** Tells which bodies have a row, as the last sweep asked it. */
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
    const reader = new S3Reader(this.#client, this.#key(name), body, compared)
    let open = true
    return {
      stream: (first, last) => reader.stream(first, last),
      close: async () => {
        if (!open) return
        open = false
        reader.close()
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
    await withinDeadline(Promise.all(this.#removals), STOP_MS).catch(() => {})
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

  async #sweepAll(withRow: WithRow): Promise<number> {
    if (!(await this.#claim.mayRemove(true))) return 0
    const sweep = new S3Sweep(
      this.#client,
      withRow,
      {
        ...this.#options,
        keyOf: (name) => this.#key(name),
        isUnderway: (name) => this.#underway.has(name),
        isRead: (name) => this.#readers.has(name) || this.#doomed.has(name),
        isStopping: () => this.#stopping,
        remove: (name, uploadId) => this.#delete(name, uploadId),
      },
      this.#log,
    )
    return sweep.run()
  }
}

function asUnavailable(error: unknown): never {
  throw unavailable(error)
}

function unlessAbsent(error: unknown): void {
  if (!(error instanceof S3Refusal) || error.status !== 404) throw error
}
