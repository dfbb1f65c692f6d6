import type { Bodies } from '../store/bodies.js'
import type { Tokens } from './access.js'
import type { GatewayCore } from './core.js'
import type { BringBack } from './deals/bring-back.js'
import type { DealService } from './deals/deal-service.js'
import type { OfflineDealService } from './deals/offline/offline-deal-service.js'
import type { GatewayTables } from './index-schema.js'

/** The tables that show objects. */
export type ReadTables = Pick<
  GatewayTables,
  'accounts' | 'buckets' | 'policies' | 'objects' | 'versions' | 'locks' | 'bodySums'
>

/** What requests need that change nothing: any connection to the index that reads is enough for them. */
export interface ReadContext
  extends Pick<GatewayCore, 'names' | 'errors' | 'features' | 'limits' | 'log' | 'damaged' | 'rules'> {
  readonly tokens: Pick<Tokens, 'accountOf'>
  readonly db: { readonly read: ReadTables }
  readonly bodies: Pick<Bodies, 'open'>
}

export interface GatewayContext extends GatewayCore {
  readonly dealService: DealService
  /** Absent: this gateway makes no offline deals. */
  readonly offlineDealService: OfflineDealService | undefined
  readonly bringBack: BringBack
}
