import type { ServerResponse } from 'node:http'
import type { Download } from '../gateway/gateway.js'

/**
 * Passes an object's bytes on to the client, with the client's pace. Rejects when the gateway ends early: the caller then cuts the connection,
 * so that a short body never looks complete. Resolves, having given the transfer up, when the client leaves.
 */
export async function relay(download: Download, outgoing: ServerResponse): Promise<void> {
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
      if (outgoing.write(chunk)) return
      return new Promise<void>((resolve, reject) => {
        wake = () => (outgoing.destroyed ? reject(new ClientGone()) : resolve())
      })
    })
    outgoing.off('close', gone)
    outgoing.end()
  } catch (thrown) {
    if (thrown instanceof ClientGone || outgoing.destroyed) return
    throw thrown
  } finally {
    outgoing.off('close', gone)
    outgoing.off('drain', drained)
  }
}

class ClientGone extends Error {}
