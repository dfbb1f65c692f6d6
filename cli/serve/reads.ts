import type { Logger } from '../../common/log.js'
import { aggregate } from '../../common/render-metrics.js'
import { parseQuirks } from '../../services/gateway/legacy/quirks.js'
import type { OpenedReads } from '../../services/gateway/reads.js'
import type { Config } from '../config/config.js'
import { groupOf } from '../config/options.js'
import { type GatewayInUse, servicesFolder } from './gateway.js'

/** The metrics of the embedded services, with those of reads in this process. */
export function withReads({ metrics }: Pick<GatewayInUse, 'metrics'>, reads: Pick<OpenedReads, 'metrics'>) {
  return async () => (metrics ? aggregate([await metrics(), await reads.metrics()]) : reads.metrics())
}

/**
 * What answers reads of the embedded gateway in this process, beside the thread or process that runs it. Undefined
 * where they need more than its folder: another gateway, a database, a store of bodies, or quirks, with which it stands
 * for others, which are reached over HTTP.
 */
export async function openReadsOf(
  config: Config,
  { embedded }: Pick<GatewayInUse, 'embedded'>,
  log: Logger,
): Promise<OpenedReads | undefined> {
  const { database, bodies, gatewayQuirks } = config
  if (!embedded || database !== undefined || bodies !== undefined) return undefined
  if (parseQuirks(gatewayQuirks).length > 0) return undefined
  const { openReads } = await import('../../services/gateway/reads.js')
  return openReads(servicesFolder(config), { brand: groupOf(config, 'brand'), log })
}
