import type { GatewayCore } from './core.js'
import type { BringBack } from './deals/bring-back.js'
import type { DealDesk } from './deals/deal-desk.js'
import type { OfflineDesk } from './deals/offline/offline-desk.js'

export interface GatewayContext extends GatewayCore {
  readonly desk: DealDesk
  /** Absent: this gateway makes no offline deals. */
  readonly offlineDesk: OfflineDesk | undefined
  readonly bringBack: BringBack
}
