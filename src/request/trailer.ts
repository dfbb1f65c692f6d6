import { S3Error } from '../errors/s3-error.js'

/** Names in lower case and values, in the order in which they came. */
export type Trailer = readonly (readonly [name: string, value: string])[]

const LINE = /^([!#$%&'*+\-.^_`|~0-9a-z]+):(.*)$/i
const TRAILER_SIGNATURE = /^x-(?:amz|cloud)-trailer-signature$/

/**
 * Reads what follows the chunk of size zero. Clients differ: most end a line with CR LF; minio-go ends it with LF and puts CR LF behind that, so
 * that an empty line stands before the signature. Empty lines therefore mean nothing; the end of the body ends the trailer.
 * @throws S3Error MalformedTrailerError
 */
export function parseTrailer(text: string): { entries: Trailer; signature: string | undefined } {
  if (text !== '' && !text.endsWith('\n')) throw malformed('its last line is cut off')
  const entries: [string, string][] = []
  let signature: string | undefined
  for (const raw of text.split('\n')) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
    if (line === '') continue
    const match = LINE.exec(line)
    if (match === null) throw malformed('a line is not of the form name:value')
    const name = (match[1] as string).toLowerCase()
    const value = (match[2] as string).trim()
    if (signature !== undefined) throw malformed('something follows its signature')
    if (TRAILER_SIGNATURE.test(name)) signature = value
    else if (entries.some(([known]) => known === name)) throw malformed(`it has ${name} twice`)
    else entries.push([name, value])
  }
  if (signature !== undefined && entries.length === 0) throw malformed('it has a signature and nothing else')
  return { entries, signature }
}

function malformed(what: string): S3Error {
  return new S3Error('MalformedTrailerError', { message: `The trailer of the body is malformed: ${what}.` })
}
