import { OutgoingMessage, type ServerResponse } from 'node:http'
import type { LentSink, Transfer } from '../api/request.js'
import type { BeginDownload } from './downloads.js'

/** Idle timeout of a client that reads a download, ms. Media players and file system mounts pause for minutes. */
const STALLED_MS = 10 * 60_000

/** Middleware may replace it with a method that ignores the callback: https://github.com/expressjs/compression */
const nodeWrite = OutgoingMessage.prototype.write

/**
 * Forwards an object's bytes to the client, with back-pressure. Resolves to the number of forwarded bytes. If the
 * client disconnects, discards the transfer and resolves. Rejects if the gateway ends early: the caller then cuts the
 * connection, so that a short body never looks complete.
 * @param begin counts the bytes that wait for the client; absent for an answer that stands alone
 */
export async function relay(download: Transfer, outgoing: ServerResponse, begin?: BeginDownload): Promise<number> {
  const running = begin?.(() => outgoing.destroy())
  let bytes = 0
  let waiting = 0
  let over = false
  const stalled = setTimeout(() => {
    // No write is pending: the gateway is slow, not the client.
    if (waiting === 0) stalled.refresh()
    else outgoing.destroy()
  }, STALLED_MS)
  const gone = () => download.discard()
  outgoing.on('close', gone)
  const write = writerFor(outgoing)
  try {
    await download.lend((chunk, done) => {
      bytes += chunk.length
      waiting++
      // The chunk is empty when it has been given back.
      const { length } = chunk
      running?.queue(length)
      write(chunk, (error) => {
        waiting--
        running?.take(length)
        // A write may end after the transfer has failed: refresh() would start the timer again.
        if (!over && !outgoing.destroyed) stalled.refresh()
        done(error)
      })
    })
    outgoing.off('close', gone)
    outgoing.end()
    return bytes
  } catch (thrown) {
    if (outgoing.destroyed) return bytes
    throw thrown
  } finally {
    over = true
    running?.leave()
    clearTimeout(stalled)
    outgoing.off('close', gone)
  }
}

function writerFor(outgoing: ServerResponse): LentSink {
  if (outgoing.write !== nodeWrite) return writerByDrain(outgoing)
  // The socket uses the chunk until it calls the callback.
  return (chunk, done) => {
    outgoing.write(chunk, (error) => done(error ?? undefined))
  }
}

/**
 * Writer for a replaced `write` method, which does not report when it has finished with a chunk. It gets a copy; its
 * return value and 'drain' provide the back-pressure.
 */
function writerByDrain(outgoing: ServerResponse): LentSink {
  let waiting: (() => void)[] = []
  // One listener for all chunks: middleware may add it to its own stream, from which it cannot be removed.
  outgoing.on('drain', () => {
    const ready = waiting
    waiting = []
    for (const done of ready) done()
  })
  return (chunk, done) => {
    if (outgoing.write(Buffer.from(chunk)) === false) waiting.push(() => done())
    else done()
  }
}
