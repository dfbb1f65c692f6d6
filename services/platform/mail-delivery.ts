import { existsSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { makePrivateFolder, writePrivateFile } from '../../common/files/private-file.js'
import { formatFil } from '../network/fil.js'
import type { Provider } from '../network/network.js'
import type { Task } from './tasks/task.js'

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

export class ServerDownError extends Error {
  override readonly name = 'ServerDownError'
}

const FROM = 'dealgate@localhost'

/** Longest wait for the mail server in each step, ms. */
const MAX_SMTP_MS = 15_000

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
      connectionTimeout: MAX_SMTP_MS,
      greetingTimeout: MAX_SMTP_MS,
      socketTimeout: MAX_SMTP_MS,
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

/**
 * Writes a mail in the format of RFC 5322. The same mail gives the same bytes, so that a repeated delivery after a
 * crash is known by its Message-ID.
 * @param from address of the sender
 */
async function compose({ id, recipient, subject, text, created }: StoredMail, from: string): Promise<Buffer> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  const { message } = await transport.sendMail({
    from,
    to: recipient,
    subject,
    text,
    date: new Date(created * 1000),
    messageId: messageId(id, created, from),
  })
  return message as Buffer
}

function messageId(id: number, created: number, from: string): string {
  return `<${created}.${id}@${from.split('@')[1] ?? 'localhost'}>`
}

const ADDRESS = /^[^\s@<>,;:"()[\]\\]{1,64}@[^\s@<>,;:"()[\]\\]{1,190}$/

/**
 * The mail that tells a provider of a task that is its own from now on. Undefined when the provider's contact
 * information is not a mail address.
 */
export function assignmentMail(task: Task, deals: number, { minerId, contactInfo }: Provider): Mail | undefined {
  if (!ADDRESS.test(contactInfo)) return undefined
  const price = task.maxPrice === null ? 'not limited' : `at most ${formatFil(task.maxPrice)} fil per GiB and epoch`
  return {
    recipient: contactInfo,
    subject: `Task ${task.name} is assigned to ${minerId}`,
    text: [
      `The task ${task.name} is assigned to your storage provider ${minerId}.`,
      '',
      `Task: ${task.uuid}`,
      `Type: ${task.type ?? 'regular'}`,
      `Deals: ${deals}`,
      `Duration: ${task.duration} epochs`,
      `Price: ${price}`,
      ...(task.expireDays === null ? [] : [`Expires: ${task.expireDays} days after it was posted`]),
      '',
      `GET /offline_deals/${minerId}?deal_status=Created lists the deals to fetch.`,
      '',
    ].join('\n'),
  }
}

export interface Mail {
  readonly recipient: string
  readonly subject: string
  readonly text: string
}

export interface StoredMail extends Mail {
  readonly id: number
  readonly created: number
  /** Failed attempts to send it. */
  readonly attempts: number
}
