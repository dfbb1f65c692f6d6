// Objects that are texts, within bounds.
import { send } from './api.js'
import { bytesOf } from './bytes.js'

/** Stores a text. Throws ApiError. */
export async function writeObject(client, bucket, key, text, signal) {
  await send(client, {
    method: 'PUT',
    bucket,
    key,
    headers: { 'content-type': 'text/csv; charset=utf-8' },
    body: text,
    signal,
  })
}

/**
 * Reads the first bytes of an object, or its last ones. Throws ApiError.
 * @returns { text, whole }: whether that is all of it
 */
export async function readText(client, bucket, key, { bytes, last = false }, signal) {
  const range = last ? `bytes=-${bytes}` : `bytes=0-${bytes - 1}`
  const response = await send(client, { bucket, key, headers: { range }, signal }).catch((error) => {
    // An empty object has no range.
    if (error.code === 'InvalidRange') return undefined
    throw error
  })
  if (!response) return { text: '', whole: true }
  const size = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? 0)
  const read = await bytesOf(response, bytes + 1)
  const text = new TextDecoder().decode(read.subarray(0, bytes))
  return { text, whole: size <= bytes && read.length <= bytes }
}
