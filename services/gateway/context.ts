import type { GatewayCore } from './core.js'
import type { BringBack } from './deals/bring-back.js'
import type { DealService } from './deals/deal-service.js'
import type { OfflineDealService } from './deals/offline/offline-deal-service.js'

export interface GatewayContext extends GatewayCore {
  readonly dealService: DealService
  /** Absent: this gateway makes no offline deals. */
  readonly offlineDealService: OfflineDealService | undefined
  readonly bringBack: BringBack
}
