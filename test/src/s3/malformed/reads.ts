import { type Ask, invalid, KEY, put, type Row, unmet, wrong } from './row.js'

const get = (target: string, headers: Record<string, string> = {}): Ask => ({ target, headers })

export const bucketNames: Row[] = [
  ...'ab Upper under_score -first last- .first two..dots dot.-hyphen hyphen-.dot 192.168.5.4'.split(' '),
  ...'sp%20ace per%25cent colon: at@sign plus+ ex!clamation st*r %C3%BCber a%2Cb'.split(' '),
  'a'.repeat(64),
].map((name): Row => {
  const members = { BucketName: decodeURIComponent(name) }
  return [`CreateBucket ${name}`, { method: 'PUT', target: `/${name}` }, '400 InvalidBucketName', members]
})

const NO_BUCKET = ['404 NoSuchBucket', { BucketName: 'absent-bucket' }] as const
export const absent: Row[] = [
  ...['', '?list-type=2', '?versions', '?uploads', '?location', '?cors', '?tagging', '?lifecycle', '?versioning'],
  ...['?notification', '?encryption', '?website', '?replication', '?logging', '?requestPayment', '?object-lock'],
].map((query): Row => [`GET absent bucket ${query}`, get(`/absent-bucket${query}`), ...NO_BUCKET])
absent.push(
  ['PutObject', { ...put({}), target: '/absent-bucket/k' }, ...NO_BUCKET],
  ['GetObject', get('/absent-bucket/k'), ...NO_BUCKET],
  ['DeleteBucket', { method: 'DELETE', target: '/absent-bucket' }, ...NO_BUCKET],
  ['CreateMultipartUpload', { method: 'POST', target: '/absent-bucket/k?uploads' }, '404 NoSuchBucket'],
  ['GetObject, key', get('/rows/absent%20%C3%BC'), '404 NoSuchKey', { Key: 'absent ü' }],
  ['GetObjectTagging', get('/rows/absent?tagging'), '404 NoSuchKey', { Key: 'absent' }],
  [
    'Attributes',
    get('/rows/absent?attributes', { 'x-amz-object-attributes': 'ETag' }),
    '404 NoSuchKey',
    { Key: 'absent' },
  ],
  ['CopyObject', put({ 'x-amz-copy-source': '/rows/absent' }), '404 NoSuchKey'],
  // s3/compatibility has the other settings.
  ['GetBucketCors', get('/rows?cors'), '404 NoSuchCORSConfiguration', { BucketName: 'rows' }],
)

export const listings: Row[] = [
  ['/rows?', 'max-keys'],
  ['/rows?list-type=2&', 'max-keys'],
  ['/rows?versions&', 'max-keys'],
  ['/rows?uploads&', 'max-uploads'],
  ['/rows/upload?uploadId={upload}&', 'max-parts'],
].flatMap(([target, size = '']) =>
  ['-1', '2147483648', 'abc', '1.5', '0x10', '%20'].map(
    (value): Row => [
      `${target}${value}`,
      get(`${target}${size}=${value}`),
      ...invalid(size, decodeURIComponent(value)),
    ],
  ),
)
listings.push(
  ...['?', '?list-type=2&', '?versions&', '?uploads&'].map((query) =>
    wrong('encoding-type', get(`/rows${query}encoding-type=base64`), 'base64'),
  ),
  ['list-type=3', get('/rows?list-type=3'), ...invalid('list-type', '3')],
  ['a made-up token', get('/rows?list-type=2&continuation-token=x'), ...invalid('continuation-token')],
  wrong('part-number-marker', get('/rows/upload?uploadId={upload}&part-number-marker=x'), 'x'),
  ['max-buckets=0', get('/?max-buckets=0'), ...invalid('max-buckets', '0')],
  ['max-buckets=10001', get('/?max-buckets=10001'), ...invalid('max-buckets', '10001')],
)

export const reads: Row[] = [
  ...['0', '10001', '-1', 'x', '1.5', ''].map(
    (part): Row => [`GET partNumber=${part}`, get(`${KEY}?partNumber=${part}`), ...invalid('partNumber', part)],
  ),
  ['a part', get(`${KEY}?partNumber=2`), '416 InvalidPartNumber', { PartNumberRequested: '2', ActualPartCount: '1' }],
  ['a part and a range', get(`${KEY}?partNumber=1`, { range: 'bytes=0-1' }), '400 InvalidRequest'],
  ...['bytes=100-', 'bytes=100-200', 'bytes=-0'].map(
    (range): Row => [range, get(KEY, { range }), '416 InvalidRange', { ActualObjectSize: '3', RangeRequested: range }],
  ),
  ...['x', 'NULL', '3/L4kqtJlcpXroDTDmJ'].map((version) =>
    wrong('versionId', get(`${KEY}?versionId=${encodeURIComponent(version)}`), version),
  ),
  ['an empty versionId', get(`${KEY}?versionId=`), ...invalid('versionId', '')],
  ['If-Match', get(KEY, { 'if-match': '"x"' }), ...unmet('If-Match')],
  ['Since', get(KEY, { 'if-unmodified-since': 'Thu, 01 Jan 2015 00:00:00 GMT' }), ...unmet('If-Unmodified-Since')],
  ['no attributes', get(`${KEY}?attributes`), '400 InvalidRequest'],
  ['empty attributes', get(`${KEY}?attributes`, { 'x-amz-object-attributes': '' }), '400 InvalidRequest'],
  wrong('x-amz-object-attributes', get(`${KEY}?attributes`, { 'x-amz-object-attributes': 'ETag,Colour' })),
  ['not signed', { target: `${KEY}?response-content-type=a`, anonymous: true }, '400 InvalidRequest'],
  ['anonymous', { target: KEY, anonymous: true }, '403 AccessDenied'],
]
