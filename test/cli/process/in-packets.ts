import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'

/**
 * Sends each piece only when a server of this process has read those before it, so that it never reads two together.
 * Resolves to everything that comes back until the connection ends.
 * @param end whether the client says after the last piece that it sends no more
 */
export async function inPackets(port: number, pieces: readonly string[], end = false): Promise<string> {
  const accepted: Socket[] = []
  const note = (message: unknown) => void accepted.push((message as { socket: Socket }).socket)
  subscribe('net.server.socket', note)
  let answer = ''
  const client = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  client.setEncoding('latin1').on('data', (text) => (answer += text))
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
  client.on('end', () => client.end()).on('error', () => {})
  try {
    await new Promise((resolve) => client.once('connect', resolve))
    let sent = 0
    for (const piece of pieces) {
      if (client.readableEnded || client.destroyed) break
      client.write(piece, 'latin1')
      sent += Buffer.byteLength(piece, 'latin1')
      const isRead = () => accepted.some((one) => one.remotePort === client.localPort && one.bytesRead >= sent)
      while (!isRead() && !client.readableEnded && !client.destroyed) await turn()
    }
    if (end) client.end()
    await closed
  } finally {
    unsubscribe('net.server.socket', note)
    client.destroy()
  }
  return answer
}

/** Head and body of an answer that is the only one of its connection. */
export function parted(answer: string): { status: number; head: string; body: string } {
  const at = answer.indexOf('\r\n\r\n')
  return { status: Number(answer.slice(9, 12)), head: answer.slice(0, at).toLowerCase(), body: answer.slice(at + 4) }
}
