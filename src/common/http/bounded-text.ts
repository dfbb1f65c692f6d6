/** An answer has more bytes than its reader takes. */
export class TooLongError extends Error {
  override readonly name = 'TooLongError'
}

/**
 * Reads the body of an answer as UTF-8. Rejects with TooLongError, and takes no more of it, beyond a number of bytes: a
 * hostile server could fill the memory otherwise. Rejects as the body does.
 */
export async function readBounded({ body }: Pick<Response, 'body'>, mostBytes: number): Promise<string> {
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the body.
  for await (const chunk of body) {
    size += chunk.length
    if (size > mostBytes) throw new TooLongError(`The answer has more than ${mostBytes} bytes.`)
    chunks.push(chunk)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}
