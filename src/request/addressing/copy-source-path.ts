/**
 * Decodes x-amz-copy-source without its versionId: `/bucket/key` or `bucket/key`, URL-encoded. Returns `bucket/key` and
 * the encoded query; undefined for text that cannot be decoded.
 */
export function copySourcePath(header: string): { readonly path: string; readonly query: string } | undefined {
  const at = header.lastIndexOf('?versionId=')
  const text = at >= 0 ? header.slice(0, at) : header
  // Raw UTF-8 in a header arrives as latin-1 characters.
  const encoded = /[\u0080-\u00ff]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text
  try {
    // S3 decodes this header as a query: Go's url.QueryEscape, which s5cmd uses, writes `+` for a space.
    const path = decodeURIComponent(encoded.replaceAll('+', ' ')).replace(/^\//, '')
    return { path, query: at >= 0 ? header.slice(at + 1) : '' }
  } catch {
    return undefined
  }
}
