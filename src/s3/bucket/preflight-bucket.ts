import { defineOperation } from '../../plugins/forms/operation.js'
import { answerPreflight } from '../vocabulary/preflight.js'

export const preflightBucket = defineOperation({
  name: 'PreflightBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html',
  on: { method: 'OPTIONS', resource: 'bucket' },
  access: 'public',
  action: 'none',
  run: (request, context) => answerPreflight(request, context),
})
