import { hasLoneSurrogate, isDeeper, isRecord, parseJson } from '../../common/json.js'
import { HttpError } from '../http/errors.js'

/** Name and value. */
export type Field = readonly [name: string, value: string]

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Throws HttpError 400 unless the bytes are UTF-8. */
export function textOf(body: Buffer): string {
  try {
    return decoder.decode(body)
  } catch {
    throw new HttpError(400, 'The body is not UTF-8.')
  }
}

/**
 * The members of a JSON object of texts, numbers and booleans, as texts; those that are null are absent. Throws
 * HttpError 400 for any other body.
 */
export function jsonFields(body: Buffer): Field[] {
  const text = textOf(body)
  const value = parseJson(text)
  if (value === undefined) throw new HttpError(400, 'The body is not JSON.')
  if (hasLoneSurrogate(text)) throw new HttpError(400, 'The body has an escape that is no Unicode character.')
  if (!isRecord(value) || isDeeper(value, 1)) {
    throw new HttpError(400, 'The body must be a JSON object of texts, numbers and booleans.')
  }
  return Object.entries(value).flatMap(([name, member]) => (member === null ? [] : [[name, String(member)]]))
}
