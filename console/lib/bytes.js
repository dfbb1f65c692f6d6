import { ApiError } from './api.js'

const NOT_DECODED = 'The bytes are not in the content encoding that the object names: download it.'

/**
 * The first bytes of an answer, as the browser decodes them: in a content encoding, they may be a thousand times as many as
 * those of the object. Throws ApiError if they cannot be decoded.
 * @param most so many bytes at most; the rest is not read
 */
export async function bytesOf(answer, most) {
  const reader = answer.body?.getReader()
  const parts = []
  try {
    for (let size = 0; reader && size < most; ) {
      const { done, value } = await reader.read()
      if (done) break
      parts.push(value)
      size += value.length
    }
  } catch (error) {
    if (error.name !== 'TypeError' || !answer.headers.has('content-encoding')) throw error
    throw new ApiError('NotDecoded', NOT_DECODED)
  }
  reader?.cancel().catch(() => {})
  return new Uint8Array(await new Blob(parts).slice(0, most).arrayBuffer())
}
