import type { z } from 'zod'
import type { Logger } from '../../common/log.js'
import type { Resource } from '../../http/s3-request.js'
import type { Context } from '../../server/context.js'
import type { BucketSettings } from '../../state/records/bucket-settings.js'
import type { State } from '../../state/state.js'
import type { ATTACH } from '../host/open-host.js'
import type { Lease, PeriodicWork } from '../host/schedule.js'
import type { Sealer } from '../host/sealer.js'
import type { JobKind } from '../jobs/job.js'
import type { Expansion } from './expansion.js'
import type { PluginHooks } from './hooks.js'
import { makePlugin } from './make-plugin.js'
import type { Operation } from './operation.js'
import type { PluginGauge } from './plugin-gauge.js'
import type { PluginServices } from './services.js'
import type { StorageClass } from './storage-class.js'

/** API version; bumped on breaking changes. */
export const PLUGIN_API = 1

/** Registered globally, because a plugin may bring its own copy of this package. */
export const MADE_FOR: unique symbol = Symbol.for('dealgate.plugin')

/** A named set of operations with its own lifecycle. Core S3 is one: src/s3/index.ts. */
export interface Plugin {
  /** Lower-case letters, digits and `-`, at most 32 characters; used in `?x-<name>` and `/-/<name>/v1/`. */
  readonly name: string
  readonly operations: readonly AnyOperation[]
  readonly hooks?: PluginHooks
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
  /** What it offers other plugins. A server does not start with two plugins that offer the same. */
  readonly offers?: PluginServices
  /** Values that the metrics of the server show. */
  readonly gauges?: readonly PluginGauge[]
  /** Meanings of values of the parameter `expand`. */
  readonly expansions?: readonly Expansion[]
  /** Opens resources, within 30 s. An error aborts the start of the server. `host` is that of `create`. */
  start?(host: PluginHost): Promise<void>
  /** Closes resources, within 30 s, after its periodic work has ended. Also called after a failed `start`. */
  stop?(): Promise<void>
  /** Gives the host of `create` its server. Set by definePlugin. */
  readonly [ATTACH]?: (host: PluginHost) => void
  /** See PluginFactory. */
  readonly [MADE_FOR]?: number
}

/** Durable records and locks for plugins. All plugins and the server share one namespace of records. */
export type PluginState = Pick<State, 'shared' | 'records' | 'locks'>

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
  /** The time, ms since 1970. */
  readonly now: () => number
  /**
   * Takes the lease of this name, or resolves undefined, without waiting, while another server on the same state holds
   * it. The lease of a process that died is free again within 30 s. A server alone with its state gets every lease.
   * Throws S3Error ServiceUnavailable.
   */
  lease(name: string): Promise<Lease | undefined>
  /** Starts periodic work; to be called in `start`. The server ends it before it calls `stop`. */
  schedule(work: PeriodicWork): void
}

/** An operation on any resource. The table passes it only requests of its own kind. */
export type AnyOperation = { [R in Resource]: Operation<R> }[Resource]

export interface PluginDefinition<Schema extends z.ZodType> {
  /** See `Plugin.name`. Must not be a reserved name (src/plugins/loading/check-plugins.ts). */
  readonly name: string
  /** One sentence about its purpose. */
  readonly summary?: string
  /**
   * Schema of the options. Invalid options and options that are not in a `z.object` abort the start. Give each option a
   * `.describe()`. Must be synchronous.
   */
  readonly options?: Schema
  /**
   * Declares the plugin, without opening resources: that belongs in `start`. Called once for each server that runs the
   * plugin, and again when a reload changes its options.
   * @param host to build on; it works once the server starts the plugin
   */
  create(options: z.output<Schema>, host: PluginHost): Omit<Plugin, 'name'>
}

/** Creates the plugin. Throws PluginError for invalid options. */
export interface PluginFactory<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): Plugin
  readonly definition: PluginDefinition<Schema>
  /** API version that the plugin was built for: PLUGIN_API of its copy of this package. */
  readonly [MADE_FOR]: number
}

/** Defines a plugin that the configuration can name. It must be the default export of its module. */
export function definePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>): PluginFactory<Schema> {
  const make = (options?: z.input<Schema>): Plugin => ({ ...makePlugin(definition, options), [MADE_FOR]: PLUGIN_API })
  return Object.assign(make, { definition, [MADE_FOR]: PLUGIN_API })
}
