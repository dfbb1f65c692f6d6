import type { IncomingHttpHeaders } from 'node:http'
import type { Encrypted, EncryptionOrder } from '../../api/encryption.js'
import type { ReplyHeaders } from '../../api/request.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { childText, document, element, parseXml } from '../../common/xml.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { headerText } from './attributes.js'

/** The header by which a write asks for encryption, and an answer states it. */
export const SSE = 'x-amz-server-side-encryption'

/** What a write asks for. Throws InvalidEncryptionAlgorithmError, NotImplemented. */
export function askedEncryption(headers: IncomingHttpHeaders): EncryptionOrder | undefined {
  const asked = headerText(headers, SSE)
  return asked === undefined ? undefined : readAlgorithm(asked, 'InvalidEncryptionAlgorithmError')
}

function readAlgorithm(text: string, invalid: 'InvalidEncryptionAlgorithmError' | 'MalformedXML'): EncryptionOrder {
  if (text === 'AES256') return text
  if (text !== 'aws:kms' && text !== 'aws:kms:dsse') throw new S3Error(invalid)
  throw new S3Error('NotImplemented', {
    message: `Encryption with ${text} is not implemented: use AES256, with keys of this server.`,
    fields: { Header: SSE },
  })
}

/** How an object is encrypted, as headers. */
export function encryptionHeaders({ encrypted }: { readonly encrypted?: Pick<Encrypted, 'algorithm'> }): ReplyHeaders {
  return encrypted ? { [SSE]: encrypted.algorithm } : {}
}

export const bucketEncryption = bucketSetting({
  name: 'BucketEncryption',
  subresource: 'encryption',
  action: 'EncryptionConfiguration',
  get: {
    partly: 'Without a configuration of the bucket, what the server encrypts all new objects with, if anything.',
    async run({ bucket }, { settings, store }) {
      const algorithm =
        (await settings.confirmed(bucket, 'encryption'))?.algorithm ?? (await store.encryptionFor(bucket))
      if (algorithm === undefined) return 'ServerSideEncryptionConfigurationNotFoundError'
      const byDefault = `<ApplyServerSideEncryptionByDefault>${element('SSEAlgorithm', algorithm)}</ApplyServerSideEncryptionByDefault>`
      const rule = `<Rule>${byDefault}${element('BucketKeyEnabled', false)}</Rule>`
      return xml(document('ServerSideEncryptionConfiguration', rule))
    },
  },
  put: {
    partly: 'AES256, with keys of the server; aws:kms is NotImplemented.',
    async run(bytes, { bucket }, { settings }) {
      const rules = (await parseXml(bytes, 'ServerSideEncryptionConfiguration')).children.get('Rule') ?? []
      const [rule] = rules
      const [byDefault, ...others] = rule?.children.get('ApplyServerSideEncryptionByDefault') ?? []
      if (!byDefault || rules.length > 1 || others.length > 0)
        throw new S3Error('MalformedXML', {
          message: 'ServerSideEncryptionConfiguration has one Rule with one ApplyServerSideEncryptionByDefault.',
        })
      const algorithm = readAlgorithm(childText(byDefault, 'SSEAlgorithm') ?? '', 'MalformedXML')
      if (byDefault.children.has('KMSMasterKeyID'))
        throw new S3Error('InvalidArgument', {
          message: 'a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse',
        })
      await settings.set(bucket, 'encryption', { algorithm })
      return undefined
    },
  },
  remove: { run: (bucket, { settings }) => settings.delete(bucket, 'encryption') },
})
