import { argument, KEY, put, type Row } from './row.js'

export const bucketNames: Row[] = [
  ...[
    'ab',
    'Upper',
    'under_score',
    '-first',
    'last-',
    '.first',
    'two..dots',
    'dot.-hyphen',
    'hyphen-.dot',
    '192.168.5.4',
  ],
  ...[
    'a'.repeat(64),
    'sp%20ace',
    'per%25cent',
    'colon:',
    'at@sign',
    'plus+',
    'ex!clamation',
    'st*r',
    '%C3%BCber',
    'a%2Cb',
  ],
].map(
  (name): Row => [
    `CreateBucket ${name}`,
    { method: 'PUT', target: `/${name}` },
    400,
    'InvalidBucketName',
    {
      BucketName: decodeURIComponent(name),
    },
  ],
)

export const absent: Row[] = [
  ...['', '?list-type=2', '?versions', '?uploads', '?location', '?cors', '?tagging', '?lifecycle', '?versioning'],
  ...['?notification', '?encryption', '?website', '?replication', '?logging', '?requestPayment', '?object-lock'],
].map(
  (query): Row => [
    `GET absent bucket ${query}`,
    { target: `/absent-bucket${query}` },
    404,
    'NoSuchBucket',
    {
      BucketName: 'absent-bucket',
    },
  ],
)
absent.push(
  ['PutObject', { ...put({}), target: '/absent-bucket/k' }, 404, 'NoSuchBucket', { BucketName: 'absent-bucket' }],
  ['GetObject', { target: '/absent-bucket/k' }, 404, 'NoSuchBucket', { BucketName: 'absent-bucket' }],
  [
    'DeleteBucket',
    { method: 'DELETE', target: '/absent-bucket' },
    404,
    'NoSuchBucket',
    { BucketName: 'absent-bucket' },
  ],
  ['CreateMultipartUpload', { method: 'POST', target: '/absent-bucket/k?uploads' }, 404, 'NoSuchBucket'],
  ['GetObject, key', { target: '/rows/absent%20%C3%BC' }, 404, 'NoSuchKey', { Key: 'absent ü' }],
  ['GetObjectTagging', { target: '/rows/absent?tagging' }, 404, 'NoSuchKey', { Key: 'absent' }],
  [
    'GetObjectAttributes',
    { target: '/rows/absent?attributes', headers: { 'x-amz-object-attributes': 'ETag' } },
    404,
    'NoSuchKey',
    { Key: 'absent' },
  ],
  [
    'CopyObject',
    { method: 'PUT', target: '/rows/new', headers: { 'x-amz-copy-source': '/rows/absent' } },
    404,
    'NoSuchKey',
  ],
  // s3/compatibility has the other settings.
  ['GetBucketCors', { target: '/rows?cors' }, 404, 'NoSuchCORSConfiguration', { BucketName: 'rows' }],
)

export const listings: Row[] = [
  ['ListObjects', '/rows?', 'max-keys'],
  ['ListObjectsV2', '/rows?list-type=2&', 'max-keys'],
  ['ListObjectVersions', '/rows?versions&', 'max-keys'],
  ['ListMultipartUploads', '/rows?uploads&', 'max-uploads'],
  ['ListParts', '/rows/upload?uploadId={upload}&', 'max-parts'],
].flatMap(([name, target, size]): Row[] => [
  ...['-1', '2147483648', 'abc', '1.5', '0x10', '%20'].map(
    (value): Row => [
      `${name} ${size}=${value}`,
      { target: `${target}${size}=${value}` },
      400,
      'InvalidArgument',
      { ArgumentName: size ?? '', ArgumentValue: decodeURIComponent(value) },
    ],
  ),
  ...(name === 'ListParts'
    ? []
    : [
        [
          `${name} encoding-type`,
          { target: `${target}encoding-type=base64` },
          400,
          'InvalidArgument',
          argument('encoding-type', 'base64'),
        ] as Row,
      ]),
])
listings.push(
  ['list-type=3', { target: '/rows?list-type=3' }, 400, 'InvalidArgument', argument('list-type', '3')],
  [
    'a made-up token',
    { target: '/rows?list-type=2&continuation-token=x' },
    400,
    'InvalidArgument',
    { ArgumentName: 'continuation-token' },
  ],
  [
    'part-number-marker',
    { target: '/rows/upload?uploadId={upload}&part-number-marker=x' },
    400,
    'InvalidArgument',
    argument('part-number-marker', 'x'),
  ],
  ['max-buckets=0', { target: '/?max-buckets=0' }, 400, 'InvalidArgument', argument('max-buckets', '0')],
  ['max-buckets=10001', { target: '/?max-buckets=10001' }, 400, 'InvalidArgument', argument('max-buckets', '10001')],
)

export const reads: Row[] = [
  ...['0', '10001', '-1', 'x', '1.5', ''].map(
    (part): Row => [
      `GET partNumber=${part}`,
      { target: `${KEY}?partNumber=${part}` },
      400,
      'InvalidArgument',
      { ArgumentName: 'partNumber', ArgumentValue: part },
    ],
  ),
  [
    'a part that is not there',
    { target: `${KEY}?partNumber=2` },
    416,
    'InvalidPartNumber',
    { PartNumberRequested: '2', ActualPartCount: '1' },
  ],
  ['a part and a range', { target: `${KEY}?partNumber=1`, headers: { range: 'bytes=0-1' } }, 400, 'InvalidRequest'],
  ...['bytes=100-', 'bytes=100-200', 'bytes=-0'].map(
    (range): Row => [
      range,
      { target: KEY, headers: { range } },
      416,
      'InvalidRange',
      { ActualObjectSize: '3', RangeRequested: range },
    ],
  ),
  ...['x', 'NULL', '3/L4kqtJlcpXroDTDmJ'].map(
    (version): Row => [
      `versionId=${version}`,
      { target: `${KEY}?versionId=${encodeURIComponent(version)}` },
      400,
      'InvalidArgument',
      argument('versionId', version),
    ],
  ),
  ['an empty versionId', { target: `${KEY}?versionId=` }, 400, 'InvalidArgument', argument('versionId', '')],
  ['If-Match', { target: KEY, headers: { 'if-match': '"x"' } }, 412, 'PreconditionFailed', { Condition: 'If-Match' }],
  [
    'If-Unmodified-Since',
    { target: KEY, headers: { 'if-unmodified-since': 'Thu, 01 Jan 2015 00:00:00 GMT' } },
    412,
    'PreconditionFailed',
    { Condition: 'If-Unmodified-Since' },
  ],
  ['no attributes', { target: `${KEY}?attributes` }, 400, 'InvalidRequest'],
  [
    'empty attributes',
    { target: `${KEY}?attributes`, headers: { 'x-amz-object-attributes': '' } },
    400,
    'InvalidRequest',
  ],
  [
    'unknown attributes',
    { target: `${KEY}?attributes`, headers: { 'x-amz-object-attributes': 'ETag,Colour' } },
    400,
    'InvalidArgument',
    argument('x-amz-object-attributes'),
  ],
  [
    'overrides without a signature',
    { target: `${KEY}?response-content-type=a`, anonymous: true },
    400,
    'InvalidRequest',
  ],
  ['anonymous', { target: KEY, anonymous: true }, 403, 'AccessDenied'],
]
