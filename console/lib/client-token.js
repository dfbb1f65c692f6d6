// Client tokens, by which the server recognises a request that it has carried out already.
import { sha256 } from './signer.js'

/** The tokens of requests that have not succeeded yet, by a hash of the request, which may contain a secret. */
const tokens = new Map()

/**
 * Sends what may cost money. Until it has succeeded, the same request gets the same token, also from another dialog or
 * screen: its answer may have been lost after the server had carried it out.
 * @param request what the token is for; @param sending takes the headers that carry the token
 */
export async function withClientToken(request, sending) {
  const words = JSON.stringify(request, (_, value) => (value instanceof File ? factsOf(value) : value))
  const hash = await sha256(new TextEncoder().encode(words))
  const token = tokens.get(hash) ?? crypto.randomUUID()
  tokens.set(hash, token)
  const answer = await sending({ 'x-amz-client-token': token })
  tokens.delete(hash)
  return answer
}

function factsOf({ name, size, lastModified }) {
  return [name, size, lastModified]
}
