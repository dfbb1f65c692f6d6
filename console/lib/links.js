// Links to objects, which work without a key pair until they end.
import { ApiError, send, urlOf } from './api.js'

/** Longest life of a link, seconds: no signature of version 4 is valid for longer. */
export const LONGEST = 7 * 86_400

/**
 * A URL by which everybody who has it can get the object for some time.
 * @param place { bucket, key, versionId? }
 * @param how { seconds, inline?, type? }: an attachment of the type `application/octet-stream`, which no browser shows; or
 *   `inline`, of this type or else of the stored one, which the endpoint sends so that no script in it runs
 */
export function objectLink(client, { bucket, key, versionId }, { seconds, inline = false, type }) {
  const name = key.slice(key.lastIndexOf('/') + 1)
  const file = encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  const query = {
    versionId,
    'response-content-type': type ?? (inline ? undefined : 'application/octet-stream'),
    'response-content-disposition': `${inline ? 'inline' : 'attachment'}; filename*=UTF-8''${file}`,
  }
  return client.signer.presign({ url: urlOf(client, { bucket, key, query }), expires: seconds })
}

/** Throws ApiError where a link to the object would answer with an error, such as for one whose bytes are archived. */
export async function requireReadable(client, { bucket, key, versionId }, signal) {
  const first = { bucket, key, query: { versionId }, headers: { range: 'bytes=0-0' }, signal }
  const answer = await send(client, first).catch((error) => {
    // An empty object has no first byte.
    if (error.code !== 'InvalidRange') throw error
  })
  await answer?.body?.cancel()
}

/** Opens an address as a link does: an error that comes after all takes the place of no page, and no page sees this one. */
export function follow(url) {
  const link = document.createElement('a')
  link.href = url
  link.target = '_blank'
  link.rel = 'noopener noreferrer'
  link.click()
}

/** Seconds until the session ends. Throws ApiError for one that has ended. */
export function secondsLeft({ expires }) {
  const left = Math.floor((expires - Date.now()) / 1000)
  if (left < 1) throw new ApiError('ExpiredToken', 'The session has ended.')
  return left
}
