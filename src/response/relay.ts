import type { ServerResponse } from 'node:http'
import type { Download } from '../gateway/gateway.js'

/** A client that takes no byte for so long has gone without saying so, ms. Players and mounts do pause for minutes. */
const STALLED_MS = 10 * 60_000

/**
 * Passes an object's bytes on to the client, with the client's pace. Rejects when the gateway ends early: the caller then cuts the connection,
 * so that a short body never looks complete. Resolves, having given the transfer up, when the client leaves. Resolves to the bytes passed on.
 */
export async function relay(download: Download, outgoing: ServerResponse): Promise<number> {
  let bytes = 0
  let wake: (() => void) | undefined
  const gone = () => {
    download.discard()
    wake?.()
  }
  const drained = () => wake?.()
  outgoing.on('close', gone)
  outgoing.on('drain', drained)
  try {
    await download.consume((chunk) => {
      if (outgoing.destroyed) throw new ClientGone()
      bytes += chunk.length
      if (outgoing.write(chunk)) return
      return new Promise<void>((resolve, reject) => {
        const stalled = setTimeout(() => outgoing.destroy(), STALLED_MS)
        wake = () => {
          clearTimeout(stalled)
          if (outgoing.destroyed) reject(new ClientGone())
          else resolve()
        }
      })
    })
    outgoing.off('close', gone)
    outgoing.end()
    return bytes
  } catch (thrown) {
    if (thrown instanceof ClientGone || outgoing.destroyed) return bytes
    throw thrown
  } finally {
    outgoing.off('close', gone)
    outgoing.off('drain', drained)
  }
}

class ClientGone extends Error {}
