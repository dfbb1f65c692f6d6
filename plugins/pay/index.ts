import { definePlugin } from 'dealgate'
import { payExpansion } from './expand.js'
import { payGauges } from './gauges.js'
import { payOperations } from './operations/index.js'
import { payOptions } from './options.js'
import { PayParts } from './parts.js'
import { uploadFiles } from './upload/file-job.js'
import { UPLOAD } from './upload/input.js'
import { uploadObjects } from './upload/job.js'
import { DURATION_METADATA, uploadWritten } from './upload/on-write.js'
import { OUTPUT_METADATA } from './upload/tell-object.js'

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
