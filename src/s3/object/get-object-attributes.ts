import { S3Error } from '../../../common/errors/s3-error.js'
import { pageSize, wholeNumber } from '../../../common/query.js'
import { httpTime } from '../../../common/time.js'
import { document, element } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { S3Request } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { refOf, versionHeaders } from '../versions/version.js'
import { headerText } from './attributes.js'
import { ENCRYPTION_HEADERS, keyToRead, requireCustomerKey } from './encryption.js'
import { checkConditions, READ } from './read-conditions.js'
import { presenceOf } from './storage-class.js'

const WANTED = 'x-amz-object-attributes'
const MAX_PARTS = 'x-amz-max-parts'
const MARKER = 'x-amz-part-number-marker'

export const getObjectAttributes = defineOperation({
  name: 'GetObjectAttributes',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html',
  access: 'signed',
  action: ['s3:GetObject', 's3:GetObjectAttributes'],
  on: { method: 'GET', resource: 'object', query: ['attributes'], params: ['versionId'], headers: ENCRYPTION_HEADERS },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const wanted = readWanted(request)
    const page = readPartPage(request)
    const customer = keyToRead(request, context)
    const object = await context.store.head(request.bucket, request.key, ref)
    await requireCustomerKey(object, customer, context)
    const headers = { 'last-modified': httpTime(object.lastModified), ...versionHeaders(object) }
    if (checkConditions(request.headers, object, READ) === 'unchanged') return { status: 304, headers }
    const elements: Record<Attribute, () => string | Promise<string>> = {
      ETag: () => element('ETag', object.etag),
      Checksum: () => checksumElement(object),
      ObjectParts: () => partsElement(context, object, page),
      StorageClass: () => element('StorageClass', presenceOf(object, context.plugins.storageClasses).storageClass),
      ObjectSize: () => element('ObjectSize', object.size),
    }
    let content = ''
    for (const name of ATTRIBUTES) if (wanted.has(name)) content += await elements[name]()
    return xml(document('GetObjectAttributesResponse', content), headers)
  },
})

/** In the order of S3's answer. */
const ATTRIBUTES = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize'] as const
type Attribute = (typeof ATTRIBUTES)[number]

function readWanted(request: S3Request<'object'>): ReadonlySet<string> {
  const header = headerText(request.headers, WANTED)
  const names = (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  if (names.length === 0) {
    throw new S3Error('InvalidRequest', {
      message: `The ${WANTED} header specifying the attributes to be retrieved is either missing or empty`,
    })
  }
  const unknown = names.find((name) => !ATTRIBUTES.some((attribute) => attribute === name))
  if (unknown !== undefined) {
    throw new S3Error('InvalidArgument', {
      message: `Invalid attribute name specified: the attributes are ${ATTRIBUTES.join(', ')}.`,
      fields: { ArgumentName: WANTED, ArgumentValue: unknown.slice(0, 100) },
    })
  }
  return new Set(names)
}

interface PartPage {
  readonly marker: number
  readonly max: number
}

function readPartPage({ headers }: S3Request<'object'>): PartPage {
  return {
    marker: wholeNumber(MARKER, numberOf(headers, MARKER), { fallback: 0, min: 0, max: 2_147_483_647 }),
    max: pageSize(MAX_PARTS, numberOf(headers, MAX_PARTS)),
  }
}

/** S3 ignores these headers if they hold no number. */
function numberOf(headers: S3Request['headers'], name: string): string | undefined {
  const text = headerText(headers, name)
  return text !== undefined && /^-?\d+$/.test(text) ? text : undefined
}

/**
 * Unlike in HEAD, a composite checksum is without the number of parts:
 * https://github.com/floci-io/floci/issues/3083
 */
function checksumElement({ checksum }: StoredObject): string {
  if (!checksum) return ''
  const value = checksum.value.replace(/-\d+$/, '')
  return `<Checksum>${element(`Checksum${checksum.algorithm}`, value)}${element('ChecksumType', checksum.type)}</Checksum>`
}

/** Returns the parts of an object that was uploaded in parts; S3 lists single parts only if they have checksums. */
async function partsElement(context: Context, object: StoredObject, { marker, max }: PartPage): Promise<string> {
  if (!object.partSizes) return ''
  const count = object.partSizes.reduce((sum, [, parts]) => sum + parts, 0)
  const checksums = await context.store.partChecksums(object)
  const sizes = object.partSizes.flatMap(([bytes, parts]) => Array<number>(parts).fill(bytes))
  const last = Math.min(marker + max, count)
  let parts = ''
  for (let number = marker + 1; number <= last; number++) {
    const checksum = checksums && element(`Checksum${checksums.algorithm}`, checksums.values[number - 1])
    parts += `<Part>${element('PartNumber', number)}${element('Size', sizes[number - 1])}${checksum ?? ''}</Part>`
  }
  const truncated = last < count && max > 0
  return [
    '<ObjectParts>',
    element('PartsCount', count),
    element('PartNumberMarker', marker),
    element('NextPartNumberMarker', parts === '' ? marker : last),
    element('MaxParts', max),
    element('IsTruncated', truncated),
    parts,
    '</ObjectParts>',
  ].join('')
}
