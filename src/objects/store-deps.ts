import type { Logger } from '../../common/log.js'
import type { Quota } from '../../common/quota.js'
import type { RequireOwner } from '../api/access.js'
import type { Gateway } from '../api/gateway.js'
import type { Hooks } from '../api/hooks.js'
import type { Limits } from '../api/limits.js'
import type { State } from '../api/state.js'
import type { Encryption } from './encryption/encryption.js'
import type { PartChecksumRecords } from './part-checksums.js'

/** What the objects of one gateway account stand on. */
export interface StoreDeps {
  readonly gateway: Gateway
  /**
   * The gateway for lookups that precede a write or removal: a caller who may write an object need not be able to read
   * it.
   */
  readonly lookUps: Gateway
  /** Called before a change to data of an object that only this server keeps: no gateway call guards it. */
  readonly requireOwner: RequireOwner
  readonly state: State
  readonly limits: Limits
  /** For the lines of work that no request asked for. */
  readonly log: Logger
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** Quota for bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
  readonly encryption: Encryption
}
