/** A CAR that is to be stored by a provider. */
export interface CarToStore {
  /** UUID of the task: a repeated one is the same task. */
  readonly task: string
  readonly payloadCid: string
  /** Bytes. */
  readonly size: number
  readonly md5: string
  /** Where a provider fetches it. */
  readonly url: string
  /** Epochs. */
  readonly duration: number
  /** Providers that failed with it. */
  readonly tried: readonly string[]
}

/** What became of a task. */
export interface TaskProgress {
  /** CIDs of the deals that the network has for it. */
  readonly dealCids: readonly string[]
  /** The provider that gave it up; undefined while there is hope. */
  readonly failedBy: string | undefined
}

/** What brings CARs to storage providers. Methods reject when it cannot be reached; they may be repeated. */
export interface Dealer {
  /** Asks for a deal on the CAR. False when nothing takes it now. */
  post(car: CarToStore, signal: AbortSignal): Promise<boolean>
  progress(task: string, signal: AbortSignal): Promise<TaskProgress>
}
