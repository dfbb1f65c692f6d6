import { type Feature, features } from '../features.js'

/**
 * Deviations of public deployments from the expected behaviour, one flag each, so that a client can be tested against
 * each alone. Recorded from MinIO RELEASE.2019-09-11T19-53-16Z
 * (https://github.com/minio/minio/tree/RELEASE.2019-09-11T19-53-16Z/cmd, `web-handlers.go` unless another file is
 * named) and filswan/fs3 v2.0.0 (https://github.com/filswan/fs3, `cmd/web-handlers.go`).
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
  'no-text-params':
    '`"params": ""` is refused, though the interface writes it for calls without params (gorilla/rpc v2/json2)',
  'missing-bucket-texts': 'a missing bucket has three texts, by method (toWebAPIError, api-errors.go)',
  'fs3-texts':
    'a missing object is "the specified object", a failed log-in names FS3, and errors of upload and download come in the envelope of deals; not part of `legacy` (filswan/fs3 v2.0.0, api-errors.go, jwt.go, writeWebErrorResponse)',
  'ignore-range':
    'Range and conditional headers are ignored on download, though Accept-Ranges is announced (Download, api-headers.go)',
  'no-head': 'HEAD on download gets the console page with 200 (web-router.go)',
  'capital-service-word':
    'the JSON-RPC service is `Web`, not `web`; not part of `legacy` (MinIO up to RELEASE.2020-11-19, web-router.go)',
  'folder-prefixes':
    'a folder object is listed as a prefix only, downloaded while it is empty, left alone by web.RemoveObject, and removed with the last object beneath it (fs-v1.go)',
  'erasure-folders':
    'instead of that, a folder object is listed at the head of its own level, and removed by its name with `__XLDIR__` for the final slash; not part of `legacy` (MinIO RELEASE.2021-06-17 with several drives, object-api-utils.go)',
  'root-name-listings':
    'a listing of part of the root of a bucket, by a prefix without a slash, shows objects as folders and folders not at all; not part of `legacy` (MinIO RELEASE.2021-06-17 with several drives, when several clients list)',
  'fs-json-listings':
    'an empty listing fails in a bucket that holds an object `fs.json` (MinIO RELEASE.2021-06-17 with one folder, fs-v1.go)',
  'no-upload-etag': 'an upload is answered by nothing but 200; no extra headers; an ETag given is ignored (Upload)',
  'random-etags': 'the ETag is 16 random bytes in hex and -1, another for each upload (object-api-utils.go)',
  'forced-disposition': 'downloads come as attachments named after the last path element, not to be stored (Download)',
  'raw-disposition':
    'control characters at the end of a key stand in Content-Disposition as they are, which breaks the answer to a download (Download)',
  'line-feed-keys':
    'an upload to a key with a line feed is taken for a request of S3: 400 MalformedXML; not part of `legacy` (MinIO RELEASE.2019-09-11, web-router.go)',
  'folder-clash-texts':
    'an object beneath an object is refused with 500 `Parent is object`, one in place of a folder with 500 `Prefix access is denied`; not part of `legacy` (MinIO RELEASE.2019-09-11 with several drives)',
  'html-without-token':
    'a download without the token parameter, and any unknown path, gets the console page with 200 (web-router.go)',
  'require-mozilla':
    'without Mozilla in User-Agent, POST falls through to the S3 interface and the rest is refused with 403 XML (web-router.go, generic-handlers.go)',
  'recursive-remove':
    'a name ending in / removes all beneath it, an empty one all of the bucket; a missing key or a prefix ends the list, and success is said (RemoveObject)',
  'unordered-writes':
    'uploads and removals take no fence and happen in the order in which they are carried out; a complete body is stored although its sender has gone (Upload, RemoveObject)',
  'forgotten-stores':
    'nothing is remembered about the state stores of clients: there is no web.StateEpoch (web-router.go)',
  'untold-quotas':
    'nothing tells or sets quotas: there is no web.UploadQuota, web.BucketQuota, web.SetBucketQuota or web.BucketNumbers (web-router.go)',
  'no-object-records':
    'nothing of a client is kept with an object: there is no web.SetObjectRecord (web-router.go, Upload)',
  'no-versions':
    'buckets have one version of each object and no object lock: there is no web.SetBucketVersioning (web-router.go)',
  'taken-names': 'making a bucket whose name another account has is answered as if the caller owned it (MakeBucket)',
  'foreign-auth-failures':
    'an upload or download that the bucket of another account does not allow is refused with the text of a wrong log-in (Upload, Download)',
  'short-url-tokens': 'URL tokens live for 60 seconds (jwt.go)',
  'telling-log-ins':
    'a refused log-in says whether the access key is unknown or too short, or the secret key wrong or too short (Login)',
  'expired-401': 'an invalid or expired bearer token gets 401 without a body, on any path (auth-handler.go)',
  'strict-keys':
    'keys are file names: no . or .. elements, no //, leading / or backslash, 255 bytes an element, never both file and folder (object-api-utils.go, fs-v1.go)',
  'small-metadata': 'at most 2 KiB of user metadata and 8 KiB of headers (generic-handlers.go)',
  'query-metadata': 'metadata is read from the query as well (handler-utils.go)',
  'moving-creation-date': "a bucket's creationDate moves when an entry at its root comes or goes (fs-v1.go)",
  'plain-deals':
    'deals as the interface has them: no client tokens and progress, no state of a deal, no list of providers, no eviction, no verification (web-router.go)',
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

/** Quirks of single versions or layouts, which contradict other public gateways. */
const special: readonly QuirkName[] = [
  'capital-service-word',
  'erasure-folders',
  'root-name-listings',
  'line-feed-keys',
  'folder-clash-texts',
  'fs3-texts',
]

/** Behaves like a public gateway: all quirks except those that contradict others. */
export const legacy: readonly QuirkName[] = Object.freeze(quirkNames.filter((name) => !special.includes(name)))

/** Parses `none`, or names joined by commas, which may include `legacy`. Throws RangeError on an unknown name. */
export function parseQuirks(text: string): readonly QuirkName[] {
  if (text === 'none' || text === '') return []
  return text.split(',').flatMap((part) => {
    const name = part.trim()
    if (name === 'legacy') return legacy
    if (!Object.hasOwn(quirks, name)) {
      throw new RangeError(
        `"${name}" is no gateway quirk: known are none, or some of legacy, ${quirkNames.join(', ')} joined by commas`,
      )
    }
    return name as QuirkName
  })
}

const ofOneVersion: Record<Exclude<Feature, 'versions' | 'locks'>, readonly QuirkName[]> = {
  'paged-listing': [
    'one-level-listing',
    'unsorted-listing',
    'year-one-prefixes',
    'random-etags',
    'folder-prefixes',
    'erasure-folders',
    'root-name-listings',
    'fs-json-listings',
  ],
  'object-head': ['ignore-range', 'no-head', 'no-upload-etag', 'random-etags', 'forced-disposition', 'raw-disposition'],
  'exact-remove': ['recursive-remove', 'folder-prefixes', 'erasure-folders'],
  'any-key': ['strict-keys', 'folder-prefixes', 'erasure-folders'],
  'object-checksums': ['no-object-records'],
  'deal-tokens': ['plain-deals'],
  'deal-status': ['plain-deals'],
  'deal-providers': ['plain-deals'],
  // A copy that cannot be restored must not be evicted.
  'deal-eviction': ['plain-deals', 'history-only'],
  'deal-verification': ['plain-deals'],
  'deal-list': ['plain-deals'],
  'offline-deals': ['plain-deals'],
  'fixed-creation-date': ['moving-creation-date'],
  'network-control': ['plain-deals'],
  // A removal that does not remove exactly the named object has no order among the writes to one key. An upload that
  // arrives twice is recognised by its ETag.
  'write-fences': ['unordered-writes', 'recursive-remove', 'folder-prefixes', 'erasure-folders', 'random-etags'],
  'state-epoch': ['forgotten-stores'],
  'upload-quota': ['untold-quotas'],
  'bucket-quota': ['untold-quotas'],
  'bucket-numbers': ['untold-quotas'],
  'object-records': ['no-object-records'],
}

// A version must have its place among the writes to its key, and be found by its generation in every way to look at it.
const ofVersions: readonly QuirkName[] = [
  'no-versions',
  ...ofOneVersion['write-fences'],
  ...ofOneVersion['paged-listing'],
  ...ofOneVersion['object-head'],
  ...ofOneVersion['any-key'],
]

const contradictions: Record<Feature, readonly QuirkName[]> = {
  ...ofOneVersion,
  versions: ofVersions,
  locks: ofVersions,
}

/**
 * The features of a gateway with these quirks, which withdraw what they contradict.
 * @param missing features that this gateway has no parts for, whatever its quirks
 */
export function featuresOf(active: ReadonlySet<QuirkName>, missing: ReadonlySet<Feature>): Feature[] {
  return features.filter(
    (feature) => !missing.has(feature) && !contradictions[feature].some((quirk) => active.has(quirk)),
  )
}
