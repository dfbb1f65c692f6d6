/** Upload framing that clients declare as a content coding. */
const AWS_CHUNKED = 'aws-chunked'

export function hasAwsChunked(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && codings(contentEncoding).some(isAwsChunked)
}

/** Returns the Content-Encoding to store with the object; undefined if it names only the framing. */
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
