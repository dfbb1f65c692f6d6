import type { Logger } from '../../common/log.js'
import type { Decide, Perform } from './child-request.js'
import type { Context, Expansion, JobKind, StorageClass } from './context.js'
import type { EndedRequest, PluginHooks } from './hooks.js'
import type { InventoryFields } from './inventory.js'
import type { Lease } from './locks.js'
import type { AnyOperation, OperationRow } from './operation.js'
import type { BucketSettings } from './settings.js'
import type { State } from './state.js'

export interface GaugeSample {
  /** Names of lower-case letters, digits and `_`. Few different values, none of which a client has chosen. */
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A value that the metrics of the server show. */
export interface PluginGauge {
  /** Lower-case letters, digits and `_`. The metric is `dealgate_<plugin>_<name>`. */
  readonly name: string
  readonly help: string
  /** Called by scrapes, at most every ten seconds; has three seconds. At most 200 samples are shown. */
  read(): Promise<readonly GaugeSample[]>
}

/**
 * What plugins offer each other, by name. Each may be absent: a plugin that uses one works without it. A plugin adds
 * its own by `declare module 'dealgate/plugin' { interface PluginServices { ... } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: plugins add members to it.
export interface PluginServices {}

/** Work of a plugin that comes again and again. Of the servers that share a state, one runs it at a time. */
export interface PeriodicWork {
  /** Lower-case letters, digits and `-`; unique within the plugin. Names the lease that a server takes for a run. */
  readonly name: string
  /**
   * Pause between two runs, seconds, more than 0 and at most 1,900,000 (22 days). Each pause is up to 10 % shorter or
   * longer (jitter), so that servers that were started together drift apart.
   */
  readonly everySeconds: number
  /** Starts the first run at once. Default: after one pause. */
  readonly atStart?: boolean
  /**
   * Does the work once. A rejection is logged, and the next run starts as planned. It must end soon after `mayGoOn`
   * becomes false.
   */
  run(current: PeriodicRun): Promise<void>
}

/** One run of periodic work. */
export interface PeriodicRun {
  /** Fires when the server stops. */
  readonly signal: AbortSignal
  /**
   * True while the run may go on: the server is not stopping, and still holds the lease. To be asked before each step.
   */
  mayGoOn(): boolean
}

/** Encrypts secrets that a plugin keeps in its records. */
export interface Sealer {
  /**
   * Encrypts a text with AES-256-GCM under the key of the server. Rejects with S3Error InvalidRequest if several
   * servers share a state without a common key.
   * @param purpose names the place of the secret, such as `task:login:<access key id>`: the result opens for it alone
   */
  seal(text: string, purpose: string): Promise<string>
  /** Decrypts; resolves undefined for a text that was sealed by another key, for another purpose, or was changed. */
  open(sealed: string, purpose: string): Promise<string | undefined>
}

/** A named set of operations with its own lifecycle. Core S3 is one: src/s3/index.ts. */
export interface Plugin {
  /** Lower-case letters, digits and `-`, at most 32 characters; used in `?x-<name>` and `/-/<name>/v1/`. */
  readonly name: string
  readonly operations: readonly AnyOperation[]
  readonly hooks?: PluginHooks
  /** Called after each request, while others wait: it must be fast, and cannot await. An error is logged. */
  requestEnded?(request: EndedRequest): void
  /** Storage classes that keep objects outside the gateway. Lifecycle rules may move objects there. */
  readonly storageClasses?: readonly StorageClass[]
  /** Kinds of background jobs, which outlive requests. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind has an input of its own, which the frame only carries
  readonly jobs?: readonly JobKind<any, any>[]
  /**
   * Names of user metadata that the plugin adds to replies (`Archive.facts`). They are not stored when a client sends
   * them back, as it does when it copies an object. A `*` at the end matches any suffix.
   */
  readonly outputMetadata?: readonly string[]
  /**
   * User metadata by which a writer orders something that costs money, by lower-case name without prefix, and the
   * action that the caller must hold for it to take effect: `{ 'deal-terms': 'deal:CreateObjectDeal' }`.
   * `StoredObject.authorized` and `ClassWrite.authorized` say whether the caller held it.
   */
  readonly metadataActions?: Readonly<Record<string, string>>
  /**
   * Resolves true for a bucket into which nothing is stored that is not encrypted. Rejects with S3Error. A write waits
   * for it as long as for a hook, and is refused where it fails.
   */
  readonly demandsEncryption?: (bucket: string) => Promise<boolean>
  /** What it offers other plugins. A server does not start with two plugins that offer the same. */
  readonly offers?: PluginServices
  /** Values that the metrics of the server show. */
  readonly gauges?: readonly PluginGauge[]
  /** Meanings of values of the parameter `expand`. */
  readonly expansions?: readonly Expansion[]
  /** Columns that inventories of buckets can have. */
  readonly inventory?: InventoryFields
  /**
   * Checks other options while the server runs, as a reload of the configuration asks for. Returns what uses them from
   * then on, which must not throw. Absent: other options need a restart. Throws Error for options that it cannot use;
   * then nothing changes.
   */
  reconfigure?(options: unknown): () => void
  /** Opens resources, within 30 s. An error aborts the start of the server. `host` is that of `create`. */
  start?(host: PluginHost): Promise<void>
  /** Closes resources, within 30 s, after its periodic work has ended. Also called after a failed `start`. */
  stop?(): Promise<void>
}

/** Durable records and locks for plugins. All plugins and the server share one namespace of records. */
export type PluginState = Pick<State, 'shared' | 'records' | 'locks' | 'acceptedLoss'>

/** Messages among the instances of one plugin in all processes on a state. One may be lost. */
export interface PluginSignals {
  /** Sends a text without line breaks, at most 1000 bytes, to all others. Never fails. */
  send(text: string): void
  /** Calls `heard` for each message of another. @returns a function that ends it */
  on(heard: (text: string) => void): () => void
}

/** What is there at the moment. Absent where it is not known. */
export interface StorageSample {
  /** Of the disk of the data folder. */
  freeBytes?: number
  /** Of the account of the server, at the gateway. */
  storedBytes?: number
}

/**
 * The services that the server offers a plugin. They work from the moment the server starts the plugin; before that,
 * any use throws an Error.
 */
export interface PluginHost {
  /** Lines name the plugin. */
  readonly log: Logger
  /** Durable records, which survive restarts, and locks. Shared with other servers where `shared` is true. */
  readonly state: PluginState
  /** Settings of buckets: plain JSON by kind, removed with their bucket. */
  readonly settings: BucketSettings
  /** Acts as the server's own account, for work that no caller asked for: objects, gateway, jobs, archive. */
  readonly own: Context
  /** Address of the task platform that the server was started with; undefined for none. */
  readonly platformUrl: string | undefined
  /** Address of the storage payment API that the server was started with; undefined for none. */
  readonly paymentUrl: string | undefined
  /** What the plugins of this server offer each other. Use it after all have started: in requests and later work. */
  readonly offered: PluginServices
  /** Encrypts secrets for records. */
  readonly sealer: Sealer
  /** Carries out a request in the name of a key pair, for work that a caller has ordered: see Perform. */
  readonly perform: Perform
  /** Decides whether an identity may send a request, without carrying it out: see Decide. */
  readonly decide: Decide
  /** Messages to and from this plugin in the other processes on the state. */
  readonly signals: PluginSignals
  /** All operations of this server, for plugins that describe it. */
  operations(): readonly OperationRow[]
  /** Asks the gateway and the system. Never rejects. */
  storage(): Promise<StorageSample>
  /** The time, ms since 1970. */
  readonly now: () => number
  /**
   * Takes the lease of this name, without one that of the plugin. Resolves undefined, without waiting, while another
   * server on the same state holds it. The lease of a process that died is free again within 30 s. A server alone with
   * its state gets every lease. Throws S3Error ServiceUnavailable.
   */
  lease(name?: string): Promise<Lease | undefined>
  /** Starts periodic work; to be called in `start`. The server ends it before it calls `stop`. */
  schedule(work: PeriodicWork): void
}
