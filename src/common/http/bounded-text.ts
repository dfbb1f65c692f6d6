/** An answer has more bytes than its reader takes. */
export class TooLongError extends Error {
  override readonly name = 'TooLongError'
}

/**
 * Reads the body of an answer as UTF-8. Rejects with TooLongError, and takes no more of it, beyond a number of bytes: a
 * hostile server could fill the memory otherwise. Rejects as the body does.
 */
export async function readBounded({ body }: Pick<Response, 'body'>, maxBytes: number): Promise<string> {
  if (body === null) return ''
  const bytes = await readAtMost(body, maxBytes)
  if (bytes === undefined) throw new TooLongError(`The answer has more than ${maxBytes} bytes.`)
  return new TextDecoder().decode(bytes)
}

/** Reads a body. Resolves undefined, and takes no more of it, beyond a number of bytes. Rejects as the body does. */
export async function readAtMost(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the body.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
