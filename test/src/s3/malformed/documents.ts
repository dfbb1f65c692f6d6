import { type Ask, document, invalid, KEY, type Row, unmet, wrong } from './row.js'

const source = (value: string, more: Record<string, string> = {}, target = '/rows/copy') => {
  return { method: 'PUT', target, headers: { 'x-amz-copy-source': value, ...more } }
}

const copied = (header: string, value: string) => source('/rows/key', { [header]: value })
const ranged = (range: string) =>
  source('/rows/key', { 'x-amz-copy-source-range': range }, '/rows/upload?partNumber=2&uploadId={upload}')

export const copies: Row[] = [
  ...['', '/', 'rows', '/rows', '/rows/', '//key'].map(
    (value): Row => [`x-amz-copy-source: ${value}`, source(value), ...invalid('x-amz-copy-source')],
  ),
  ['a source that is no URL', source('/rows/%ff'), ...invalid('x-amz-copy-source')],
  ['a source in an absent bucket', source('/absent-bucket/k'), '404 NoSuchBucket', { BucketName: 'absent-bucket' }],
  ...['/rows/copy', '/rows/upload?partNumber=1&uploadId={upload}'].map((target): Row => {
    return [`a long key to ${target}`, source(`/rows/${'k'.repeat(1025)}`, {}, target), '400 KeyTooLongError']
  }),
  ['a version of the source', source('/rows/key?versionId=x'), '400 InvalidArgument'],
  ['a copy onto itself', source('/rows/key', {}, KEY), '400 InvalidRequest'],
  ...['x-amz-metadata-directive', 'x-amz-tagging-directive'].map((name) => wrong(name, copied(name, 'MERGE'), 'MERGE')),
  ['a range of a whole copy', copied('range', 'bytes=0-2'), ...invalid('Range', 'bytes=0-2')],
  wrong('x-amz-copy-source-range', copied('x-amz-copy-source-range', 'bytes=0-2'), 'bytes=0-2'),
  ['if-match', copied('x-amz-copy-source-if-match', '"x"'), ...unmet(/^x-amz-copy-source-if-match$/i)],
  ['if-none-match', copied('x-amz-copy-source-if-none-match', '*'), ...unmet(/^x-amz-copy-source-if-none-match$/i)],
  ...['0-1', 'bytes=', 'bytes=1-0', 'bytes=-1'].map(
    (range): Row => [`x-amz-copy-source-range: ${range}`, ranged(range), ...invalid('x-amz-copy-source-range', range)],
  ),
  ['a range beyond the source', ranged('bytes=0-99'), '416 InvalidRange', { ActualObjectSize: '3' }],
]

const part = (number: string, etag = '"900150983cd24fb0d6963f7d28e17f72"') =>
  `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`
const complete = (body: string) => document('POST', '/rows/upload?uploadId={upload}', body)
const begin = (headers: Record<string, string>): Ask => ({ method: 'POST', target: '/rows/new?uploads', headers })
const parts = (...list: string[]) => complete(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)

export const multipart: Row[] = [
  ...['0', '10001', 'x', '-1', '1.5', ''].map((number): Row => {
    const target = `/rows/upload?partNumber=${number}&uploadId={upload}`
    return [`UploadPart ${number}`, { method: 'PUT', target, body: 'data' }, ...invalid('partNumber', number)]
  }),
  ...[
    ['UploadPart', { method: 'PUT', target: '/rows/upload?partNumber=1&uploadId=absent', body: 'data' }],
    ['ListParts', { target: '/rows/upload?uploadId=absent' }],
    ['AbortMultipartUpload', { method: 'DELETE', target: '/rows/upload?uploadId=absent' }],
    ['the upload of another key', { target: '/rows/other?uploadId={upload}' }],
  ].map(([what, ask]): Row => [`${what}`, ask as Row[1], '404 NoSuchUpload', { UploadId: /./ }]),
  ...['', '..', '%00', 'x'.repeat(3000), '..%2F..%2Fkeys.json'].flatMap((id): Row[] => {
    const target = `/rows/key?partNumber=1&uploadId=${id}`
    const what = `the upload ${id.slice(0, 20)}`
    return [
      [what, { method: 'PUT', target, body: 'x' }, '404 NoSuchUpload'],
      [`${what} aborted`, { method: 'DELETE', target: target.replace('partNumber=1&', '') }, '404 NoSuchUpload'],
    ]
  }),
  ['no parts', parts(), '400 MalformedXML'],
  ['no document', complete(''), '400 InvalidRequest'],
  ['not XML', complete('parts'), '400 MalformedXML'],
  ['another root', complete('<Complete/>'), '400 MalformedXML'],
  ['a part without number', parts('<Part><ETag>x</ETag></Part>'), '400 MalformedXML'],
  ['a part without ETag', parts('<Part><PartNumber>1</PartNumber></Part>'), '400 MalformedXML'],
  ['a number that is none', parts(part('one')), '400 MalformedXML'],
  ['an absent part', parts(part('9')), '400 InvalidPart', { UploadId: /./, PartNumber: '9' }],
  ['another ETag', parts(part('1', '"x"')), '400 InvalidPart', { UploadId: /./, PartNumber: '1', ETag: 'x' }],
  ['the wrong order', parts(part('2'), part('1')), '400 InvalidPartOrder', { UploadId: /./ }],
  ['a part twice', parts(part('1'), part('1')), '400 InvalidPartOrder', { UploadId: /./ }],
  ['x-amz-checksum-algorithm', begin({ 'x-amz-checksum-algorithm': 'ROT13' }), '400 InvalidRequest'],
  ['x-amz-checksum-type', begin({ 'x-amz-checksum-type': 'HALF' }), '400 InvalidRequest'],
  ['a class', begin({ 'x-amz-storage-class': 'WARM' }), '400 InvalidStorageClass', { StorageClassRequested: 'WARM' }],
]

const tags = (...list: [string, string][]) =>
  `<Tagging><TagSet>${list.map(([key, value]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`).join('')}</TagSet></Tagging>`
const lifecycle = (rules: string) =>
  document('PUT', '/rows?lifecycle', `<LifecycleConfiguration>${rules}</LifecycleConfiguration>`)
const LONG_ID = `<Rule><ID>${'r'.repeat(256)}</ID><Status>Enabled</Status><Filter/><Expiration><Days>1</Days></Expiration></Rule>`
const deletion = (inner: string) => document('POST', '/rows?delete', `<Delete>${inner}</Delete>`)
const cors = (inner: string) => document('PUT', '/rows?cors', `<CORSConfiguration>${inner}</CORSConfiguration>`)
const origin = '<AllowedOrigin>*</AllowedOrigin>'

const located = (where: string) => {
  const body = `<CreateBucketConfiguration><LocationConstraint>${where}</LocationConstraint></CreateBucketConfiguration>`
  return document('PUT', '/new-bucket', body)
}
const remove = (headers: Record<string, string>): Ask => ({ method: 'DELETE', target: KEY, headers })
const TAG = '<Tagging><TagSet><Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>'

const OWNERSHIP = '<OwnershipControls><Rule><ObjectOwnership>Mine</ObjectOwnership></Rule></OwnershipControls>'
const PAYMENT = '<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>'

/** What takes a document. */
const DOCUMENTS = [
  ...['/rows?tagging', '/rows?lifecycle', '/rows?cors', '/rows?inventory&id=x', '/rows?logging', '/rows?versioning'],
  ...['/rows?encryption', '/rows?ownershipControls', '/rows?publicAccessBlock', '/rows/key?tagging'],
]

export const documents: Row[] = [
  ...DOCUMENTS.flatMap((target): Row[] => [
    [`PUT ${target}: not XML`, document('PUT', target, 'text'), '400 MalformedXML'],
    [`PUT ${target}: another root`, document('PUT', target, '<Other/>'), '400 MalformedXML'],
    [`PUT ${target}: cut`, document('PUT', target, '<Tagging><TagSet>'), '400 MalformedXML'],
    [`PUT ${target}: a DTD`, document('PUT', target, '<!DOCTYPE x [<!ENTITY e "e">]><Tagging/>'), '400 MalformedXML'],
    [`PUT ${target}: nothing`, document('PUT', target, ''), '400 MissingRequestBodyError'],
  ]),
  ...['/rows?tagging', '/rows/key?tagging'].flatMap((target): Row[] => {
    const set = (body: string) => document('PUT', target, body)
    const many = Array.from({ length: 51 }, (_, i): [string, string] => [`k${i}`, ''])
    return [
      [`PUT ${target}: no value`, set(TAG.replace('<Value/>', '')), '400 MalformedXML'],
      [`PUT ${target}: one member more`, set(TAG.replace('<Value/>', '<Value/><Colour/>')), '400 MalformedXML'],
      [`PUT ${target}: no set`, set('<Tagging/>'), '400 MalformedXML'],
      [`PUT ${target}: twice`, set(tags(['a', '1'], ['a', '2'])), '400 InvalidTag', { TagKey: 'a' }],
      [`PUT ${target}: no key`, set(tags(['', '1'])), '400 InvalidTag', { TagKey: '' }],
      [`PUT ${target}: aws:`, set(tags(['aws:a', '1'])), '400 InvalidTag', { TagKey: 'aws:a' }],
      [`PUT ${target}: value`, set(tags(['a', 'v'.repeat(257)])), '400 InvalidTag', { TagKey: 'a' }],
      [`PUT ${target}: too many`, set(tags(...many)), '400 BadRequest'],
    ]
  }),
  ['ownership', document('PUT', '/rows?ownershipControls', OWNERSHIP), '400 MalformedXML'],
  ['requester pays', document('PUT', '/rows?requestPayment', PAYMENT), '501 NotImplemented'],
  // s3/lifecycle/configuration has the others.
  ['lifecycle: no rule', lifecycle(''), '400 MalformedXML'],
  ['lifecycle: ID', lifecycle(LONG_ID), ...invalid('ID')],
  ['cors: no rule', cors(''), '400 MalformedXML'],
  ['cors: no method', cors(`<CORSRule>${origin}</CORSRule>`), '400 MalformedXML'],
  ['cors: method', cors(`<CORSRule>${origin}<AllowedMethod>PATCH</AllowedMethod></CORSRule>`), '400 InvalidRequest'],
  [
    'cors: two wildcards',
    cors('<CORSRule><AllowedOrigin>*.*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>'),
    '400 InvalidRequest',
  ],
  ['delete: no digest', { method: 'POST', target: '/rows?delete', body: '<Delete/>' }, '400 InvalidRequest'],
  ['delete: no keys', deletion(''), '400 MalformedXML'],
  ['delete: an empty key', deletion('<Object><Key/></Object>'), '400 MalformedXML'],
  ['delete: 1001 keys', deletion('<Object><Key>k</Key></Object>'.repeat(1001)), '400 MalformedXML'],
  ...[
    ['eu-central-1', '400 IllegalLocationConstraintException'],
    ['nowhere', '400 InvalidLocationConstraint'],
  ].map(([where = '', answer = '']): Row => [`CreateBucket in ${where}`, located(where), answer]),
  ['CreateBucket: another root', document('PUT', '/new-bucket', '<Other/>'), '400 MalformedXML'],
  wrong('x-amz-if-match-size', remove({ 'x-amz-if-match-size': 'big' }), 'big'),
  ...[
    ['x-amz-if-match-size', '4'],
    ['x-amz-if-match-last-modified-time', 'Thu, 01 Jan 2015 00:00:00 GMT'],
    ['If-Match', '"x"'],
  ].map(([name = '', value = '']): Row => [`DELETE with another ${name}`, remove({ [name]: value }), ...unmet(name)]),
]
