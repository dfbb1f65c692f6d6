/**
 * `Created`: looks for a provider. `Assigned`: has one. `DealSent`: the network knows all of its deals, which have been
 * proposed to the provider. `ActionRequired`: expired without one; its poster must act.
 * `ProgressWithFailure`: the provider failed with some of its deals. `Completed`: all deals are active.
 */
export type TaskStatus = 'Created' | 'Assigned' | 'DealSent' | 'ActionRequired' | 'ProgressWithFailure' | 'Completed'

/** How a public task gets its provider: its poster chooses, the platform chooses, or no provider is looked for. */
export type BidMode = 'manual' | 'auto' | 'none'

export interface TaskTerms {
  readonly name: string
  readonly description: string
  readonly curatedDataset: string
  readonly isPublic: boolean
  /** Null when the poster did not say: a regular task. */
  readonly type: 'regular' | 'verified' | null
  /** The provider of a private task; null for a public one. */
  readonly minerId: string | null
  /** At most five. */
  readonly tags: readonly string[]
  /** Attofil per GiB and epoch. */
  readonly minPrice: bigint | null
  readonly maxPrice: bigint | null
  readonly expireDays: number | null
  readonly fastRetrieval: boolean
  readonly bidMode: BidMode
  /** Kind of the program that made the task, as a number of the platform's own. */
  readonly sourceId: number | null
  readonly duration: number
}

export interface Task extends TaskTerms {
  readonly id: number
  readonly uuid: string
  readonly user: number
  readonly status: TaskStatus
  /** The provider that works the task; null while there is none. */
  readonly minerId: string | null
  readonly fileName: string
  readonly created: number
  readonly createdEpoch: number
  readonly expiresEpoch: number | null
  /** Sizes of the smallest and the largest piece that are known, bytes; null when none is. */
  readonly smallestPiece: number | null
  readonly largestPiece: number | null
  readonly bids: number
  readonly deals: number
  readonly activeDeals: number
  readonly failedDeals: number
  /** Deals that the network knows. */
  readonly sentDeals: number
}
