/**
 * Passes bytes on if they are as many as announced; rejects with the first one too many, or at the end. The nodes of a
 * DAG may state other sizes than their leaves have, and what follows an answer on its connection is the next one.
 */
export async function* exactly(bytes: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Uint8Array> {
  let left = size
  for await (const chunk of bytes) {
    left -= chunk.length
    if (left < 0) throw new Error('A file has more bytes than its root states.')
    yield chunk
  }
  if (left > 0) throw new Error('A file has fewer bytes than its root states.')
}
