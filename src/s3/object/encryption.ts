import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback } from '../../../common/cidr.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren, type XmlNode } from '../../../common/xml.js'
import {
  type EncryptionName,
  headerText,
  KEY_ID,
  readCustomerAlgorithm,
  readEncryption,
  readKeyId,
  SSE,
} from '../../access/values/header-values.js'
import type { Context } from '../../api/context.js'
import type { CustomerKey, Encrypted, EncryptionOrder, ServerKey, UploadEncryption } from '../../api/encryption.js'
import type { ReplyHeaders, RequestHead } from '../../api/request.js'
import type { StoredObject } from '../../api/store.js'
import { xml } from '../../http/reply.js'
import { CUSTOMER_KEY_BYTES, requireApplicable } from '../../objects/encryption/customer-key.js'
import { OWN_KEY } from '../../objects/encryption/key-file.js'
import { bucketSetting } from '../bucket/bucket-setting.js'

export { SSE }

const BUCKET_KEY = `${SSE}-bucket-key-enabled`
const CUSTOMER = `${SSE}-customer`
const SOURCE_CUSTOMER = 'x-amz-copy-source-server-side-encryption-customer'

/** Headers with a key of the client for the object of the request, and for the source of a copy. */
export const CUSTOMER_HEADERS = headersOf(CUSTOMER)
export const SOURCE_CUSTOMER_HEADERS = headersOf(SOURCE_CUSTOMER)

/** All headers by which a write says how to encrypt. */
export const ENCRYPTION_HEADERS = [SSE, KEY_ID, BUCKET_KEY, ...CUSTOMER_HEADERS]

function headersOf(prefix: string): readonly string[] {
  return [`${prefix}-algorithm`, `${prefix}-key`, `${prefix}-key-md5`]
}

/** A request, as far as it may bring a key; `headers` are those of a form, if it is one. */
type Bearer = Pick<RequestHead, 'headers' | 'rawHeaders' | 'host' | 'secure' | 'remoteAddress' | 'secrets'>

/**
 * What a write asks for. Throws InvalidArgument, InvalidEncryptionAlgorithmError, InvalidRequest, NotImplemented,
 * KMS.NotFoundException.
 */
export function askedEncryption(request: Bearer, context: Pick<Context, 'server'>): EncryptionOrder | undefined {
  const customer = customerKey(request, context)
  const asked = askedServerKey(request.headers)
  if (customer && asked)
    throw invalid(
      SSE,
      'Server Side Encryption with Customer provided key is incompatible with the encryption method specified',
    )
  return customer ? { algorithm: 'SSE-C', customer } : asked
}

function askedServerKey(headers: IncomingHttpHeaders): ServerKey | undefined {
  const asked = headerText(headers, SSE)
  const keyId = headerText(headers, KEY_ID)
  const bucketKey = headerText(headers, BUCKET_KEY)
  if (keyId !== undefined && asked !== 'aws:kms')
    throw invalid(KEY_ID, `Server Side Encryption with AWS KMS managed key requires HTTP header ${SSE} : aws:kms`)
  if (bucketKey !== undefined && bucketKey !== 'true' && bucketKey !== 'false')
    throw invalid(BUCKET_KEY, `${BUCKET_KEY} is "true" or "false".`)
  if (asked === undefined) return undefined
  const algorithm = implemented(readEncryption(asked))
  if (algorithm === 'AES256') return { algorithm }
  return {
    algorithm,
    ...(keyId !== undefined && { keyId: readKeyId(keyId) }),
    ...(bucketKey === 'true' && { bucketKey: true }),
  }
}

function implemented(name: EncryptionName): ServerKey['algorithm'] {
  if (name !== 'aws:kms:dsse') return name
  throw new S3Error('NotImplemented', {
    message: `Encryption with ${name} is not implemented: use aws:kms, or AES256.`,
    fields: { Header: SSE },
  })
}

/**
 * The key of the client for the object of the request, or for the source of a copy. Throws InvalidArgument,
 * InvalidRequest, InvalidEncryptionAlgorithmError.
 */
export function customerKey(
  request: Bearer,
  { server }: Pick<Context, 'server'>,
  [algorithmHeader = '', keyHeader = '', md5Header = '']: readonly string[] = CUSTOMER_HEADERS,
): CustomerKey | undefined {
  const { headers, secrets } = request
  const algorithm = headerText(headers, algorithmHeader)
  const text = headerText(headers, keyHeader)
  const md5 = headerText(headers, md5Header)
  if (algorithm === undefined && text === undefined && md5 === undefined) return undefined
  if (!request.secure && !server.customerKeysOverHttp && !isOfThisMachine(request))
    throw new S3Error('InvalidRequest', { message: `${DEMANDED} be made over a secure connection.` })
  if (algorithm === undefined) throw invalid(algorithmHeader, `${DEMANDED} provide a valid encryption algorithm.`)
  readCustomerAlgorithm(algorithm)
  if (text === undefined) throw invalid(keyHeader, `${DEMANDED} provide an appropriate secret key.`)
  if (md5 === undefined) throw invalid(md5Header, `${DEMANDED} provide the client calculated MD5 of the secret key.`)
  const key = Buffer.from(text, 'base64')
  secrets.push(key)
  if (key.length !== CUSTOMER_KEY_BYTES || key.toString('base64') !== text)
    throw invalid(keyHeader, 'The secret key was invalid for the specified algorithm.')
  if (createHash('md5').update(key).digest('base64') !== md5)
    throw invalid(md5Header, 'The calculated MD5 hash of the key did not match the hash that was provided.')
  return { key, md5 }
}

/** Without what shows that a proxy on this machine passes the request on, whose client may be anywhere. */
function isOfThisMachine({ host, rawHeaders, remoteAddress }: Bearer): boolean {
  const name = host.replace(/:\d*$/, '')
  const isLocalName = /(^|\.)localhost$/i.test(name) || isLoopback(name.replace(/^\[|\]$/g, ''))
  const isForwarded = rawHeaders.some((text, i) => i % 2 === 0 && FORWARDING.includes(text.toLowerCase()))
  return isLoopback(remoteAddress) && isLocalName && !isForwarded
}

const FORWARDING = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-proto', 'x-real-ip']

const DEMANDED = 'Requests specifying Server Side Encryption with Customer provided keys must'

/** States the name of a header, never its value: it may be a key. */
function invalid(name: string, message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: name } })
}

/** The key of the client for a read, which says nothing else about encryption. Throws as `customerKey` does. */
export function keyToRead(request: Bearer, context: Pick<Context, 'server'>): CustomerKey | undefined {
  for (const name of [SSE, KEY_ID])
    if (request.headers[name] !== undefined) throw invalid(name, `${name} header is not supported for this operation.`)
  return customerKey(request, context)
}

/**
 * Throws unless the key of the client is that of the object, or neither has one. The bytes of an archived object show
 * nothing until it is restored.
 */
export async function requireCustomerKey(
  object: StoredObject,
  customer: CustomerKey | undefined,
  { store }: Pick<Context, 'store'>,
): Promise<void> {
  if (object.cold) requireApplicable(object.encrypted, customer)
  else await store.requireCustomerKey(object, customer)
}

/**
 * The key of the client for a request that continues an upload. Throws also InvalidArgument for another encryption than
 * that of the upload.
 */
export function keyForUpload(
  request: Bearer,
  context: Pick<Context, 'server'>,
  encryption: UploadEncryption | undefined,
): CustomerKey | undefined {
  const asked = askedServerKey(request.headers)
  const isSame =
    asked?.algorithm === encryption?.algorithm && (asked?.keyId === undefined || asked.keyId === encryption?.keyId)
  if (asked && !isSame) throw invalid(SSE, 'The upload was begun with another encryption, which its parts have, too.')
  return customerKey(request, context)
}

/** What a copy is encrypted with if neither its request nor its bucket says so: it does not lose the encryption. */
export function inherited({ encrypted }: Pick<StoredObject, 'encrypted'>): ServerKey | undefined {
  if (!encrypted) return undefined
  const { algorithm, keyId, bucketKey } = encrypted
  if (algorithm !== 'aws:kms') return { algorithm: 'AES256' }
  return { algorithm, ...(keyId !== undefined && { keyId }), ...(bucketKey && { bucketKey }) }
}

/** The key of the client in an order. */
export function customerOf(order: EncryptionOrder | undefined): CustomerKey | undefined {
  return order?.algorithm === 'SSE-C' ? order.customer : undefined
}

/**
 * How an object is encrypted, as headers.
 * @param customer the key of the client that the request has
 */
export function encryptionHeaders(
  { encrypted }: { readonly encrypted?: Omit<Encrypted, 'header'> | undefined },
  customer?: CustomerKey,
): ReplyHeaders {
  if (!encrypted) return {}
  const { algorithm, keyId, bucketKey } = encrypted
  if (algorithm === 'SSE-C')
    return customer ? { [`${CUSTOMER}-algorithm`]: 'AES256', [`${CUSTOMER}-key-md5`]: customer.md5 } : {}
  return {
    [SSE]: algorithm,
    ...(keyId !== undefined && { [KEY_ID]: keyId }),
    ...(bucketKey && { [BUCKET_KEY]: 'true' }),
  }
}

export const bucketEncryption = bucketSetting({
  name: 'BucketEncryption',
  subresource: 'encryption',
  action: 'EncryptionConfiguration',
  get: {
    partly: 'Without a configuration of the bucket, what the server encrypts all new objects with, if anything.',
    async run({ bucket }, { settings, store }) {
      const found = (await settings.confirmed(bucket, 'encryption')) ?? (await store.encryptionFor(bucket))
      if (found === undefined) return 'ServerSideEncryptionConfigurationNotFoundError'
      const { algorithm, keyId, bucketKey = false } = found
      const names = element('SSEAlgorithm', algorithm) + element('KMSMasterKeyID', keyId)
      const byDefault = `<ApplyServerSideEncryptionByDefault>${names}</ApplyServerSideEncryptionByDefault>`
      const rule = `<Rule>${byDefault}${element('BucketKeyEnabled', bucketKey)}</Rule>`
      return xml(document('ServerSideEncryptionConfiguration', rule))
    },
  },
  put: {
    partly:
      'AES256 and aws:kms; aws:kms:dsse and BlockedEncryptionTypes are NotImplemented. The key need not be there.',
    async run(bytes, { bucket }, { settings }) {
      const root = await parseXml(bytes, 'ServerSideEncryptionConfiguration')
      requireChildren(root, 'ServerSideEncryptionConfiguration', { many: ['Rule'] })
      const rules = root.children.get('Rule') ?? []
      const [rule] = rules
      const [byDefault, ...others] = rule?.children.get('ApplyServerSideEncryptionByDefault') ?? []
      if (!rule || !byDefault || rules.length > 1 || others.length > 0)
        throw new S3Error('MalformedXML', {
          message: 'ServerSideEncryptionConfiguration has one Rule with one ApplyServerSideEncryptionByDefault.',
        })
      requireChildren(rule, 'Rule', {
        once: ['ApplyServerSideEncryptionByDefault', 'BucketKeyEnabled', 'BlockedEncryptionTypes'],
      })
      requireChildren(byDefault, 'ApplyServerSideEncryptionByDefault', { once: ['SSEAlgorithm', 'KMSMasterKeyID'] })
      refuseBlocked(rule)
      const algorithm = implemented(
        readEncryption(childText(byDefault, 'SSEAlgorithm') ?? '', new S3Error('MalformedXML')),
      )
      const keyId = childText(byDefault, 'KMSMasterKeyID')
      if (keyId !== undefined && algorithm !== 'aws:kms')
        throw new S3Error('InvalidArgument', {
          message: 'a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse',
        })
      const bucketKey = algorithm === 'aws:kms' && childText(rule, 'BucketKeyEnabled')?.trim() === 'true'
      await settings.set(bucket, 'encryption', {
        algorithm,
        ...(keyId !== undefined && keyId !== OWN_KEY && { keyId: readKeyId(keyId) }),
        ...(bucketKey && { bucketKey }),
      })
      return undefined
    },
  },
  remove: { run: (bucket, { settings }) => settings.delete(bucket, 'encryption') },
})

function refuseBlocked(rule: XmlNode): void {
  const lists = rule.children.get('BlockedEncryptionTypes')
  for (const list of lists ?? []) requireChildren(list, 'BlockedEncryptionTypes', { many: ['EncryptionType'] })
  const blocked = lists?.flatMap((types) => types.children.get('EncryptionType') ?? [])
  if (blocked?.every(({ text }) => text === 'NONE') ?? true) return
  throw new S3Error('NotImplemented', {
    message:
      'BlockedEncryptionTypes are not implemented: deny s3:PutObject by s3:x-amz-server-side-encryption-customer-algorithm.',
  })
}
