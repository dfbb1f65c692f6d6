import { PeriodicTask } from '../../common/time.js'
import type { ServicesLog } from '../log.js'
import { type Lease, tableOf } from '../store/database.js'
import { type Deliver, type Mail, ServerDownError, type StoredMail } from './mail-delivery.js'

const BATCH = 100

/** Interval between attempts, ms. */
const RETRY_MS = 60_000

/** Interval between two looks for mails that other processes have added, ms. */
const LOOK_MS = 5000

/** Most attempts to send one mail: two days of them. */
const MAX_ATTEMPTS = 2880

/**
 * Sends the mails that tasks add, in the background: a mail that cannot be sent never fails a task. One process at a
 * time sends. A mail is sent again when its process dies before it has written so, or is stopped for longer than the
 * lease while the server takes it: with the same bytes, by whose Message-ID a server or a reader knows it.
 */
export class Mailer {
  readonly #lease: Lease<{ readonly mails: MailTable }>
  readonly #deliver: Deliver
  readonly #log: ServicesLog
  readonly #task: PeriodicTask
  readonly #look: PeriodicTask
  readonly #stopping = new AbortController()
  /** Mails that were sent, which the database does not know yet. */
  readonly #delivered = new Set<number>()
  #again = false
  /** The next pass begins behind this mail. */
  #first = 0

  constructor(lease: Lease<{ readonly mails: MailTable }>, deliver: Deliver, log: ServicesLog) {
    this.#lease = lease
    this.#deliver = deliver
    this.#log = log
    const failed = (err: unknown): void => this.#log.error({ err }, 'Could not read the mails to send.')
    this.#task = new PeriodicTask(() => this.#sendAll(), failed)
    this.#look = new PeriodicTask(() => this.kick(), failed)
  }

  /** Sends what is pending, now and after failures. */
  start(): void {
    this.#task.start(RETRY_MS)
    if (this.#lease.db.shared) this.#look.start(LOOK_MS)
  }

  /** Call it when a mail has been committed. Resolves when an attempt to send it has ended. */
  async kick(): Promise<void> {
    // A run in progress may be past that mail.
    this.#again = true
    while (this.#again && !this.#stopping.signal.aborted) await this.#task.run()
  }

  /** Interrupts a mail that is being sent; it is sent again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#look.stop(), this.#task.stop()])
    await this.#lease.release()
  }

  /** Begins behind the mail that met a dead server last: a mail that a server cannot bear holds up no other one. */
  async #sendAll(): Promise<void> {
    // New mails do not wait for those that a server refuses.
    const attempts = this.#again ? 0 : MAX_ATTEMPTS
    this.#again = false
    if (!(await this.#lease.take())) return
    const first = this.#first
    this.#first = 0
    if (await this.#sendBetween(first, Number.MAX_SAFE_INTEGER, attempts)) await this.#sendBetween(0, first, attempts)
  }

  /** Sends the mails after that number, to `last`. Returns false when the server is down. */
  async #sendBetween(after: number, last: number, attempts: number): Promise<boolean> {
    for (let at = after; at < last && !this.#isOver; ) {
      const mails = await this.#lease.db.read.mails.pendingAfter(at, attempts, BATCH)
      if (mails.length === 0) break
      for (const mail of mails) {
        if (mail.id > last || this.#isOver) return true
        at = mail.id
        if (await this.#send(mail)) continue
        this.#first = mail.id
        return false
      }
    }
    return true
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted || !this.#lease.held()
  }

  /** Returns false when the server is down. */
  async #send(mail: StoredMail): Promise<boolean> {
    const { id } = mail
    const signal = AbortSignal.any([this.#stopping.signal, this.#lease.signal])
    try {
      if (!this.#delivered.has(id)) await this.#deliver(mail, signal)
      this.#delivered.add(id)
    } catch (err) {
      if (!signal.aborted) await this.#fail(mail, err)
      return !(err instanceof ServerDownError)
    }
    await this.#settle(id, (mails) => mails.settle(id, 'sent'))
    return true
  }

  async #fail({ id, attempts }: StoredMail, err: unknown): Promise<void> {
    const givesUp = attempts + 1 >= MAX_ATTEMPTS
    this.#log.warn({ err, mail: id }, givesUp ? 'Gave up sending a mail.' : 'Could not send a mail; it stays queued.')
    await this.#settle(id, (mails) => (givesUp ? mails.settle(id, 'given-up') : mails.addFailure(id)))
  }

  /**
   * A full disk holds up no other mail: what cannot be written now is written in a later pass, without sending again.
   */
  async #settle(id: number, write: (mails: MailTable) => Promise<void>): Promise<void> {
    try {
      await this.#lease.db.transaction(({ mails }) => write(mails))
      this.#delivered.delete(id)
    } catch (err) {
      this.#log.warn({ err, mail: id }, 'Could not write what became of a mail.')
    }
  }
}

/** The mails to send. Call writing methods inside a transaction. */
export class MailTable extends tableOf({
  add: 'INSERT INTO mails (recipient, subject, text, created) VALUES (?, ?, ?, ?)',
  pending:
    "SELECT id, recipient, subject, text, created, attempts FROM mails WHERE state = 'pending' AND id > ? AND attempts <= ? ORDER BY id LIMIT ?",
  settle: 'UPDATE mails SET state = ? WHERE id = ?',
  failed: 'UPDATE mails SET attempts = attempts + 1 WHERE id = ?',
}) {
  async add({ recipient, subject, text }: Mail, now: number): Promise<void> {
    await this.sql.add.run(recipient, subject, text, now)
  }

  /** @param attempts most failed attempts of a mail */
  pendingAfter(id: number, attempts: number, most: number): Promise<StoredMail[]> {
    return this.sql.pending.all<StoredMail>(id, attempts, most)
  }

  async settle(id: number, state: 'sent' | 'given-up'): Promise<void> {
    await this.sql.settle.run(state, id)
  }

  async addFailure(id: number): Promise<void> {
    await this.sql.failed.run(id)
  }
}
