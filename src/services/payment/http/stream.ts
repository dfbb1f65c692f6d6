import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/**
 * Sends the chunks and ends the response. Destroys it when a chunk fails, so that a part does not look complete, or
 * when the client takes nothing for `idleMs`. Resolves when the chunks are no longer needed.
 */
export async function stream(
  chunks: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  idleMs: number,
): Promise<void> {
  const idle = setTimeout(() => response.destroy(), idleMs)
  try {
    for await (const chunk of chunks) {
      if (response.destroyed) return
      idle.refresh()
      if (!response.write(chunk)) await drained(response)
    }
    response.end()
  } catch {
    response.destroy()
  } finally {
    clearTimeout(idle)
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })])
  } finally {
    over.abort()
  }
}
