import { defineOperation } from '../../registry/operation.js'
import { answerPreflight } from '../common/preflight.js'

export const preflightBucket = defineOperation({
  name: 'PreflightBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html',
  on: { method: 'OPTIONS', resource: 'bucket' },
  access: 'public',
  run: (request, context) => answerPreflight(request, context),
})
