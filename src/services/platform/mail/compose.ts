import type { StoredMail } from './mail-table.js'

/**
 * Writes a mail in the format of RFC 5322. The same mail gives the same bytes, so that a repeated delivery after a
 * crash is known by its Message-ID.
 * @param from address of the sender
 */
export async function compose({ id, recipient, subject, text, created }: StoredMail, from: string): Promise<Buffer> {
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

export function messageId(id: number, created: number, from: string): string {
  return `<${created}.${id}@${from.split('@')[1] ?? 'localhost'}>`
}
