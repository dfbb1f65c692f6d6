import type { z } from 'zod'
import type { Context } from '../context.js'
import type { JobKind } from '../jobs/job.js'
import type { Logger } from '../log.js'
import type { Resource } from '../request/s3-request.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import type { State } from '../state/state.js'
import type { PluginHooks } from './hooks.js'
import { makePlugin } from './make-plugin.js'
import type { Operation } from './operation.js'
import type { StorageClass } from './storage-class.js'

/** Raised when plugins that were made for the agreement before cannot be run any more. */
export const PLUGIN_API = 1

/** In the registry that all copies of this package share: a plugin may bring its own. */
export const MADE_FOR: unique symbol = Symbol.for('dealgate.plugin')

/** A named set of operations with a life of its own. Core S3 is one: src/operations/index.ts. */
export interface Plugin {
  /** Lower-case letters, digits and `-`, at most 32: stands in `?x-<name>` and `/-/<name>/v1/`. */
  readonly name: string
  readonly operations: readonly AnyOperation[]
  readonly hooks?: PluginHooks
  /** What it keeps objects in beside the gateway; lifecycle rules may then move objects there. */
  readonly storageClasses?: readonly StorageClass[]
  /** Work of its own that outlives requests. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind has an input of its own, which the frame only carries
  readonly jobs?: readonly JobKind<any, any>[]
  /**
   * Names of user metadata that it tells of objects itself (`Archive.facts`): a client that sends them, because it copies what it was told, does not store them.
   * A `*` at the end stands for any rest.
   */
  readonly outputMetadata?: readonly string[]
  /** Opens what it needs, within 30 s. What it throws stops the start of the server. */
  start?(host: PluginHost): Promise<void>
  /** Closes it, within 30 s. Also called after a `start` that failed. */
  stop?(): Promise<void>
  /** See PluginFactory. */
  readonly [MADE_FOR]?: number
}

/** What a plugin lives in. */
export interface PluginHost {
  readonly log: Logger
  readonly state: Pick<State, 'shared' | 'records' | 'locks'>
  readonly settings: BucketSettings
  /** As whoever runs the server: for what the plugin does by itself. */
  readonly own: Context
  /** ms since 1970. */
  readonly now: () => number
}

/** An operation on whatever resource; the table only hands it requests of its own kind. */
export type AnyOperation = { [R in Resource]: Operation<R> }[Resource]

export interface PluginDefinition<Schema extends z.ZodType> {
  /** See `Plugin.name`. Not a name of the server's own (registry/plugin-name.ts). */
  readonly name: string
  /** What it is for, in a sentence. */
  readonly summary?: string
  /** Its options: what does not fit stops the start, and so does an option that is not in a `z.object`. Give each a `.describe()`. Not asynchronous. */
  readonly options?: Schema
  /** Only declares: whatever holds something open belongs into `start`. Called once for each server that runs the plugin. */
  create(options: z.output<Schema>): Omit<Plugin, 'name'>
}

/** Makes the plugin; throws PluginError for options that do not fit. */
export interface PluginFactory<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): Plugin
  readonly definition: PluginDefinition<Schema>
  /** Which agreement between plugins and servers it was made for: PLUGIN_API of its copy of this package. */
  readonly [MADE_FOR]: number
}

/** A plugin to be named in the configuration: the default export of its module. */
export function definePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>): PluginFactory<Schema> {
  const make = (options?: z.input<Schema>): Plugin => ({ ...makePlugin(definition, options), [MADE_FOR]: PLUGIN_API })
  return Object.assign(make, { definition, [MADE_FOR]: PLUGIN_API })
}
