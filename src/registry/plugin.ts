import type { z } from 'zod'
import type { Context } from '../context.js'
import type { JobKind } from '../jobs/job.js'
import type { Logger } from '../log.js'
import type { Resource } from '../request/s3-request.js'
import type { BucketSettings } from '../state/bucket-settings.js'
import type { State } from '../state/state.js'
import type { PluginHooks } from './hooks.js'
import type { Operation } from './operation.js'
import type { StorageClass } from './storage-class.js'

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
  start?(host: PluginHost): Promise<void>
  stop?(): Promise<void>
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
  readonly name: string
  /** What it is for, in a sentence. */
  readonly summary?: string
  /** Its options: what does not fit stops the start. Give each a `.describe()`. */
  readonly options?: Schema
  create(options: z.output<Schema>): Omit<Plugin, 'name'>
}

/** Makes the plugin; throws a ZodError for options that do not fit. */
export interface PluginFactory<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): Plugin
  readonly definition: PluginDefinition<Schema>
}

/** A plugin to be named in the configuration: the default export of its module. */
export function definePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>): PluginFactory<Schema> {
  const make = (options?: z.input<Schema>): Plugin => {
    const read = definition.options ? definition.options.parse(options ?? {}) : undefined
    return { ...definition.create(read as z.output<Schema>), name: definition.name }
  }
  return Object.assign(make, { definition })
}
