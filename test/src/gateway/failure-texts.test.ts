import t from 'tap'
import { codes } from '../../../common/errors/codes.js'
import { isEmptyListing, type Subject, translate } from '../../../src/gateway/errors.js'

/**
 * Texts with which the web interface of MinIO RELEASE.2019-09-11 and RELEASE.2021-06-17 and of FS3 2.0 refuses, or how
 * they begin, by the code that a client gets here. From the tables of errors in their sources: cmd/api-errors.go as
 * far as `toAPIErrorCode` and `toWebAPIError` lead to it, cmd/web-handlers.go, cmd/typed-errors.go, cmd/jwt.go. That
 * of 2019 sends the texts of other internal errors as they are.
 */
const texts: Readonly<Record<string, readonly string[]>> = {
  AccessDenied: [
    'Access Denied.',
    'All access to this bucket photos has been disabled.',
    'The access key ID you provided does not exist in our records',
    'The access key is invalid.',
    'Do not have enough permissions to access this resource',
    'JWT token missing',
    'Unable to generate shareable URL due to lack of read permissions',
    'Request has expired',
    'access key length should be between 3 and 20',
    'Object is WORM protected and cannot be overwritten or deleted',
    'Authentication failed, check your access credentials',
    'All access to this object has been disabled',
    'Authentication failed, check your FS3 credentials',
    'Authentication failed, check your FS3 token',
    'Authentication failed, FS3 token missing',
  ],
  BadDigest: ['The Content-Md5 you specified did not match what we received.'],
  BucketAlreadyExists: ['The requested bucket name is not available.'],
  BucketAlreadyOwnedByYou: [
    'Your previous request to create the named bucket succeeded and you already own it.',
    'Bucket already owned by you: photos',
    'Bucket exists: photos',
  ],
  BucketNotEmpty: ['The bucket you tried to delete is not empty', 'Bucket not empty: photos'],
  EntityTooLarge: [
    'Your proposed upload exceeds the maximum allowed object size.',
    'size of the object greater than what is allowed(5G)',
  ],
  EntityTooSmall: ['Your proposed upload is smaller than the minimum allowed object size.'],
  IncompleteBody: [
    'You did not provide the number of bytes specified by the Content-Length HTTP header.',
    'photos/ahas incomplete body',
  ],
  InternalError: [
    'We encountered an internal error, please try again.',
    'The requested object was modified and may be compromised',
    'We encountered an internal error, please try again.: cause(file not found)',
  ],
  InvalidArgument: ['Invalid arguments specified', 'Invalid policy type none', 'Invalid version id specified'],
  InvalidBucketName: ['The specified bucket is not valid.', 'Bucket Name A is invalid.', 'Bucket name invalid: a'],
  InvalidObjectState: ['The operation is not valid for the current state of the object.'],
  InvalidPart: ['One or more of the specified parts could not be found.'],
  InvalidRange: [
    'The requested range is not satisfiable',
    'The requested range "bytes 1 -> 2 of 1" is not satisfiable.',
  ],
  InvalidRequest: [
    'Server side encryption specified with both SSE-C and SSE-S3 headers',
    'The object was stored using a form of Server Side Encryption.',
    'Object name contains a leading slash.',
    'Object name already exists as a directory.',
    'Object-prefix is already an object, please choose a different object-prefix name.',
    'Resource name contains bad components such as ".." or ".".',
    'Object exists on : photos as directory a',
    'Prefix access is denied: photos/a',
  ],
  InvalidStorageClass: ['Invalid storage class.'],
  KeyTooLongError: ['Your key is too long', 'Object name too long: photos/a'],
  MetadataTooLarge: ['Your metadata headers exceed the maximum allowed metadata size.'],
  MethodNotAllowed: ['The specified method is not allowed against this resource.'],
  MissingContentLength: ['Data size is unspecified'],
  NoSuchBucket: [
    'The specified bucket does not exist',
    'The specified bucket photos does not exist.',
    'Bucket not found: photos',
  ],
  NoSuchBucketPolicy: ['The bucket policy does not exist', 'No bucket policy configuration found for bucket: photos'],
  NoSuchKey: [
    'The specified key a b does not exist',
    'Object name invalid: photos/a',
    'The specified key does not exist.',
    'Object not found: photos/a',
    'The specified object does not exist.',
  ],
  NoSuchLifecycleConfiguration: [
    'The lifecycle configuration does not exist',
    'The bucket lifecycle configuration does not exist',
  ],
  NoSuchTagSet: ['The TagSet does not exist'],
  NoSuchUpload: ['The specified multipart upload does not exist.'],
  NoSuchVersion: ['The specified version does not exist.'],
  NotImplemented: ['Functionality not implemented'],
  QuotaExceeded: ['Bucket quota exceeded'],
  RequestTimeTooSkewed: ["The difference between the request time and the server's time is too large."],
  ServiceUnavailable: [
    'Object storage backend is unreachable',
    'Storage backend has reached its minimum free disk threshold.',
    'A timeout occurred while trying to lock a resource, please reduce your request rate',
    'Client disconnected before response was ready',
    'A timeout occurred while trying to lock a resource',
    'Storage reached its minimum free disk threshold.',
    'disk path full',
    'Storage resources are insufficient for the write operation.',
  ],
  SignatureDoesNotMatch: ['The request signature we calculated does not match the signature you provided.'],
  SlowDown: ['Resource requested is unreadable, please reduce your request rate', 'Please reduce your request'],
  XAmzContentSHA256Mismatch: ["The provided 'x-amz-content-sha256' header does not match what was computed."],
}

const subject: Subject = { bucket: 'photos', key: 'a' }

function coded(status: number, text: string, of = subject): string {
  return translate({ kind: 'http', status, text, headerCode: undefined }, of).code
}

t.test('the texts of public gateways', async (t) => {
  for (const [code, all] of Object.entries(texts)) {
    t.hasProp(codes, code)
    for (const text of all) {
      t.equal(translate({ kind: 'rpc', text, dataCode: undefined }, subject).code, code, `JSON-RPC: ${text}`)
      const envelope = JSON.stringify({ data: { filename: '' }, status: 'fail', message: text })
      for (const body of [text, envelope]) t.equal(coded(500, body), code, body)
    }
  }
})

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
