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
}

/** What brings CARs to storage providers. Methods reject when it cannot be reached; they may be repeated. */
export interface Dealer {
  /** Asks for a deal on the CAR. False when nothing takes it now. */
  post(car: CarToStore, signal: AbortSignal): Promise<boolean>
  /** CIDs of the deals that the network has for the task. */
  dealCids(task: string, signal: AbortSignal): Promise<readonly string[]>
}
