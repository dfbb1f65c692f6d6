import { PeriodicTask } from '../../../common/periodic-task.js'
import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { Deliver } from './delivery.js'
import type { MailTable, StoredMail } from './mail-table.js'

const BATCH = 100
/** Interval between attempts, ms. */
const RETRY_MS = 60_000
/** Most attempts to send one mail: two days of them. */
const MOST_ATTEMPTS = 2880

/** Sends the mails that tasks add, in the background: a mail that cannot be sent never fails a task. */
export class Mailer {
  readonly #mails: MailTable
  readonly #writer: Writer
  readonly #deliver: Deliver
  readonly #log: ServicesLog
  readonly #task: PeriodicTask
  #again = false
  #stopped = false

  constructor(mails: MailTable, writer: Writer, deliver: Deliver, log: ServicesLog) {
    this.#mails = mails
    this.#writer = writer
    this.#deliver = deliver
    this.#log = log
    this.#task = new PeriodicTask(
      () => this.#sendAll(),
      (err) => this.#log.error({ err }, 'Could not read the mails to send.'),
    )
  }

  /** Sends what is pending, now and after failures. */
  start(): void {
    this.#task.start(RETRY_MS)
  }

  /** Call it when a mail has been committed. Resolves when an attempt to send it has ended. */
  async kick(): Promise<void> {
    // A run in progress may be past that mail.
    this.#again = true
    while (this.#again && !this.#stopped) await this.#task.run()
  }

  /** Resolves when no mail is being sent. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#task.stop()
  }

  async #sendAll(): Promise<void> {
    // New mails do not wait for those that a server refuses.
    const attempts = this.#again ? 0 : MOST_ATTEMPTS
    this.#again = false
    for (let after = 0; !this.#stopped; ) {
      const mails = this.#mails.pendingAfter(after, attempts, BATCH)
      for (const mail of mails) {
        if (this.#stopped) return
        await this.#send(mail)
      }
      const last = mails.at(-1)
      if (last === undefined) return
      after = last.id
    }
  }

  async #send(mail: StoredMail): Promise<void> {
    const { id } = mail
    try {
      await this.#deliver(mail)
    } catch (err) {
      const givesUp = mail.attempts + 1 >= MOST_ATTEMPTS
      await this.#writer.run(() => (givesUp ? this.#mails.settle(id, 'given-up') : this.#mails.addFailure(id)))
      this.#log.warn({ err, mail: id }, givesUp ? 'Gave up sending a mail.' : 'Could not send a mail; it stays queued.')
      return
    }
    await this.#writer.run(() => this.#mails.settle(id, 'sent'))
  }
}
