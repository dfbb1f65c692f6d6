import type { z } from 'zod'
import type { Operation, OperationAccess } from '../api/operation.js'
import type { Plugin, PluginHost } from '../api/plugin.js'
import type { Resource } from '../api/request.js'
import { messageOf } from './deadlines.js'
import { ATTACH, lateHost } from './host.js'

/** API version; bumped on breaking changes. */
export const PLUGIN_API = 1

/** Creates the plugin. Throws PluginError for invalid options. */
export interface PluginFactory<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): MadePlugin
  readonly definition: PluginDefinition<Schema>
  /** API version that the plugin was built for: PLUGIN_API of its copy of this package. */
  readonly [MADE_FOR]: number
}

/** Defines a plugin that the configuration can name. It must be the default export of its module. */
export function definePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>): PluginFactory<Schema> {
  const make = (options?: z.input<Schema>): MadePlugin => ({
    ...makePlugin(definition, options),
    [MADE_FOR]: PLUGIN_API,
  })
  return Object.assign(make, { definition, [MADE_FOR]: PLUGIN_API })
}

/** Creates a plugin. Throws PluginError for invalid options, and for errors of `create`. */
export function makePlugin<Schema extends z.ZodType>(
  definition: PluginDefinition<Schema>,
  options: unknown,
): MadePlugin {
  const { name } = definition
  const read = readOptions(definition, options)
  return attempt(name, 'cannot be made with these options', () => {
    const { host, attach } = lateHost(name)
    const made: unknown = definition.create(read, host)
    if (typeof made !== 'object' || made === null || 'then' in made)
      throw new TypeError('create() must return an object, not a promise: asynchronous work belongs in start()')
    const standard = definition.standard && { [STANDARD]: true as const }
    const { reconfigure } = made as Created<z.output<Schema>>
    // Anything but a function is refused with the other problems of the plugin.
    const checked = typeof reconfigure === 'function' && {
      reconfigure: (given: unknown) => reconfigure.call(made, readOptions(definition, given)),
    }
    // Only the definition says so, which the command line accepts of its own plugins alone.
    const { [STANDARD]: _, ...own } = made as MadePlugin
    return { ...own, ...checked, name, [ATTACH]: attach, ...standard }
  })
}

function readOptions<Schema extends z.ZodType>(
  definition: PluginDefinition<Schema>,
  options: unknown,
): z.output<Schema> {
  const { name, options: schema } = definition
  const given = options ?? {}
  if (!schema) {
    const problems = Object.keys(given).map((option) => `takes no options: leave out ${option}`)
    return refuse(name, problems) as z.output<Schema>
  }
  if (schema._zod === undefined) refuse(name, ['has options that are not a schema of zod 4'])
  const result = attempt(name, 'cannot check its options', () => schema.safeParse(given))
  const unknown = unknownOptions(schema, given).map((path) => `option ${path}: no such option`)
  const issues = (result.error?.issues ?? []).map(({ path, message }) =>
    path.length > 0 ? `option ${pathText(path)}: ${said(message)}` : message,
  )
  refuse(name, [...unknown, ...issues])
  return result.data as z.output<Schema>
}

/** Rewrites zod's message for a missing option, which names only the expected type. */
function said(message: string): string {
  const [, expected] = /^Invalid input: expected (.+), received undefined$/.exec(message) ?? []
  return expected === undefined ? message : `is required (${expected})`
}

function refuse(name: string, problems: readonly string[]): undefined {
  if (problems.length > 0) throw new PluginError(problems.map((problem) => `the plugin "${name}": ${problem}`))
}

function attempt<T>(name: string, failure: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new PluginError([`the plugin "${name}": ${failure}: ${messageOf(cause)}`], { cause })
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((part, i) => (typeof part === 'number' ? `[${part}]` : `${i > 0 ? '.' : ''}${String(part)}`)).join('')
}

/**
 * The parts of a schema's definition that are used here. The schema may be of another copy of zod.
 * https://zod.dev/library-authors
 */
interface Definition {
  readonly type?: string
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly catchall?: unknown
  readonly innerType?: z.ZodType
}

/** Returns the paths of members that `z.object` would silently drop, because a misspelt option must not be ignored. */
function unknownOptions(schema: z.ZodType, value: unknown, path = ''): string[] {
  const { type, shape, catchall, innerType }: Definition = schema._zod.def
  if (innerType) return unknownOptions(innerType, value, path)
  if (type !== 'object' || !shape || catchall !== undefined || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const known = Object.hasOwn(shape, name) ? shape[name] : undefined
    return known ? unknownOptions(known, member, `${path}${name}.`) : [`${path}${name}`]
  })
}

/** A plugin as definePlugin makes it. */
export interface MadePlugin extends Plugin {
  /** Gives the host of `create` its server. */
  readonly [ATTACH]?: (host: PluginHost) => void
  /** See PluginFactory. */
  readonly [MADE_FOR]?: number
  /** See PluginDefinition.standard. */
  readonly [STANDARD]?: true
}

export interface PluginDefinition<Schema extends z.ZodType> {
  /** See `Plugin.name`. Must not be a reserved name (src/plugins/check-plugins.ts). */
  readonly name: string
  /**
   * True for a plugin that is part of S3 and ships with this package: it may have a reserved name, and answer requests
   * of S3 that the server itself does not, with actions of S3. No plugin that is loaded by its path or package may.
   */
  readonly standard?: true
  /** One sentence about its purpose. */
  readonly summary?: string
  /**
   * Schema of the options. Invalid options and options that are not in a `z.object` abort the start. Give each option a
   * `.describe()`. Must be synchronous.
   */
  readonly options?: Schema
  /**
   * Declares the plugin, without opening resources: that belongs in `start`. Called once for each server that runs the
   * plugin.
   * @param host to build on; it works once the server starts the plugin
   */
  create(options: z.output<Schema>, host: PluginHost): Created<z.output<Schema>>
}

/** What `create` returns: the plugin, whose `reconfigure` gets options that the schema has read. */
interface Created<Options> extends Omit<Plugin, 'name' | 'reconfigure'> {
  /** See `Plugin.reconfigure`. */
  reconfigure?(options: Options): () => void
}

/** Registered globally, because a plugin may bring its own copy of this package. */
export const MADE_FOR: unique symbol = Symbol.for('dealgate.plugin')

/** Marks a standard plugin. Registered globally, as MADE_FOR is. */
export const STANDARD: unique symbol = Symbol.for('dealgate.plugin.standard')

/** The configured plugins cannot run. `problems` lists every problem, each with the plugin's name and a remedy. */
export class PluginError extends Error {
  override readonly name = 'PluginError'

  constructor(
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(
      problems.length === 1
        ? problems[0]
        : `the plugins have ${problems.length} problems:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      options,
    )
  }
}

export const ACCESSES: readonly OperationAccess[] = ['signed', 'bearer', 'anonymous', 'public', 'owner']

/** Types an operation; returns it unchanged. */
export function defineOperation<R extends Resource>(operation: Operation<R>): Operation<R> {
  return operation
}
