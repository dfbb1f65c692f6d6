import { S3Error } from '../../common/errors/s3-error.js'
import { document, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { AnyOperation } from '../../plugins/forms/plugin.js'
import { xml } from '../../response/reply.js'
import { requireBucket } from '../vocabulary/buckets.js'

/**
 * Features of which a bucket may have many configurations, each with an id. Here it has none: lists are empty, and no
 * id is known.
 */
export const configurationsById = [
  ...none('Analytics', 'analytics', 'ListBucketAnalyticsConfigurationResult'),
  ...none('Inventory', 'inventory', 'ListInventoryConfigurationsResult'),
  ...none('Metrics', 'metrics', 'ListMetricsConfigurationsResult'),
  ...none('IntelligentTiering', 'intelligent-tiering', 'ListBucketIntelligentTieringConfigurationsOutput'),
]

/** @param root of the document that lists them: S3 has no rule for that name */
function none(feature: string, subresource: string, root: string): AnyOperation[] {
  const source = (name: string) => `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`
  const one = (verb: 'Get' | 'Delete', method: 'GET' | 'DELETE') => {
    const name = `${verb}Bucket${feature}Configuration`
    return defineOperation({
      name,
      source: source(name),
      partly: 'There is never a configuration: NoSuchConfiguration.',
      access: method === 'GET' ? 'signed' : 'owner',
      action: `s3:${method === 'GET' ? 'Get' : 'Put'}${feature}Configuration`,
      on: { method, resource: 'bucket', query: [subresource, 'id'] },
      async run(request, context) {
        context.checks.requireWholeBucket(request.bucket, method === 'GET' ? 'read' : 'write')
        await requireBucket(context, request.bucket)
        throw new S3Error('NoSuchConfiguration', { fields: { BucketName: request.bucket } })
      },
    })
  }
  const list = `ListBucket${feature}Configurations`
  return [
    one('Get', 'GET'),
    one('Delete', 'DELETE'),
    defineOperation({
      name: list,
      source: source(list),
      partly: 'The list is always empty.',
      access: 'signed',
      action: `s3:Get${feature}Configuration`,
      on: { method: 'GET', resource: 'bucket', query: [subresource], params: ['continuation-token'] },
      async run(request, context) {
        context.checks.requireWholeBucket(request.bucket, 'read')
        await requireBucket(context, request.bucket)
        return xml(document(root, element('IsTruncated', false)))
      },
    }),
  ]
}
