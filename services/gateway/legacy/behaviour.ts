import type { GatewayCore } from '../core.js'
import { plainErrors } from '../errors.js'
import type { Feature } from '../features.js'
import type { GatewayLimits } from '../limits.js'
import { anyKeys } from '../store/key-rules.js'
import { SMALL_METADATA_BYTES } from './bodies.js'
import { errorFormsOf } from './errors.js'
import { FolderKeys } from './folder-keys.js'
import { featuresOf, type QuirkName } from './quirks.js'

const URL_TOKEN_SECONDS = 5 * 60
const SHORT_URL_TOKEN_SECONDS = 60

/** What the core does as a gateway with quirks does, by what the core calls it. */
interface Behaviour extends Pick<GatewayCore, 'errors' | 'rules' | 'emptyBucketDeals' | 'features'> {
  readonly limits: GatewayLimits
  readonly urlTokenSeconds: number
}

/**
 * @param limits without quirks
 * @param missing features that this gateway has no parts for
 */
export function behaviourOf(
  quirks: ReadonlySet<QuirkName>,
  limits: GatewayLimits,
  missing: ReadonlySet<Feature>,
): Behaviour {
  const none = quirks.size === 0
  return {
    errors: none ? plainErrors : errorFormsOf(quirks),
    rules: none ? anyKeys : new FolderKeys(quirks),
    emptyBucketDeals: quirks.has('empty-bucket-deals'),
    features: new Set(featuresOf(quirks, missing)),
    limits: quirks.has('small-metadata') ? { ...limits, maxMetadataBytes: SMALL_METADATA_BYTES } : limits,
    urlTokenSeconds: quirks.has('short-url-tokens') ? SHORT_URL_TOKEN_SECONDS : URL_TOKEN_SECONDS,
  }
}
