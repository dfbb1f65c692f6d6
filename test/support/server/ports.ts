import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * Below what Linux (32768), macOS and Windows (49152) give to those who ask for any port, and above what servers are
 * known by.
 */
const FIRST = 10_000
const LAST = 32_767

/**
 * A port of 127.0.0.1 where nothing listens. It is given to no one else, as may happen to one that the system
 * chose: so it can be left and taken again, or stay empty.
 */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1)
    if ((await isFree(port)) && (await isClaimed(port))) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = await listening(createServer(), { port, host: '127.0.0.1' })
  if (server === undefined) return false
  server.close()
  await once(server, 'close')
  return true
}

/**
 * Keeps a port from the other tests of this machine until this process ends: the server of another one may be down at
 * the moment. True if it is ours. Only Linux has such names, which need no file and end with their process.
 */
async function isClaimed(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const claim = await listening(createServer(), { path: `\0dealgate-test-port-${port}` })
  claim?.unref()
  return claim !== undefined
}

/** Undefined if the address is taken. */
async function listening(server: Server, address: object): Promise<Server | undefined> {
  try {
    await once(server.listen(address), 'listening')
    return server
  } catch {
    return undefined
  }
}
