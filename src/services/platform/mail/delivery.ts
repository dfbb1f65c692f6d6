import { existsSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { makePrivateFolder, writePrivateFile } from '../../../common/files/private-file.js'
import { compose } from './compose.js'
import type { StoredMail } from './mail-table.js'

export interface MailOptions {
  /** `smtp://` or `smtps://` URL of the server that takes the mails; default a file in the outbox folder for each. */
  readonly smtp?: string
  /** Address of the sender; default `dealgate@localhost`. */
  readonly from?: string
}

/**
 * Takes one mail. Resolves when it has been handed over; may be called again for a mail that it took. Rejects with
 * ServerDownError when others would fail, too, and at once when `signal` aborts.
 */
export type Deliver = (mail: StoredMail, signal: AbortSignal) => Promise<void>

/** The mail server does not talk. */
export class ServerDownError extends Error {
  override readonly name = 'ServerDownError'
}

const FROM = 'dealgate@localhost'

/** Longest wait for the mail server in each step, ms. */
const SMTP_MS = 15_000

/** @param outbox folder for mails as `.eml` files; created when the first one is written */
export function deliveryOf({ smtp, from = FROM }: MailOptions, outbox: string): Deliver {
  return smtp === undefined ? intoFolder(outbox, from) : bySmtp(smtp, from)
}

function intoFolder(outbox: string, from: string): Deliver {
  return async (mail) => {
    const bytes = await compose(mail, from)
    if (!existsSync(outbox)) makePrivateFolder(outbox)
    writePrivateFile(join(outbox, `${String(mail.id).padStart(8, '0')}.eml`), bytes.toString())
  }
}

function bySmtp(smtp: string, from: string): Deliver {
  return async (mail, signal) => {
    const { createTransport } = await import('nodemailer')
    const raw = await compose(mail, from)
    signal.throwIfAborted()
    const socket = new Socket()
    const transport = createTransport({
      url: smtp,
      socket,
      connectionTimeout: SMTP_MS,
      greetingTimeout: SMTP_MS,
      socketTimeout: SMTP_MS,
    })
    let abort = (): void => {}
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal.reason)
    })
    signal.addEventListener('abort', abort)
    try {
      await Promise.race([transport.sendMail({ envelope: { from, to: [mail.recipient] }, raw }), aborted])
    } catch (error) {
      throw isOfConnection(error) ? new ServerDownError('The mail server does not answer.', { cause: error }) : error
    } finally {
      signal.removeEventListener('abort', abort)
      transport.close()
      if (signal.aborted) socket.destroy()
    }
  }
}

function isOfConnection(error: unknown): boolean {
  return error instanceof Error && 'command' in error && error.command === 'CONN'
}
