import type { IncomingMessage } from 'node:http'

/**
 * Counts the bytes that a request sends, from now on. Not what it declares: a client may declare much and send nothing.
 * A small body has arrived together with the head, before anything could count it.
 */
export function countReceived(incoming: IncomingMessage): () => number {
  const { socket, headers } = incoming
  const before = socket.bytesRead
  return () => {
    const declared = incoming.complete ? Number(headers['content-length'] ?? 0) || 0 : 0
    return Math.max(socket.bytesRead - before, declared)
  }
}
