/** An answer has more bytes than its reader takes. */
class TooLongError extends Error {
  override readonly name = 'TooLongError'
}

/**
 * Reads the body of an answer as UTF-8. Rejects with TooLongError, and takes no more of it, beyond a number of bytes: a
 * hostile server could fill the memory otherwise. Rejects as the body does.
 */
export async function readBounded(
  { body }: { readonly body: AsyncIterable<Uint8Array> | null },
  maxBytes: number,
): Promise<string> {
  if (body === null) return ''
  const bytes = await readAtMost(body, maxBytes)
  if (bytes === undefined) throw new TooLongError(`The answer has more than ${maxBytes} bytes.`)
  return new TextDecoder().decode(bytes)
}

/** Reads a body. Resolves undefined, and takes no more of it, beyond a number of bytes. Rejects as the body does. */
export async function readAtMost(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const bytes = await readBeginning(body, maxBytes + 1)
  return bytes.length > maxBytes ? undefined : bytes
}

/** Reads as much of a body as is there, up to a number of bytes, and takes no more of it. Rejects as the body does. */
export async function readBeginning(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the body.
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= maxBytes) break
  }
  return Buffer.concat(chunks, Math.min(size, maxBytes))
}
