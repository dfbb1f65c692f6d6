import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * Starts listening. Rejects with an error that has the code EADDRINUSE and names the port when another program uses it.
 */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const inUse = error.code === 'EADDRINUSE'
      const text = `Port ${port} of ${host} is in use by another program. Stop that one or choose another port.`
      reject(inUse ? Object.assign(new Error(text, { cause: error }), { code: error.code }) : error)
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** URL by which programs on this machine reach a server, also one that listens on all addresses. */
export function localUrlOf(host: string, port: number): string {
  return urlOf(host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host, port)
}

/** Interval at which idle connections are closed while a server stops, ms. */
const IDLE_CHECK_MS = 50

/** Lets running requests finish for at most `stopMs`. */
export async function close(server: Server, stopMs: number): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  const deadline = setTimeout(() => server.closeAllConnections(), stopMs)
  await closed
  clearInterval(idle)
  clearTimeout(deadline)
}
