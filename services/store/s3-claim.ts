import { randomBytes } from 'node:crypto'
import { parseObject } from '../../common/json.js'
import type { ServicesLog } from '../log.js'
import { BodyError } from './bodies.js'
import type { S3Client } from './s3-client.js'
import { S3Refusal } from './s3-refusal.js'

/** What the index knows of its claim of a folder of a store. */
export interface ClaimRecord {
  /** Id of this data folder at this place: a copy of it has another. */
  readonly owner: string
  read(): Promise<{
    /** The last run that has claimed the folder, and the one that does so now, with a space between; empty for none. */
    readonly run: string
    /** From when the age of bodies without a row counts, ms since 1970. */
    readonly orphansFrom: number
  }>
  /** True when rows name bodies in the store. */
  hasBodies(): Promise<boolean>
  /** Keeps who has claimed the folder. Resolves with false when that is no longer what `was` says. */
  claimed(run: string, was: string): Promise<boolean>
  /** Keeps that the age of bodies without a row counts from now on. */
  orphansBegin(now: number): Promise<void>
  /**
   * Where several processes have the record, and the folder together: runs `work` while no other does. The last run
   * claims the folder for all of them.
   */
  alone?<T>(work: () => Promise<T>): Promise<T>
}

interface ClaimOptions {
  /** Key of the marker. */
  readonly key: string
  /** Age of a body without a row at which it is removed, ms. */
  readonly orphanMs: number
  /** Time for which one look at the marker counts, ms. */
  readonly checkMs: number
}

/** A marker in the store, which names who uses the folder. */
interface Marker {
  readonly owner: unknown
  readonly run: unknown
  readonly etag: string
}

/**
 * The claim of one run of a gateway to a folder of a store, or of several processes over one index. A marker there
 * names the run that claimed it last. A run that finds the marker of another data folder takes the folder over: the
 * data folder is a copy, or was restored, and its index does not name all that the other one has. So it removes nothing
 * for as long as bodies without a row stay, and a gateway that still runs over the other one finds that the folder is
 * no longer its own, and changes nothing.
 */
export class S3Claim {
  readonly #client: S3Client
  readonly #record: ClaimRecord
  readonly #options: ClaimOptions
  readonly #log: ServicesLog
  readonly #run = randomBytes(8).toString('hex')
  #state: 'unproven' | 'held' | 'lost' = 'unproven'
  #checkedAt = Number.NEGATIVE_INFINITY
  #checking: Promise<void> | undefined

  constructor(client: S3Client, record: ClaimRecord, options: ClaimOptions, log: ServicesLog) {
    this.#client = client
    this.#record = record
    this.#options = options
    this.#log = log
  }

  /**
   * Resolves once the folder is known to be that of the index, which may be read then. Throws what the store does, and
   * S3Refusal when it is another folder.
   */
  async proven(): Promise<void> {
    if (this.#state === 'unproven') await this.#check()
  }

  /** Resolves when bodies may be written. Throws as `proven` does, and BodyError when the folder was taken over. */
  async mayWrite(): Promise<void> {
    await this.proven()
    if (this.#isStale()) await this.#check()
    if (this.#state === 'lost') {
      throw new BodyError('refused', 'Another data folder uses the folder of this one in the store of bodies.')
    }
  }

  /**
   * Resolves with true when bodies without a row may be removed. Throws as `proven` does.
   * @param now true when what was found before does not count
   */
  async mayRemove(now = false): Promise<boolean> {
    await this.proven()
    if (now || this.#isStale()) await this.#check()
    const { orphansFrom } = await this.#record.read()
    return this.#state === 'held' && (orphansFrom === 0 || orphansFrom + this.#options.orphanMs <= Date.now())
  }

  #isStale(): boolean {
    return performance.now() - this.#checkedAt >= this.#options.checkMs
  }

  #check(): Promise<void> {
    const alone = this.#record.alone ?? ((work) => work())
    this.#checking ??= (this.#state === 'unproven' ? alone(() => this.#prove()) : this.#lookAgain())
      .then(() => {
        this.#checkedAt = performance.now()
      })
      .finally(() => {
        this.#checking = undefined
      })
    return this.#checking
  }

  async #prove(): Promise<void> {
    const record = this.#record
    const found = await this.#read()
    // A data folder as it was earlier has the owner, but not the last run.
    const { run: last } = await record.read()
    const isKnown = found !== undefined && found.owner === record.owner && names(last, found.run)
    // A process that dies now leaves a marker that the others know.
    const either = isKnown ? `${found.run} ${this.#run}` : this.#run
    if (found === undefined) {
      if (await record.hasBodies())
        throw new S3Refusal(404, 'NoSuchKey', 'The bodies of this data folder are elsewhere.')
      await this.#keep(either, last)
      await this.#write({ 'if-none-match': '*' })
    } else {
      if (found.run !== this.#run && !isKnown) {
        await record.orphansBegin(Date.now())
        this.#log.warn(
          { hours: this.#options.orphanMs / 3_600_000 },
          'The folder in the store of bodies was that of another data folder or database, of which this one is a copy, an earlier state, or a standby that took over. This one takes it over, and removes nothing from it for some hours. Never use both.',
        )
      }
      await this.#keep(either, last)
      await this.#write({ 'if-match': found.etag })
    }
    // The claim is read again, because some stores do not know conditions of writes.
    const now = await this.#read()
    if (now?.run !== this.#run) throw new Error(AT_THE_SAME_TIME)
    await this.#keep(this.#run, either)
    this.#state = 'held'
  }

  async #keep(run: string, was: string): Promise<void> {
    if (!(await this.#record.claimed(run, was))) throw new Error(AT_THE_SAME_TIME)
  }

  async #lookAgain(): Promise<void> {
    const record = this.#record
    const isLast = async () => names(record.alone ? (await record.read()).run : this.#run, (await this.#read())?.run)
    // Another process may just have claimed the folder, and not yet kept so.
    const isOurs = (await isLast()) || ((await record.alone?.(isLast)) ?? false)
    if (!isOurs && this.#state === 'held') {
      this.#log.warn(
        { run: this.#run },
        'Another gateway has taken over the folder of this one in the store of bodies, or the store has lost the marker. This gateway writes and removes nothing there any more. Stop the other one, and start this one again.',
      )
    }
    this.#state = isOurs ? 'held' : 'lost'
  }

  async #read(): Promise<Marker | undefined> {
    try {
      const asked = { method: 'GET', key: this.#options.key } as const
      const { head, body } = await this.#client.retry((_, signal) => this.#client.ask(asked, signal))
      const { owner, run } = parseObject(body.toString()) ?? {}
      return { owner, run, etag: head.headers.etag ?? '' }
    } catch (error) {
      if (error instanceof S3Refusal && error.status === 404 && error.code !== 'NoSuchBucket') return undefined
      throw error
    }
  }

  /** Writes the claim. Also resolves when the condition does not hold: an attempt before may have changed that. */
  async #write(condition: Readonly<Record<string, string>>): Promise<void> {
    const { owner } = this.#record
    const body = [Buffer.from(`${JSON.stringify({ bodies: 'of a data folder of dealgate', owner, run: this.#run })}\n`)]
    const put = (headers: Readonly<Record<string, string>>) =>
      this.#client.retry((_, signal) =>
        this.#client.ask({ method: 'PUT', key: this.#options.key, headers, body }, signal),
      )
    try {
      await put(condition)
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw error
      if (error.status === 501) await put({})
      else if (error.status !== 412 && error.status !== 409) throw error
    }
  }
}

const AT_THE_SAME_TIME = 'Another gateway claims the folder in the store at the same time.'

function names(runs: string, run: unknown): boolean {
  return typeof run === 'string' && runs.split(' ').includes(run)
}
