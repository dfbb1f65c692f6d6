import { defineOperation } from '../../plugins/forms/operation.js'
import { answerPreflight } from '../vocabulary/preflight.js'

export const preflightObject = defineOperation({
  name: 'PreflightObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html',
  on: { method: 'OPTIONS', resource: 'object' },
  access: 'public',
  action: 'none',
  run: (request, context) => answerPreflight(request, context),
})
