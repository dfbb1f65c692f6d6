import { type Ask, invalid, KEY, type Row } from './row.js'

const M = '400 AuthorizationHeaderMalformed'
const Q = '400 AuthorizationQueryParametersError'
const DENIED = '403 AccessDenied'
const MISMATCH = '403 SignatureDoesNotMatch'
const UNKNOWN = ['403 InvalidAccessKeyId', { AWSAccessKeyId: 'UNKNOWN' }] as const
const ZEROS = '0'.repeat(64)

/** Replaces in the Authorization header. */
const auth = (from: string | RegExp, to: string): Ask => ({
  target: KEY,
  edit: (headers) => ({ ...headers, authorization: (headers.authorization ?? '').replace(from, to) }),
})
const header = (name: string, value: string | undefined): Ask => ({
  target: KEY,
  edit: (headers) => ({ ...headers, [name]: value }),
})
const link = (from: string | RegExp, to: string): Ask => ({ target: KEY, link: (query) => query.replace(from, to) })
const AUTHORIZATION = invalid('Authorization')
const version2 = (date: Record<string, string>): Ask => ({
  target: KEY,
  anonymous: true,
  headers: { authorization: 'AWS UNKNOWN:c2ln', ...date },
})
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds

export const headers: Row[] = [
  ['no Credential', auth(/Credential=[^,]*,/, ''), M],
  ['no SignedHeaders', auth(/SignedHeaders=[^,]*,/, ''), M],
  ['no Signature', auth(/,Signature=.*/, ''), M],
  ['an empty Credential', auth(/Credential=[^,]*/, 'Credential='), M],
  ['a short Credential', auth(/Credential=[^,]*/, 'Credential=a/b'), M],
  ['a date that is none', auth(/\/\d{8}\//, '/today/'), M],
  ['another region', auth('/us-east-1/', '/eu-west-1/'), M, { Region: 'us-east-1' }],
  ['another service', auth('/s3/', '/ec2/'), M],
  ['another terminal', auth('aws4_request', 'aws5_request'), M],
  ['another day', auth(/\/\d{8}\//, '/20130524/'), M],
  ['a component twice', auth(/$/, ',Signature=0'), M],
  ['an unknown component', auth(/$/, ',Colour=red'), M],
  ['nothing', header('authorization', ''), ...AUTHORIZATION],
  ['Basic', header('authorization', 'Basic YTpi'), ...AUTHORIZATION],
  ['an unknown key id', auth(/Credential=[^/]*/, 'Credential=UNKNOWN'), ...UNKNOWN],
  [
    'a wrong signature',
    auth(/Signature=.*/, `Signature=${ZEROS}`),
    MISMATCH,
    {
      AWSAccessKeyId: /./,
      SignatureProvided: ZEROS,
      StringToSign: /^AWS4-HMAC-SHA256\n/,
      StringToSignBytes: /^41 57 53 34 /,
      CanonicalRequest: /^GET\n/,
      CanonicalRequestBytes: /^47 45 54 0a /,
    },
  ],
  ['one word', header('authorization', 'AWS4-HMAC-SHA256'), ...AUTHORIZATION],
  ['a signed hash that is not sent', header('x-amz-content-sha256', undefined), '400 InvalidRequest'],
  ['a host that is not signed', auth('SignedHeaders=host;', 'SignedHeaders='), DENIED, { HeadersNotSigned: 'host' }],
  ['a header that is not signed', header('x-amz-meta-a', '1'), DENIED, { HeadersNotSigned: 'x-amz-meta-a' }],
  ['no date', header('x-amz-date', undefined), DENIED],
  ...['Bad Date', '', '20260231T000000Z'].map((date): Row => [`the date ${date}`, header('x-amz-date', date), DENIED]),
  [
    'an old date',
    {
      target: KEY,
      edit: ({ authorization = '', ...all }) => ({
        ...{ ...all, 'x-amz-date': '20130524T000000Z' },
        authorization: authorization.replace(/\/\d{8}\//, '/20130524/'),
      }),
    },
    '403 RequestTimeTooSkewed',
    { RequestTime: '2013-05-24T00:00:00Z', ServerTime: /^\d{4}-/, MaxAllowedSkewMilliseconds: '900000' },
  ],
  ['a temporary key', { target: KEY, headers: { 'x-amz-security-token': 'x' } }, '400 InvalidToken'],
  ['a hash that is none', header('x-amz-content-sha256', 'zero'), ...invalid('x-amz-content-sha256', 'zero')],
  ['signed with version 2: no colon', header('authorization', 'AWS HAHAHA'), ...AUTHORIZATION],
  ['signed with version 2: an unknown key id', version2({ date: new Date().toUTCString() }), ...UNKNOWN],
  ...['Bad Date', '', 'Tue, 07 Jul 1950 21:53:04 GMT'].map(
    (date): Row => [`signed with version 2: ${date}`, version2({ 'x-amz-date': date }), DENIED],
  ),
  ...['Tue, 07 Jul 2010 21:53:04 GMT', 'Tue, 07 Jul 9999 21:53:04 GMT'].map(
    (date): Row => [
      `signed with version 2: ${date}`,
      version2({ 'x-amz-date': date }),
      '403 RequestTimeTooSkewed',
      { MaxAllowedSkewMilliseconds: '900000' },
    ],
  ),
]

export const queries: Row[] = [
  ...['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders', 'Signature'].map(
    (name): Row => [`no X-Amz-${name}`, link(new RegExp(`&?X-Amz-${name}=[^&]*`), ''), Q],
  ),
  ...['-1', '604801', 'x', '1.5', ''].map(
    (expires): Row => [`X-Amz-Expires=${expires}`, link(/X-Amz-Expires=[^&]*/, `X-Amz-Expires=${expires}`), Q],
  ),
  ['X-Amz-Expires=0', link(/X-Amz-Expires=[^&]*/, 'X-Amz-Expires=0'), '403 AccessDenied', { 'X-Amz-Expires': '0' }],
  ['another algorithm', link('AWS4-HMAC-SHA256', 'HMAC'), Q],
  ['another region', link('us-east-1', 'eu-west-1'), Q, { Region: 'us-east-1' }],
  ['another service', link('%2Fs3%2F', '%2Fec2%2F'), Q],
  ['a date that is none', link(/X-Amz-Date=[^&]*/, 'X-Amz-Date=today'), Q],
  ['another day', link(/%2F\d{8}%2F/, '%2F20130524%2F'), Q],
  [
    'SignedHeaders without host',
    link(/SignedHeaders=host/, 'SignedHeaders=date'),
    '403 AccessDenied',
    { HeadersNotSigned: 'host' },
  ],
  ['an algorithm of S3 that is none here', link('HMAC-SHA256', 'ECDSA-P256-SHA256'), Q],
  ['a parameter twice', link(/$/, '&X-Amz-Expires=1'), Q],
  [
    'an expired URL',
    {
      target: KEY,
      link: (query) =>
        query.replace(/X-Amz-Date=\d{8}/, 'X-Amz-Date=20130524').replace(/%2F\d{8}%2F/, '%2F20130524%2F'),
    },
    DENIED,
    { 'X-Amz-Expires': '300', Expires: /^2013-/, ServerTime: /^\d{4}-/ },
  ],
  ['a wrong signature', link(/Signature=.*/, `Signature=${ZEROS}`), MISMATCH, { SignatureProvided: ZEROS }],
  ['signed twice', link(/$/, '&AWSAccessKeyId=a&Signature=b&Expires=9999999999'), ...AUTHORIZATION],
  ...[
    ['no Signature', 'AWSAccessKeyId=a&Expires=9999999999', DENIED],
    ['no Expires', 'AWSAccessKeyId=a&Signature=b', DENIED],
    ['Expires that is no time', 'AWSAccessKeyId=a&Signature=b&Expires=soon', DENIED],
    ['expired', 'AWSAccessKeyId=a&Signature=b&Expires=1175139620', DENIED],
    ['eight days', `AWSAccessKeyId=a&Signature=b&Expires=${inSeconds(691_200)}`, Q],
    ['an unknown key id', `AWSAccessKeyId=a&Signature=b&Expires=${inSeconds(86_400)}`, '403 InvalidAccessKeyId'],
  ].map(
    ([what, query, answer = '']): Row => [`version 2: ${what}`, { target: `${KEY}?${query}`, anonymous: true }, answer],
  ),
]
