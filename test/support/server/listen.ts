import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on a free port of 127.0.0.1, until the test ends if one is given. Resolves to the URL. */
export async function listen(server: Server, t?: { teardown(run: () => unknown): void }): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t?.teardown(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
