import type { GatewayAccount } from '../../../auth/caller.js'
import type { FamilySnapshot } from '../../../common/metrics/family.js'
import type { Lease } from '../../../state/locks/lease-store.js'

/** What the supervisor has started for all workers. */
export interface SharedServices {
  readonly gateway: string
  readonly embedded: boolean
  readonly platform: string | undefined
  readonly payment: string | undefined
}

/** The questions of workers, with their answers. */
export interface Questions {
  services(): SharedServices
  /** The current keys of the gateway account: clients of the embedded gateway can change them. */
  account(): GatewayAccount
  acquire(lease: Lease, ms: number, waitedMs: number): number | undefined
  renew(lease: Lease, ms: number): number | undefined
  yield(lease: Lease, ms: number): number | undefined
  release(lease: Lease): void
  /** The metrics of all processes. */
  metrics(): readonly FamilySnapshot[]
}

export type Question = keyof Questions

export type FromWorker =
  | { readonly kind: 'question'; readonly id: number; readonly name: Question; readonly args: readonly unknown[] }
  /** A message for all other workers: see SignalBoard. */
  | { readonly kind: 'signal'; readonly text: string }
  /** The metrics of this worker. */
  | { readonly kind: 'metrics'; readonly id: number; readonly families: readonly FamilySnapshot[] }
  /** It serves requests at this address. */
  | { readonly kind: 'ready'; readonly url: string }

export type ToWorker =
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: string }
  | { readonly kind: 'signal'; readonly text: string }
  | { readonly kind: 'metrics'; readonly id: number }
  | { readonly kind: 'stop' }
