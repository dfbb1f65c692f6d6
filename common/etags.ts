/** An ETag as headers and elements contain it. */
export function quoted(etag: string): string {
  return `"${etag}"`
}

/** The ETag that a client sent, without quotes and weakness mark. S3 accepts one quote, too. */
export function unquoted(etag: string): string {
  return etag
    .trim()
    .replace(/^W\//, '')
    .replace(/^"?(.*?)"?$/, '$1')
}

/** True when a list such as `"a", "b"` or `*` contains this ETag. */
export function listsEtag(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const given = unquoted(item)
    return given === '*' || given === etag
  })
}
