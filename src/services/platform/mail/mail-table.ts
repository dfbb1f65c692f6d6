import type { Database } from '../../database.js'

/** A mail to one person. */
export interface Mail {
  readonly recipient: string
  readonly subject: string
  /** Plain text. */
  readonly text: string
}

export interface StoredMail extends Mail {
  readonly id: number
  /** Unix seconds. */
  readonly created: number
  /** Failed attempts to send it. */
  readonly attempts: number
}

/** The mails to send. Call writing methods inside a transaction. */
export class MailTable {
  readonly #add
  readonly #pending
  readonly #settle
  readonly #failed

  constructor(db: Database) {
    this.#add = db.prepare('INSERT INTO mails (recipient, subject, text, created) VALUES (?, ?, ?, ?)')
    this.#pending = db.prepare(
      "SELECT id, recipient, subject, text, created, attempts FROM mails WHERE state = 'pending' AND id > ? AND attempts <= ? ORDER BY id LIMIT ?",
    )
    this.#settle = db.prepare('UPDATE mails SET state = ? WHERE id = ?')
    this.#failed = db.prepare('UPDATE mails SET attempts = attempts + 1 WHERE id = ?')
  }

  add({ recipient, subject, text }: Mail, now: number): void {
    this.#add.run(recipient, subject, text, now)
  }

  /** @param attempts most failed attempts of a mail */
  pendingAfter(id: number, attempts: number, most: number): StoredMail[] {
    return this.#pending.all(id, attempts, most) as StoredMail[]
  }

  settle(id: number, state: 'sent' | 'given-up'): void {
    this.#settle.run(state, id)
  }

  addFailure(id: number): void {
    this.#failed.run(id)
  }
}
