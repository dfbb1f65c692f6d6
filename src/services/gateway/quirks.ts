/**
 * What public deployments of this interface do differently from what one would expect, one flag each, so that a client can be tried against every one alone.
 * Recorded from MinIO RELEASE.2019-09-11T19-53-16Z (https://github.com/minio/minio/tree/RELEASE.2019-09-11T19-53-16Z/cmd, `web-handlers.go` unless another
 * file is named) and filswan/fs3 v2.0.0 (https://github.com/filswan/fs3, `cmd/web-handlers.go`).
 */
export const quirks = {
  'one-level-listing':
    'web.ListObjects ignores marker, maxKeys and delimiter and answers a whole level at once (ListObjects)',
  'unsorted-listing':
    'web.ListObjects puts objects before prefixes in every thousand entries, so the whole is not sorted (ListObjects)',
  'null-arrays': 'null stands for an empty array of buckets, objects or policies (Go encodes nil slices so)',
  'year-one-prefixes':
    'prefixes are objects dated 0001-01-01T00:00:00Z of size 0; no etag, generation or isPrefix in listings (ListObjects)',
  'code-zero-errors': 'errors have code 0 and no data; no error-code header on REST (toJSONError)',
  'missing-bucket-texts': 'a missing bucket has three texts, by method (toWebAPIError, api-errors.go)',
  'ignore-range':
    'Range and conditional headers are ignored on download, though Accept-Ranges is announced (Download, api-headers.go)',
  'no-head': 'HEAD on download gets the console page with 200 (web-router.go)',
  'no-upload-etag': 'an upload is answered by nothing but 200; no extra headers; an ETag given is ignored (Upload)',
  'random-etags': 'the ETag is 16 random bytes in hex and -1, another for each upload (object-api-utils.go)',
  'forced-disposition': 'downloads come as attachments named after the last path element, not to be stored (Download)',
  'html-without-token':
    'a download without the token parameter, and any unknown path, gets the console page with 200 (web-router.go)',
  'require-mozilla':
    'without Mozilla in User-Agent, POST falls through to the S3 interface and the rest is refused with 403 XML (web-router.go, generic-handlers.go)',
  'recursive-remove':
    'a name ending in / removes all beneath it, an empty one all of the bucket; a missing key or a prefix ends the list, and success is said (RemoveObject)',
  'short-url-tokens': 'URL tokens live for 60 seconds (jwt.go)',
  'expired-401': 'an invalid or expired bearer token gets 401 without a body, on any path (auth-handler.go)',
  'strict-keys':
    'keys are file names: no . or .. elements, no //, leading / or backslash, 255 bytes an element, never both file and folder (object-api-utils.go, fs-v1.go)',
  'small-metadata': 'at most 2 KiB of user metadata and 8 KiB of headers (generic-handlers.go)',
  'query-metadata': 'metadata is read from the query as well (handler-utils.go)',
  'moving-creation-date': "a bucket's creationDate moves when an entry at its root comes or goes (fs-v1.go)",
  'plain-deals':
    'deals as the interface has them: no client tokens and progress, no state of a deal, no list of providers, no eviction (web-router.go)',
  'unchecked-deals':
    'terms of deals are not looked at and FastRetrival is not known; what will not do fails in sending, a body that is not JSON of texts gets 200 and a text (SendDeal)',
  'empty-bucket-deals': 'a deal is made of an empty bucket as well (SendDeals)',
  'history-only': 'retrieving an object tells its deals and brings nothing back (RetrieveDeal)',
  'retrieve-500': 'retrieving what no deal was made of fails with 500 (RetrieveDeal, RetrieveDeals)',
  'retrieve-one-segment':
    'retrieving takes the object as one path segment; a slash in its name must be percent-encoded, or the console page is served (web-router.go)',
} as const satisfies Record<string, string>

export type QuirkName = keyof typeof quirks

export const quirkNames: readonly QuirkName[] = Object.freeze(Object.keys(quirks) as QuirkName[])

/** All quirks together: a gateway as the public ones are. */
export const legacy: readonly QuirkName[] = quirkNames

/** Reads `none`, `legacy`, or names joined by commas. Throws RangeError on a name that is none. */
export function parseQuirks(text: string): readonly QuirkName[] {
  if (text === 'none' || text === '') return []
  if (text === 'legacy') return legacy
  return text.split(',').map((part) => {
    const name = part.trim()
    if (!Object.hasOwn(quirks, name)) {
      throw new RangeError(
        `"${name}" is no gateway quirk: known are none, legacy, or some of ${quirkNames.join(', ')} joined by commas`,
      )
    }
    return name as QuirkName
  })
}

/** What the gateway does beyond the specification. Advertised in web.ServerInfo, because a client relies on it. */
export type Feature =
  | 'paged-listing'
  | 'object-head'
  | 'exact-remove'
  | 'any-key'
  | 'deal-tokens'
  | 'deal-status'
  | 'deal-providers'
  | 'deal-eviction'
  | 'fixed-creation-date'
  | 'network-control'

const contradictions: Record<Feature, readonly QuirkName[]> = {
  'paged-listing': ['one-level-listing', 'unsorted-listing', 'year-one-prefixes', 'random-etags'],
  'object-head': ['ignore-range', 'no-head', 'no-upload-etag', 'random-etags', 'forced-disposition'],
  'exact-remove': ['recursive-remove'],
  'any-key': ['strict-keys'],
  'deal-tokens': ['plain-deals'],
  'deal-status': ['plain-deals'],
  'deal-providers': ['plain-deals'],
  // What cannot be brought back is not to be given up.
  'deal-eviction': ['plain-deals', 'history-only'],
  'fixed-creation-date': ['moving-creation-date'],
  'network-control': ['plain-deals'],
}

/** @param controlled whether the storage network can be told what to do */
export function featuresOf(active: ReadonlySet<QuirkName>, controlled: boolean): Feature[] {
  return (Object.keys(contradictions) as Feature[]).filter(
    (feature) =>
      (feature !== 'network-control' || controlled) && !contradictions[feature].some((quirk) => active.has(quirk)),
  )
}
