import type { Resource } from '../request/s3-request.js'
import type { PluginHooks } from './hooks.js'
import type { Operation } from './operation.js'
import type { StorageClass } from './storage-class.js'

/** A named set of operations with a life of its own. Core S3 is one: src/operations/index.ts. */
export interface Plugin {
  readonly name: string
  readonly operations: readonly AnyOperation[]
  readonly hooks?: PluginHooks
  /** What it keeps objects in beside the gateway; lifecycle rules may then move objects there. */
  readonly storageClasses?: readonly StorageClass[]
  start?(): Promise<void>
  stop?(): Promise<void>
}

/** An operation on whatever resource; the table only hands it requests of its own kind. */
export type AnyOperation = { [R in Resource]: Operation<R> }[Resource]

/** Carries the types of a plugin factory; returns it unchanged. */
export function definePlugin<Options>(factory: (options: Options) => Plugin): (options: Options) => Plugin {
  return factory
}
