import type { S3Code } from '../../../common/errors/codes.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren } from '../../../common/xml.js'
import type { AnyOperation } from '../../api/operation.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { bucketSetting } from './bucket-setting.js'
import { requireBucket } from './owner.js'

/** Settings that the gateway has no place for: S3's answers for a bucket without one. */
export const fixedSettings: readonly AnyOperation[] = [
  ...bucketSetting({
    name: 'BucketAbac',
    subresource: 'abac',
    action: 'BucketAbac',
    get: always('Always Disabled.', 'AbacStatus', '<Status>Disabled</Status>'),
  }),
  ...bucketSetting({
    name: 'BucketAccelerateConfiguration',
    subresource: 'accelerate',
    action: 'AccelerateConfiguration',
    get: always('Always the empty configuration: never accelerated.', 'AccelerateConfiguration'),
  }),
  ...bucketSetting({
    name: 'BucketReplication',
    subresource: 'replication',
    action: 'ReplicationConfiguration',
    get: never('ReplicationConfigurationNotFoundError'),
    remove: nothing(),
  }),
  ...bucketSetting({
    name: 'BucketRequestPayment',
    subresource: 'requestPayment',
    action: 'BucketRequestPayment',
    get: always('Always BucketOwner.', 'RequestPaymentConfiguration', '<Payer>BucketOwner</Payer>'),
    put: {
      partly: 'BucketOwner, which is always so; Requester is NotImplemented.',
      async run(bytes) {
        const root = await parseXml(bytes, 'RequestPaymentConfiguration')
        requireChildren(root, 'RequestPaymentConfiguration', { once: ['Payer'] })
        const payer = childText(root, 'Payer')
        if (payer === 'Requester')
          throw new S3Error('NotImplemented', {
            message: 'Requester pays is not implemented: Payer must be BucketOwner.',
          })
        if (payer !== 'BucketOwner')
          throw new S3Error('MalformedXML', { message: 'Payer must be BucketOwner or Requester.' })
        return undefined
      },
    },
  }),
]

function always(partly: string, root: string, contents = '') {
  return { access: 'signed', partly, run: async () => xml(document(root, contents)) } as const
}

function never(code: S3Code) {
  return { access: 'signed', partly: `There is never a configuration: ${code}.`, run: async () => code } as const
}

/** S3 answers 204 whether or not there was a configuration. */
function nothing() {
  return { partly: 'There is never a configuration to delete.', run: async () => {} }
}

/**
 * Features of which a bucket may have many configurations, each with an id. Here it has none: lists are empty, and no
 * id is known.
 */
export const configurationsById = [
  ...none('Analytics', 'analytics', 'ListBucketAnalyticsConfigurationResult'),
  ...none('Metrics', 'metrics', 'ListMetricsConfigurationsResult'),
  ...none('IntelligentTiering', 'intelligent-tiering', 'ListBucketIntelligentTieringConfigurationsOutput'),
]

/** @param root of the document that lists them: S3 has no rule for that name */
function none(feature: string, subresource: string, root: string): AnyOperation[] {
  const partly = 'There is never a configuration: NoSuchConfiguration.'
  const list = `ListBucket${feature}Configurations`
  return [
    ...bucketSetting({
      name: `Bucket${feature}Configuration`,
      subresource,
      byId: true,
      action: `${feature}Configuration`,
      get: { access: 'signed', partly, run: async () => 'NoSuchConfiguration' },
      remove: {
        partly,
        async run(bucket, context) {
          await requireBucket(context, bucket)
          throw new S3Error('NoSuchConfiguration', { fields: { BucketName: bucket } })
        },
      },
    }),
    defineOperation({
      name: list,
      source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${list}.html`,
      partly: 'The list is always empty.',
      access: 'signed',
      action: `s3:Get${feature}Configuration`,
      needs: { bucket: ['read'] },
      on: { method: 'GET', resource: 'bucket', query: [subresource], params: ['continuation-token'] },
      async run(request, context) {
        await requireBucket(context, request.bucket)
        return xml(document(root, element('IsTruncated', false)))
      },
    }),
  ]
}
