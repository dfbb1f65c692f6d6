import { definePlugin } from 'dealgate'
import { payExpansion } from './expand.js'
import { payGauges, payOperations } from './operations/index.js'
import { payOptions } from './options.js'
import { PayParts } from './parts.js'
import { uploadFiles } from './upload/file-job.js'
import { DURATION_METADATA, UPLOAD, uploadObjects, uploadWritten } from './upload/job.js'
import { OUTPUT_METADATA } from './upload/reconcile.js'

export default definePlugin({
  name: 'pay',
  summary:
    'The storage payment API: sign-in of wallets, uploads to a content-addressed network, their payments and deals.',
  options: payOptions,
  create(options, host) {
    const parts = new PayParts(options, host)
    return {
      operations: payOperations(parts),
      jobs: [uploadObjects(parts), uploadFiles(parts)],
      expansions: [payExpansion(parts)],
      hooks: { objectStored: (event) => uploadWritten(parts, event) },
      gauges: payGauges(parts),
      outputMetadata: OUTPUT_METADATA,
      metadataActions: { [DURATION_METADATA]: UPLOAD },
      stop: () => parts.close(),
    }
  },
})
