import type { Logger } from '../log.js'
import type { BrandNames } from './brand.js'
import type { FeatureCache } from './features.js'
import type { MarkerLookup } from './level-listing.js'
import type { LevelSource } from './level-reader.js'
import type { RestClient } from './rest-client.js'

/** What the calls of one account work with. All but the session is shared by the accounts of a pool. */
export interface Tools extends LevelSource {
  readonly rest: RestClient
  /** The gateway's address. */
  readonly address: URL
  /** Until the head of an answer is there, ms. */
  readonly timeoutMs: number
  readonly names: BrandNames
  readonly features: FeatureCache
  readonly isMarker: MarkerLookup | undefined
  readonly log: Logger
  /** With the log-in of an account, for finding out what has to be known beside; absent when these have one themselves. */
  readonly own?: Tools
}

/** The tools to look with, as opposed to those to act with: somebody without an account acts alone, but is not shown what the looking finds. */
export function looking(tools: Tools): Tools {
  return tools.own ?? tools
}
