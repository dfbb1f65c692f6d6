import { GATEWAY_TIMEOUT_MS } from '../../gateway/gateway-timeout.js'
import { endUploads } from '../../state/uploads/end-uploads.js'
import type { Backends } from '../backends.js'
import type { ContextFactory } from '../contexts/context-factory.js'
import type { ProxyOptions } from '../proxy-options.js'
import { createPassthrough, type Passthrough, type PassthroughOptions } from './passthrough.js'

/** Opens the way to the gateway's own paths. */
export function openPassthrough(
  options: ProxyOptions,
  { pool, brand, state, settings }: Backends,
  parts: Pick<PassthroughOptions, 'addressing' | 'limits' | 'traffic' | 'bodies' | 'onDone' | 'log'> & {
    contexts: ContextFactory
  },
): Passthrough {
  return createPassthrough({
    ...parts,
    url: options.gateway.url,
    tls: options.gateway.tls,
    word: brand.path,
    timeoutMs: options.gateway.timeoutMs ?? GATEWAY_TIMEOUT_MS,
    gateway: parts.contexts.own,
    // The bucket may have been made meanwhile, and the request that asks for this may have no log-in.
    async forget(bucket, before) {
      await settings.clearFormer(bucket)
      await endUploads(state.uploads, bucket, before)
    },
    onChange: () => pool.forget(),
    audit: options.audit,
  })
}
