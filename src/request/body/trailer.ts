import { S3Error } from '../../common/errors/s3-error.js'

/** Lower-case names and values, in order of arrival. */
export type Trailer = readonly (readonly [name: string, value: string])[]

/** S3 allows white space on both sides of the colon; HTTP allows it only after the colon. */
const LINE = /^([!#$%&'*+\-.^_`|~0-9a-z]+)[ \t]*:(.*)$/i
const TRAILER_SIGNATURE = /^x-(?:amz|cloud)-trailer-signature$/

/**
 * Parses the text after the chunk of size zero by the rules of S3: lines end with CR LF, an empty line ends the
 * trailer, and everything after it is ignored. The last value of a repeated name counts. minio-go and the examples in
 * Amazon's documentation end a line with LF followed by CR LF; together they count as one end of line.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 * @throws S3Error IncompleteBody for a line that is truncated or ends with LF only, MalformedTrailerError
 */
export function parseTrailer(text: string): { entries: Trailer; signature: string | undefined } {
  const entries = new Map<string, string>()
  let signature: string | undefined
  for (const line of linesOf(text)) {
    const match = LINE.exec(line)
    if (match === null) throw malformed('a line is not of the form name:value')
    const name = (match[1] as string).toLowerCase()
    const value = (match[2] as string).trim()
    if (signature !== undefined) throw malformed('something follows its signature')
    if (TRAILER_SIGNATURE.test(name)) signature = value
    else entries.set(name, value)
  }
  if (signature !== undefined && entries.size === 0) throw incomplete('it has a signature and nothing else')
  return { entries: [...entries], signature }
}

/** Yields the lines before the empty line or the end of the text, without their line ends. */
function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at)
    if (end < 0) throw incomplete('its last line is cut off')
    const strict = end > at && text[end - 1] === '\r'
    if (!strict && !text.startsWith('\r\n', end + 1)) throw incomplete('a line ends with LF alone')
    const line = text.slice(at, strict ? end - 1 : end)
    if (line === '') return
    yield line
    at = strict ? end + 1 : end + 3
  }
}

function malformed(what: string): S3Error {
  return new S3Error('MalformedTrailerError', { message: `The trailer of the body is malformed: ${what}.` })
}

function incomplete(what: string): S3Error {
  return new S3Error('IncompleteBody', { message: `The trailer of the body is incomplete: ${what}.` })
}
