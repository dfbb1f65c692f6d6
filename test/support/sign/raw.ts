import { connect, type Socket } from 'node:net'
import type { Endpoint, Headers } from '../../suites/sign.js'

/**
 * Sends bytes as they are and resolves to everything that comes back until the connection ends, an error document is
 * there, or `patienceMs` have passed.
 */
export function exchange(
  server: Pick<Endpoint, 'endpoint'>,
  write: (socket: Socket) => void,
  patienceMs = 60_000,
): Promise<{ text: string; closed: boolean }> {
  const { hostname, port } = new URL(server.endpoint)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => write(socket))
    const timer = setTimeout(() => {
      resolve({ text, closed: false })
      socket.destroy()
    }, patienceMs)
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
      if (text.endsWith('</Error>')) socket.end()
    })
    socket.on('end', () => socket.end())
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (!['ECONNRESET', 'EPIPE'].includes(error.code ?? '')) reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve({ text, closed: true })
    })
  })
}

/** The head of a request as bytes for `exchange`. */
export function headText(method: string, target: string, headers: Headers): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
}
