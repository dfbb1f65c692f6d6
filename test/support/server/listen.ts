import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on a free port of 127.0.0.1. Resolves to the URL. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}
