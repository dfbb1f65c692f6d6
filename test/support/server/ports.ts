import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below what Linux (32768), macOS and Windows (49152) give to those who ask for any port, and above what servers are known by. */
const FIRST = 10_000
const LAST = 32_767

/**
 * A port of 127.0.0.1 where nothing listens. Nobody else is given it either, as may happen to one that the system chose: so it can be left and taken again, or stay empty.
 */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
