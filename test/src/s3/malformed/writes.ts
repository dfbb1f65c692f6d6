import { invalid, KEY, md5, put, type Row, unmet } from './row.js'

const CHECKSUMS = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256']
const CRC32 = 'x-amz-checksum-crc32'
const tooLarge = (most: number) => ({ Size: String(most + 1), MaxSizeAllowed: String(most) })
export const writes: Row[] = [
  ...['x', 'AAAA', 'not base64!', '"1B2M2Y8AsgTpgAmY7PhCfg=="', '1B2M2Y8AsgTpgAmY7PhCfg'].map((value): Row => {
    return [`Content-MD5: ${value}`, put({ 'content-md5': value }), '400 InvalidDigest', { 'Content-MD5': value }]
  }),
  [
    'another Content-MD5',
    put({ 'content-md5': md5('other') }),
    '400 BadDigest',
    { ExpectedDigest: Buffer.from(md5('other'), 'base64').toString('hex'), CalculatedDigest: md5('data') },
  ],
  ...CHECKSUMS.flatMap((name): Row[] => [
    [`x-amz-checksum-${name}: x`, put({ [`x-amz-checksum-${name}`]: 'x' }), '400 InvalidRequest'],
    [`empty x-amz-checksum-${name}`, put({ [`x-amz-checksum-${name}`]: '' }), '400 InvalidRequest'],
  ]),
  ['an unknown checksum', put({ 'x-amz-checksum-blake3': 'AAAA' }), '400 InvalidRequest'],
  ['another checksum', put({ 'x-amz-checksum-crc32': 'AAAAAA==' }), '400 BadDigest'],
  ['two', put({ 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-checksum-crc32c': 'AAAAAA==' }), '400 InvalidRequest'],
  ['x-amz-sdk-checksum-algorithm', put({ 'x-amz-sdk-checksum-algorithm': 'ROT13' }), '400 InvalidRequest'],
  ['an algorithm without checksum', put({ 'x-amz-sdk-checksum-algorithm': 'CRC32' }), '400 InvalidRequest'],
  [
    'a checksum and a trailer',
    put({ 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-trailer': CRC32 }),
    '400 InvalidRequest',
  ],
  ['a trailer of a plain body', put({ 'x-amz-trailer': CRC32 }), '400 MalformedTrailerError'],
  ['a class', put({ 'x-amz-storage-class': 'WARM' }), '400 InvalidStorageClass', { StorageClassRequested: 'WARM' }],
  ['an empty storage class', put({ 'x-amz-storage-class': '' }), '400 InvalidStorageClass'],
  ...['a=1&a=2', '%GG=1', 'a=%ff'].map(
    (tags): Row => [`x-amz-tagging: ${tags}`, put({ 'x-amz-tagging': tags }), ...invalid('x-amz-tagging', tags)],
  ),
  ...[
    ['=1', ''],
    ['a%21=1', 'a!'],
    ['aws%3Ax=1', 'aws:x'],
    [`${'k'.repeat(129)}=1`, 'k'.repeat(129)],
    [`k=${'v'.repeat(257)}`, 'k'],
    ['k=a%3Bb', 'k'],
  ].map(([tags = '', TagKey = '']): Row => {
    return [`x-amz-tagging: ${tags.slice(0, 20)}`, put({ 'x-amz-tagging': tags }), '400 InvalidTag', { TagKey }]
  }),
  ['eleven tags', put({ 'x-amz-tagging': Array.from({ length: 11 }, (_, i) => `k${i}=`).join('&') }), '400 BadRequest'],
  ['both', put({ 'if-match': '"x"', 'if-none-match': '*' }), '501 NotImplemented', { Header: 'If-None-Match' }],
  ['If-None-Match on a key that is there', put({ 'if-none-match': '*' }, 'data', KEY), ...unmet('If-None-Match')],
  ['If-Match of another ETag', put({ 'if-match': '"x"' }, 'data', KEY), ...unmet('If-Match')],
  ['If-Match without object', put({ 'if-match': '"x"' }), '404 NoSuchKey'],
  ...[
    ['GOVERNANCE', undefined],
    [undefined, '2090-01-01T00:00:00Z'],
    ['governance', '2090-01-01T00:00:00Z'],
    ['GOVERNANCE', '2020-01-01T00:00:00Z'],
    ['GOVERNANCE', '2090-02-30T00:00:00Z'],
    ['GOVERNANCE', '2090'],
  ].map(([mode, until]): Row => {
    const ask = put({
      ...(mode && { 'x-amz-object-lock-mode': mode }),
      ...(until && { 'x-amz-object-lock-retain-until-date': until }),
    })
    return [`a lock ${mode} until ${until}`, ask, '400 InvalidArgument']
  }),
  ['a legal hold', put({ 'x-amz-object-lock-legal-hold': 'on' }), '400 InvalidArgument'],
  ['metadata of 2049 bytes', put({ 'x-amz-meta-a': 'v'.repeat(2048) }), '400 MetadataTooLarge', tooLarge(2048)],
  ['a key of 1025 bytes', put({}, 'data', `/rows/${'k'.repeat(1025)}`), '400 KeyTooLongError', tooLarge(1024)],
  ...['x', 'ftp://a.example/', `/${'a'.repeat(2048)}`].map((place): Row => {
    const ask = put({ 'x-amz-website-redirect-location': place })
    return [`a redirect to ${place.slice(0, 20)}`, ask, '400 InvalidRedirectLocation']
  }),
  ['a key that is no UTF-8', put({}, 'data', '/rows/%ff'), '400 InvalidURI'],
  ...['x-amz-server-side-encryption-context', 'x-amz-write-offset-bytes'].map(
    (name): Row => [name, put({ [name]: 'x' }), '501 NotImplemented', { Header: name }],
  ),
  ['a key without aws:kms', put({ 'x-amz-server-side-encryption-aws-kms-key-id': 'x' }), '400 InvalidArgument'],
  [
    'an unknown algorithm for a key of the client',
    put({ 'x-amz-server-side-encryption-customer-algorithm': 'x' }),
    '400 InvalidEncryptionAlgorithmError',
  ],
  ['two layers of encryption', put({ 'x-amz-server-side-encryption': 'aws:kms:dsse' }), '501 NotImplemented'],
  ['an unknown encryption', put({ 'x-amz-server-side-encryption': 'x' }), '400 InvalidArgument'],
  ...['renameObject', 'encryption', 'surprise'].map(
    (name): Row => [`PUT ?${name}`, put({}, 'data', `/rows/key?${name}`), '501 NotImplemented'],
  ),
]
