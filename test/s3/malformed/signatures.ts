import { KEY, type Row } from './row.js'

const M = 'AuthorizationHeaderMalformed'
const Q = 'AuthorizationQueryParametersError'

/** Replaces in the Authorization header. */
const auth = (from: string | RegExp, to: string) => (headers: Readonly<Record<string, string>>) => ({
  ...headers,
  authorization: (headers.authorization ?? '').replace(from, to),
})
const header = (name: string, value: string | undefined) => (headers: Readonly<Record<string, string>>) => ({
  ...headers,
  [name]: value,
})
const link = (from: string | RegExp, to: string) => (query: string) => query.replace(from, to)

export const headers: Row[] = [
  ['no Credential', { target: KEY, edit: auth(/Credential=[^,]*,/, '') }, 400, M],
  ['no SignedHeaders', { target: KEY, edit: auth(/SignedHeaders=[^,]*,/, '') }, 400, M],
  ['no Signature', { target: KEY, edit: auth(/,Signature=.*/, '') }, 400, M],
  ['an empty Credential', { target: KEY, edit: auth(/Credential=[^,]*/, 'Credential=') }, 400, M],
  ['a short Credential', { target: KEY, edit: auth(/Credential=[^,]*/, 'Credential=a/b') }, 400, M],
  ['a date that is none', { target: KEY, edit: auth(/\/\d{8}\//, '/today/') }, 400, M],
  ['another region', { target: KEY, edit: auth('/us-east-1/', '/eu-west-1/') }, 400, M, { Region: 'us-east-1' }],
  ['another service', { target: KEY, edit: auth('/s3/', '/ec2/') }, 400, M],
  ['another terminal', { target: KEY, edit: auth('aws4_request', 'aws5_request') }, 400, M],
  ['another day', { target: KEY, edit: auth(/\/\d{8}\//, '/20130524/') }, 400, M],
  ['a component twice', { target: KEY, edit: auth(/$/, ',Signature=0') }, 400, M],
  ['an unknown component', { target: KEY, edit: auth(/$/, ',Colour=red') }, 400, M],
  [
    'nothing',
    { target: KEY, edit: header('authorization', '') },
    400,
    'InvalidArgument',
    { ArgumentName: 'Authorization' },
  ],
  [
    'Basic',
    { target: KEY, edit: header('authorization', 'Basic YTpi') },
    400,
    'InvalidArgument',
    { ArgumentName: 'Authorization' },
  ],
  [
    'an unknown key id',
    { target: KEY, edit: auth(/Credential=[^/]*/, 'Credential=UNKNOWN') },
    403,
    'InvalidAccessKeyId',
    { AWSAccessKeyId: 'UNKNOWN' },
  ],
  [
    'a wrong signature',
    { target: KEY, edit: auth(/Signature=.*/, `Signature=${'0'.repeat(64)}`) },
    403,
    'SignatureDoesNotMatch',
    {
      AWSAccessKeyId: /./,
      SignatureProvided: '0'.repeat(64),
      StringToSign: /^AWS4-HMAC-SHA256\n/,
      StringToSignBytes: /^41 57 53 34 /,
      CanonicalRequest: /^GET\n/,
      CanonicalRequestBytes: /^47 45 54 0a /,
    },
  ],
  [
    'a header that is not signed',
    { target: KEY, edit: header('x-amz-meta-a', '1') },
    403,
    'AccessDenied',
    { HeadersNotSigned: 'x-amz-meta-a' },
  ],
  ['no date', { target: KEY, edit: header('x-amz-date', undefined) }, 403, 'AccessDenied'],
  ['an unreadable date', { target: KEY, edit: header('x-amz-date', 'Bad Date') }, 403, 'AccessDenied'],
  ['an empty date', { target: KEY, edit: header('x-amz-date', '') }, 403, 'AccessDenied'],
  ['31 February', { target: KEY, edit: header('x-amz-date', '20260231T000000Z') }, 403, 'AccessDenied'],
  [
    'an old date',
    {
      target: KEY,
      edit: (all) => ({ ...auth(/\/\d{8}\//, '/20130524/')(all), 'x-amz-date': '20130524T000000Z' }),
    },
    403,
    'RequestTimeTooSkewed',
    { RequestTime: '2013-05-24T00:00:00Z', ServerTime: /^\d{4}-/, MaxAllowedSkewMilliseconds: '900000' },
  ],
  ['a temporary key', { target: KEY, headers: { 'x-amz-security-token': 'x' } }, 400, 'InvalidToken'],
  [
    'a hash that is none',
    { target: KEY, edit: header('x-amz-content-sha256', 'zero') },
    400,
    'InvalidArgument',
    { ArgumentName: 'x-amz-content-sha256', ArgumentValue: 'zero' },
  ],
  [
    'signed with version 2: no colon',
    { target: KEY, edit: header('authorization', 'AWS HAHAHA') },
    400,
    'InvalidArgument',
    { ArgumentName: 'Authorization' },
  ],
  [
    'signed with version 2: an unknown key id',
    { target: KEY, anonymous: true, headers: { authorization: 'AWS UNKNOWN:c2ln', date: new Date().toUTCString() } },
    403,
    'InvalidAccessKeyId',
    { AWSAccessKeyId: 'UNKNOWN' },
  ],
  ...['Bad Date', '', 'Tue, 07 Jul 1950 21:53:04 GMT'].map(
    (date): Row => [
      `signed with version 2: ${date}`,
      { target: KEY, anonymous: true, headers: { authorization: 'AWS UNKNOWN:c2ln', 'x-amz-date': date } },
      403,
      'AccessDenied',
    ],
  ),
  ...['Tue, 07 Jul 2010 21:53:04 GMT', 'Tue, 07 Jul 9999 21:53:04 GMT'].map(
    (date): Row => [
      `signed with version 2: ${date}`,
      { target: KEY, anonymous: true, headers: { authorization: 'AWS UNKNOWN:c2ln', 'x-amz-date': date } },
      403,
      'RequestTimeTooSkewed',
      { MaxAllowedSkewMilliseconds: '900000' },
    ],
  ),
]

export const queries: Row[] = [
  ...['Algorithm', 'Credential', 'Date', 'Expires', 'SignedHeaders', 'Signature'].map(
    (name): Row => [`no X-Amz-${name}`, { target: KEY, link: link(new RegExp(`&?X-Amz-${name}=[^&]*`), '') }, 400, Q],
  ),
  ...['0', '-1', '604801', 'x', '1.5', ''].map(
    (expires): Row => [
      `X-Amz-Expires=${expires}`,
      { target: KEY, link: link(/X-Amz-Expires=[^&]*/, `X-Amz-Expires=${expires}`) },
      400,
      Q,
    ],
  ),
  ['another algorithm', { target: KEY, link: link('AWS4-HMAC-SHA256', 'HMAC') }, 400, Q],
  ['another region', { target: KEY, link: link('us-east-1', 'eu-west-1') }, 400, Q, { Region: 'us-east-1' }],
  ['another service', { target: KEY, link: link('%2Fs3%2F', '%2Fec2%2F') }, 400, Q],
  ['a date that is none', { target: KEY, link: link(/X-Amz-Date=[^&]*/, 'X-Amz-Date=today') }, 400, Q],
  ['another day', { target: KEY, link: link(/%2F\d{8}%2F/, '%2F20130524%2F') }, 400, Q],
  ['SignedHeaders without host', { target: KEY, link: link(/SignedHeaders=host/, 'SignedHeaders=date') }, 400, Q],
  ['a parameter twice', { target: KEY, link: link(/$/, '&X-Amz-Expires=1') }, 400, Q],
  [
    'an expired URL',
    {
      target: KEY,
      link: (query) =>
        query.replace(/X-Amz-Date=\d{8}/, 'X-Amz-Date=20130524').replace(/%2F\d{8}%2F/, '%2F20130524%2F'),
    },
    403,
    'AccessDenied',
    { 'X-Amz-Expires': '300', Expires: /^2013-/, ServerTime: /^\d{4}-/ },
  ],
  [
    'a wrong signature',
    { target: KEY, link: link(/Signature=.*/, `Signature=${'0'.repeat(64)}`) },
    403,
    'SignatureDoesNotMatch',
    { SignatureProvided: '0'.repeat(64) },
  ],
  [
    'signed twice',
    { target: KEY, link: link(/$/, '&AWSAccessKeyId=a&Signature=b&Expires=9999999999') },
    400,
    'InvalidArgument',
    { ArgumentName: 'Authorization' },
  ],
  ...[
    ['no Signature', 'AWSAccessKeyId=a&Expires=9999999999', 403, 'AccessDenied'],
    ['no Expires', 'AWSAccessKeyId=a&Signature=b', 403, 'AccessDenied'],
    ['Expires that is no time', 'AWSAccessKeyId=a&Signature=b&Expires=soon', 403, 'AccessDenied'],
    ['expired', 'AWSAccessKeyId=a&Signature=b&Expires=1175139620', 403, 'AccessDenied'],
    ['eight days', `AWSAccessKeyId=a&Signature=b&Expires=${Math.floor(Date.now() / 1000) + 691_200}`, 400, Q],
    [
      'an unknown key id',
      `AWSAccessKeyId=a&Signature=b&Expires=${Math.floor(Date.now() / 1000) + 86_400}`,
      403,
      'InvalidAccessKeyId',
    ],
  ].map(
    ([what, query, status, code]): Row => [
      `version 2: ${what}`,
      { target: `${KEY}?${query}`, anonymous: true },
      Number(status),
      String(code),
    ],
  ),
]
