/** What mutations put into requests: what is there, what nearly is, and what parsers trip over. */

export const buckets = [
  'fuzz',
  'fuzz',
  'fuzz',
  'fuzz',
  'fuzz-two',
  'no-such-bucket',
  '-',
  'UPPER',
  'a',
  'x.y',
  '..',
  '%66uzz',
  '__proto__',
]

export const keys = [
  ...['key', 'key', 'key', 'folder/', 'folder/a', 'a//b', '../x', '.', 'a%00b', '%ff', '%E2%82%AC', 'constructor'],
  ...['__proto__', 'k'.repeat(1025), '%2F', 'a+b', "a'b(c)"],
]

export const values = [
  ...['', '0', '1', '-1', '1000', '10001', '99999999999999999999', '1e3', 'NaN', 'null', 'true', 'url', '/'],
  ...['%00', '%ff', 'a'.repeat(2000), '__proto__', 'constructor', '{}', '[[[[', '<x/>', '2026-01-01T00:00:00Z'],
  ...['Thu, 01 Jan 1970 00:00:00 GMT', 'bytes=0-0', 'bytes=-5', 'bytes=9-1', '"*"', '*', 'MA==', 'eyJ2IjoxfQ=='],
  ...['xml', 'json'],
]

export const queryNames = `
  prefix delimiter marker max-keys continuation-token start-after encoding-type list-type versionId uploadId
  uploads partNumber tagging acl policy lifecycle cors delete restore notification publicAccessBlock attributes
  response-content-type response-expires format max-items expiry x-share x-deal x-id x-job __proto__ constructor
  toString fetch-owner key-marker upload-id-marker version-id-marker max-uploads max-parts part-number-marker
`
  .trim()
  .split(/\s+/)

export const headerNames = `
  range if-match if-none-match if-modified-since if-unmodified-since if-range content-type content-encoding
  content-md5 cache-control expires accept origin access-control-request-method prefer idempotency-key
  x-amz-client-token x-amz-acl x-amz-tagging x-amz-meta-a x-amz-meta-__proto__ x-amz-copy-source
  x-amz-copy-source-range x-amz-copy-source-if-match x-amz-metadata-directive x-amz-tagging-directive
  x-amz-storage-class x-amz-checksum-crc32 x-amz-checksum-algorithm x-amz-checksum-type x-amz-checksum-mode
  x-amz-sdk-checksum-algorithm x-amz-trailer x-amz-decoded-content-length x-amz-expected-bucket-owner
  x-amz-mp-object-size x-amz-object-attributes x-amz-max-parts x-amz-part-number-marker x-amz-object-ownership
  x-amz-transition-default-minimum-object-size x-amz-request-payer x-amz-security-token x-cloud-date
  x-forwarded-host
`
  .trim()
  .split(/\s+/)

export const headerValues = [
  ...values.filter((value) => !value.includes('%')),
  '/fuzz/key',
  'fuzz/folder/a',
  '/fuzz/no-such-key?versionId=null',
  'private',
  'public-read',
  'a=1&b=2',
  'GLACIER',
  'STANDARD',
  'COPY',
  'REPLACE',
  'CRC32',
  'SHA256',
  'FULL_OBJECT',
  'COMPOSITE',
  'x-amz-checksum-crc32',
  'aws-chunked',
  'application/json',
  'application/xml',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=b',
  'text/plain; charset=\u00ff',
  'https://example.com',
  'PUT',
  'ETag,ObjectSize,ObjectParts,Checksum,StorageClass',
  'AAAAAA==',
  '1B2M2Y8AsgTpgAmY7PhCfg==',
]

const rule =
  '<Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>never/</Prefix></Filter><Expiration><Days>3650</Days></Expiration></Rule>'

export const documents = [
  '',
  'hello',
  '<Delete><Object><Key>gone</Key></Object><Quiet>true</Quiet></Delete>',
  '<Delete><Object><Key>gone</Key><ETag>"x"</ETag></Object></Delete>',
  '<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>',
  `<LifecycleConfiguration>${rule}</LifecycleConfiguration>`,
  '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>',
  '<CreateBucketConfiguration><LocationConstraint>us-east-1</LocationConstraint></CreateBucketConfiguration>',
  '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"900150983cd24fb0d6963f7d28e17f72"</ETag></Part></CompleteMultipartUpload>',
  '<RestoreRequest><Days>1</Days><GlacierJobParameters><Tier>Standard</Tier></GlacierJobParameters></RestoreRequest>',
  '<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls></PublicAccessBlockConfiguration>',
  '<NotificationConfiguration></NotificationConfiguration>',
  '<AccessControlPolicy><Owner><ID>x</ID></Owner><AccessControlList></AccessControlList></AccessControlPolicy>',
  '<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>',
  '<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>',
  '<BucketLoggingStatus></BucketLoggingStatus>',
  '<ShareLinkRequest><Expiry>60</Expiry></ShareLinkRequest>',
  '{"Expiry": 60}',
  '{"Status": "Complete", "Result": {"a": [1, 2, {"b": null}]}}',
  '{"Status": "Failed", "FailureCode": "NoSuchKey"}',
  '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::fuzz/open/*"}]}',
  '{"MinerId":"f01001","DurationEpochs":"1000","Price":"0","Force":false}',
  '--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nformed\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc\r\n--b--\r\n',
  '3\r\nabc\r\n0\r\n\r\n',
  '3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n',
]

/** Put into documents. */
export const pieces = [
  '<',
  '>',
  '&',
  '&amp;',
  '&#0;',
  '&#x10FFFF;',
  '<:a/>',
  '<![CDATA[x]]>',
  '<!-- -->',
  '<?x?>',
  '<!',
  '\u0000',
  '\uffff',
  '{',
  '[',
  '"',
  '\\u0000',
  '__proto__',
  '<constructor/>',
  '<Key>',
  '</Key>',
  '-1',
  '1e999',
  'null',
  '\r\n',
  '--b',
  '<a>'.repeat(200),
  '['.repeat(5000),
  '{"a":'.repeat(3000),
]
