import t from 'tap'
import { codes } from '../../src/common/errors/codes.js'
import { isEmptyListing, type Subject, translate } from '../../src/gateway/errors.js'

type Row = readonly [text: string, status: number, code: string]

/**
 * Texts with which the web interface of public gateways refuses, with the status of REST, and the code that a client
 * gets here. From the tables of errors in their sources: cmd/api-errors.go as far as `toAPIErrorCode` and
 * `toWebAPIError` lead to it, cmd/web-handlers.go, cmd/typed-errors.go, cmd/jwt.go. The three differ in few texts.
 */
const common: readonly Row[] = [
  ['Access Denied.', 403, 'AccessDenied'],
  ['All access to this bucket photos has been disabled.', 403, 'AccessDenied'],
  ['The access key ID you provided does not exist in our records', 403, 'AccessDenied'],
  ['The access key is invalid.', 400, 'AccessDenied'],
  ['Do not have enough permissions to access this resource', 403, 'AccessDenied'],
  ['JWT token missing', 400, 'AccessDenied'],
  ['Unable to generate shareable URL due to lack of read permissions', 403, 'AccessDenied'],
  ['Request has expired', 403, 'AccessDenied'],
  ["The difference between the request time and the server's time is too large.", 403, 'RequestTimeTooSkewed'],
  ['The Content-Md5 you specified did not match what we received.', 400, 'BadDigest'],
  [
    'The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.',
    409,
    'BucketAlreadyExists',
  ],
  [
    'Your previous request to create the named bucket succeeded and you already own it.',
    409,
    'BucketAlreadyOwnedByYou',
  ],
  ['The bucket you tried to delete is not empty', 409, 'BucketNotEmpty'],
  ['Your proposed upload exceeds the maximum allowed object size.', 400, 'EntityTooLarge'],
  ['Your proposed upload is smaller than the minimum allowed object size.', 400, 'EntityTooSmall'],
  ['You did not provide the number of bytes specified by the Content-Length HTTP header.', 400, 'IncompleteBody'],
  ['Data size is unspecified', 400, 'MissingContentLength'],
  ['We encountered an internal error, please try again.', 500, 'InternalError'],
  ['The requested object was modified and may be compromised', 206, 'InternalError'],
  ['Invalid arguments specified', 400, 'InvalidArgument'],
  ['Invalid policy type none', 400, 'InvalidArgument'],
  ['Your metadata headers exceed the maximum allowed metadata size.', 400, 'MetadataTooLarge'],
  ['The specified bucket is not valid.', 400, 'InvalidBucketName'],
  [
    'Bucket Name A is invalid. Lowercase letters, period, hyphen, numerals are the only allowed characters and should be minimum 3 characters in length.',
    400,
    'InvalidBucketName',
  ],
  [
    "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
    400,
    'InvalidPart',
  ],
  ['The requested range is not satisfiable', 416, 'InvalidRange'],
  ['Server side encryption specified with both SSE-C and SSE-S3 headers', 400, 'InvalidRequest'],
  [
    'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.',
    400,
    'InvalidRequest',
  ],
  ['Object name contains a leading slash.', 400, 'InvalidRequest'],
  ['Object name already exists as a directory.', 409, 'InvalidRequest'],
  ['Object-prefix is already an object, please choose a different object-prefix name.', 400, 'InvalidRequest'],
  ['Resource name contains bad components such as ".." or ".".', 400, 'InvalidRequest'],
  ['Your key is too long', 400, 'KeyTooLongError'],
  ['The specified method is not allowed against this resource.', 405, 'MethodNotAllowed'],
  ['The specified bucket does not exist', 404, 'NoSuchBucket'],
  ['The specified bucket photos does not exist.', 404, 'NoSuchBucket'],
  ['Bucket not found: photos', 404, 'NoSuchBucket'],
  ['The bucket policy does not exist', 404, 'NoSuchBucketPolicy'],
  ['The specified key a b does not exist', 404, 'NoSuchKey'],
  ['Object name invalid: photos/a', 404, 'NoSuchKey'],
  [
    'The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.',
    404,
    'NoSuchUpload',
  ],
  ['Functionality not implemented', 400, 'NotImplemented'],
  [
    'The request signature we calculated does not match the signature you provided. Check your key and signing method.',
    403,
    'SignatureDoesNotMatch',
  ],
  ["The provided 'x-amz-content-sha256' header does not match what was computed.", 400, 'XAmzContentSHA256Mismatch'],
  ['Object storage backend is unreachable', 503, 'ServiceUnavailable'],
  [
    'Storage backend has reached its minimum free disk threshold. Please delete a few objects to proceed.',
    507,
    'ServiceUnavailable',
  ],
]

/** Both of 2021. */
const later: readonly Row[] = [
  ['access key length should be between 3 and 20', 403, 'AccessDenied'],
  ['Object is WORM protected and cannot be overwritten or deleted', 403, 'AccessDenied'],
  ['Invalid version id specified', 400, 'InvalidArgument'],
  ['The operation is not valid for the current state of the object.', 403, 'InvalidObjectState'],
  ['Invalid storage class.', 400, 'InvalidStorageClass'],
  ['The lifecycle configuration does not exist', 404, 'NoSuchLifecycleConfiguration'],
  ['The TagSet does not exist', 404, 'NoSuchTagSet'],
  ['The specified version does not exist.', 404, 'NoSuchVersion'],
  ['Bucket quota exceeded', 400, 'QuotaExceeded'],
  ['We encountered an internal error, please try again.: cause(file not found)', 500, 'InternalError'],
  ['A timeout occurred while trying to lock a resource, please reduce your request rate', 503, 'ServiceUnavailable'],
  ['Resource requested is unreadable, please reduce your request rate', 503, 'SlowDown'],
  ['Client disconnected before response was ready', 499, 'ServiceUnavailable'],
]

const servers: Readonly<Record<string, readonly Row[]>> = {
  'MinIO RELEASE.2019-09-11': [
    ['The specified key does not exist.', 404, 'NoSuchKey'],
    ['Authentication failed, check your access credentials', 403, 'AccessDenied'],
    ['The bucket lifecycle configuration does not exist', 404, 'NoSuchLifecycleConfiguration'],
    ['A timeout occurred while trying to lock a resource', 408, 'ServiceUnavailable'],
    ['Please reduce your request', 503, 'SlowDown'],
    // It sends the texts of all other internal errors as they are, with 500.
    ['Bucket already owned by you: photos', 500, 'BucketAlreadyOwnedByYou'],
    ['Bucket exists: photos', 500, 'BucketAlreadyOwnedByYou'],
    ['Bucket not empty: photos', 500, 'BucketNotEmpty'],
    ['Bucket name invalid: a', 500, 'InvalidBucketName'],
    ['Object not found: photos/a', 500, 'NoSuchKey'],
    ['Object name too long: photos/a', 500, 'KeyTooLongError'],
    ['Object exists on : photos as directory a', 500, 'InvalidRequest'],
    ['Prefix access is denied: photos/a', 500, 'InvalidRequest'],
    ['All access to this object has been disabled', 500, 'AccessDenied'],
    ['photos/ahas incomplete body', 500, 'IncompleteBody'],
    ['size of the object greater than what is allowed(5G)', 500, 'EntityTooLarge'],
    ['The requested range "bytes 1 -> 2 of 1" is not satisfiable.', 500, 'InvalidRange'],
    ['No bucket policy configuration found for bucket: photos', 500, 'NoSuchBucketPolicy'],
    ['Storage reached its minimum free disk threshold.', 500, 'ServiceUnavailable'],
    ['disk path full', 500, 'ServiceUnavailable'],
    ['Storage resources are insufficient for the write operation.', 500, 'ServiceUnavailable'],
  ],
  'MinIO RELEASE.2021-06-17': [
    ['The specified key does not exist.', 404, 'NoSuchKey'],
    ['Authentication failed, check your access credentials', 403, 'AccessDenied'],
    ...later,
  ],
  'FS3 2.0': [
    ['The specified object does not exist.', 404, 'NoSuchKey'],
    ['Authentication failed, check your FS3 credentials', 403, 'AccessDenied'],
    ['Authentication failed, check your FS3 token', 401, 'AccessDenied'],
    ['Authentication failed, FS3 token missing', 401, 'AccessDenied'],
    ...later,
  ],
}

const subject: Subject = { bucket: 'photos', key: 'a' }

function coded(status: number, text: string, of = subject): string {
  return translate({ kind: 'http', status, text, headerCode: undefined }, of).code
}

for (const [server, own] of Object.entries(servers)) {
  t.test(`the texts of ${server}`, async (t) => {
    for (const [text, status, code] of [...common, ...own]) {
      t.hasProp(codes, code)
      t.equal(translate({ kind: 'rpc', text, dataCode: undefined }, subject).code, code, `JSON-RPC: ${text}`)
      t.equal(coded(status, text), code, `${status}: ${text}`)
      const envelope = JSON.stringify({ data: { filename: '' }, status: 'fail', message: text })
      t.equal(coded(status, envelope), code, `${status} in the envelope of FS3: ${text}`)
    }
  })
}

t.test('where the gateway does not know a text, its status decides', async (t) => {
  const decided = {
    400: 'InvalidRequest',
    403: 'AccessDenied',
    404: 'NoSuchKey',
    409: 'OperationAborted',
    500: 'InternalError',
  }
  for (const text of ['No such thing here.', '{"data":null,"status":"fail","message":"Es gibt das Objekt nicht."}']) {
    for (const [status, code] of Object.entries(decided)) t.equal(coded(Number(status), text), code)
    t.equal(coded(404, text, { bucket: 'photos' }), 'NoSuchBucket')
    const toCall = { kind: 'http', status: 404, text, headerCode: undefined, toCall: true } as const
    t.equal(translate(toCall, subject).code, 'InternalError', 'JSON-RPC is not there: the address is wrong')
  }
})

t.test('what another server says about a path is no missing object', async (t) => {
  const pages = ['', '<html><h1>404 Not Found</h1></html>', '404 page not found\n', 'default backend - 404']
  const json = ['{"message":"no Route matched with those values"}', '["status","fail"]']
  for (const text of [...pages, ...json]) t.equal(coded(404, text), 'InternalError', text)
})

t.test('an object that vanishes under a listing does not make the listing empty', async (t) => {
  const failed = (text: string) => translate({ kind: 'rpc', text, dataCode: undefined }, { bucket: 'photos' })
  t.equal(isEmptyListing(failed('Object name invalid: photos#a'), 'photos', 'a'), true)
  t.equal(isEmptyListing(failed('Object not found: photos/a'), 'photos', 'a'), false)
})
