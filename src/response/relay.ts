import type { ServerResponse } from 'node:http'
import type { Transfer } from '../gateway/gateway.js'

/** A client that takes no byte for so long has gone without saying so, ms. Players and mounts do pause for minutes. */
const STALLED_MS = 10 * 60_000

/**
 * Passes an object's bytes on to the client, with the client's pace. Rejects when the gateway ends early: the caller then cuts the connection,
 * so that a short body never looks complete. Resolves, having given the transfer up, when the client leaves. Resolves to the bytes passed on.
 */
export async function relay(download: Transfer, outgoing: ServerResponse): Promise<number> {
  let bytes = 0
  let waiting = 0
  const stalled = setTimeout(() => {
    // Nothing to take is not the client's fault.
    if (waiting === 0) stalled.refresh()
    else outgoing.destroy()
  }, STALLED_MS)
  const gone = () => download.discard()
  outgoing.on('close', gone)
  try {
    await download.lend((chunk, done) => {
      bytes += chunk.length
      waiting++
      // The chunk is the socket's until it has been written: only the callback says so.
      outgoing.write(chunk, (error) => {
        waiting--
        if (!outgoing.destroyed) stalled.refresh()
        done(error ?? undefined)
      })
    })
    outgoing.off('close', gone)
    outgoing.end()
    return bytes
  } catch (thrown) {
    if (outgoing.destroyed) return bytes
    throw thrown
  } finally {
    clearTimeout(stalled)
    outgoing.off('close', gone)
  }
}
