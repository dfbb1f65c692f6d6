import type { GatewayAccount } from '../../../auth/caller.js'
import type { FamilySnapshot } from '../../../common/metrics/family.js'
import type { Reloaded } from '../../../plugins/server-calls/plugin.js'
import type { Lease } from '../../../state/locks/lease-store.js'
import type { Config } from '../../config/config.js'

/** What the supervisor has started for all workers. */
export interface SharedServices {
  readonly gateway: string
  readonly embedded: boolean
  readonly platform: string | undefined
  readonly payment: string | undefined
}

/** A step of a reload, in one worker. */
export type ReloadStep =
  | { readonly kind: 'prepare'; readonly config: Config }
  /** `prepare` has succeeded. */
  | { readonly kind: 'apply' | 'discard' }

/** The questions of workers, with their answers. */
export interface Questions {
  services(): SharedServices
  /** The configuration in use. */
  config(): Config
  /** Reloads the configuration of the whole server. */
  reload(requestId: string): Reloaded
  /** The current keys of the gateway account: clients of the embedded gateway can change them. */
  account(): GatewayAccount
  acquire(lease: Lease, ms: number, waitedMs: number): number | undefined
  renew(lease: Lease, ms: number): number | undefined
  yield(lease: Lease, ms: number): number | undefined
  /** The metrics of all processes. */
  metrics(): readonly FamilySnapshot[]
}

export type Question = keyof Questions

/** Messages travel in batches. */
export type FromWorker =
  | { readonly kind: 'question'; readonly id: number; readonly name: Question; readonly args: readonly unknown[] }
  /** Has no answer: the worker goes on at once. */
  | { readonly kind: 'release'; readonly lease: Lease }
  /** A message for all other workers: see SignalBoard. */
  | { readonly kind: 'signal'; readonly text: string }
  /** The metrics of this worker. */
  | { readonly kind: 'metrics'; readonly id: number; readonly families: readonly FamilySnapshot[] }
  /** The outcome of a step; with a text if it failed. */
  | { readonly kind: 'stepped'; readonly id: number; readonly error?: string }
  /** It serves requests at this address. */
  | { readonly kind: 'ready'; readonly url: string }

export type ToWorker =
  | { readonly kind: 'answer'; readonly id: number; readonly value?: unknown; readonly error?: string }
  | { readonly kind: 'signal'; readonly text: string }
  | { readonly kind: 'metrics'; readonly id: number }
  | { readonly kind: 'step'; readonly id: number; readonly step: ReloadStep }
  | { readonly kind: 'stop' }
