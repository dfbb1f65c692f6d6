/** Framing of an upload that clients name as if it were an encoding of the object. */
const AWS_CHUNKED = 'aws-chunked'

export function hasAwsChunked(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && codings(contentEncoding).some(isAwsChunked)
}

/** Content-Encoding as it is to be kept with the object; undefined if nothing but the framing was named. */
export function storedContentEncoding(contentEncoding: string | undefined): string | undefined {
  if (contentEncoding === undefined || !hasAwsChunked(contentEncoding)) return contentEncoding
  return (
    codings(contentEncoding)
      .filter((coding) => !isAwsChunked(coding))
      .join(',') || undefined
  )
}

function codings(contentEncoding: string): string[] {
  return contentEncoding
    .split(',')
    .map((coding) => coding.trim())
    .filter(Boolean)
}

function isAwsChunked(coding: string): boolean {
  return coding.toLowerCase() === AWS_CHUNKED
}
