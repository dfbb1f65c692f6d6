import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import { Overdue, withinDeadline } from '../../common/deadline.js'
import { messageOf } from '../containment/blame.js'
import { makePlugin } from '../forms/make-plugin.js'
import { MADE_FOR, type Plugin, type PluginDefinition } from '../forms/plugin.js'
import { PluginError } from '../forms/plugin-error.js'
import { ageProblem, pluginProblems } from './check-plugins.js'
import { nameProblem } from './plugin-name.js'
import { resolveModule } from './resolve-module.js'

/** A plugin that the configuration names. */
export interface PluginUse {
  /** Name of a built-in plugin or of a package, or the path of a file or folder. */
  readonly use: string
  readonly options?: unknown
  /** Folder that paths and packages are resolved from. */
  readonly from: string
}

/**
 * The parts of a PluginFactory that loading needs. A factory of another copy of this package has only these in common
 * with ours.
 */
export interface Loadable {
  readonly definition: PluginDefinition<z.ZodType>
  readonly [MADE_FOR]: number
}

export interface LoadedPlugin extends Loadable {
  /** `built-in`, or the path of the loaded file. */
  readonly source: string
  /** Creates a new plugin at each call, with the configured options. */
  readonly make: () => Plugin
  readonly plugin: Plugin
}

/** How long the module of a plugin may take to load, ms. */
const LOAD_MS = 30_000

/**
 * Loads and creates all plugins, in order, without starting them. Throws PluginError with the problems of all of them.
 */
export async function loadPlugins(uses: readonly PluginUse[], builtIns: readonly Loadable[]): Promise<LoadedPlugin[]> {
  const loaded: LoadedPlugin[] = []
  const problems: string[] = []
  for (const use of uses) {
    try {
      loaded.push(await loadPlugin(use, builtIns))
    } catch (error) {
      problems.push(
        ...(error instanceof PluginError ? error.problems : [`the plugin "${use.use}": ${messageOf(error)}`]),
      )
    }
  }
  problems.push(...pluginProblems(loaded.map(({ plugin }) => plugin)))
  if (problems.length > 0) throw new PluginError(problems)
  return loaded
}

async function loadPlugin(use: PluginUse, builtIns: readonly Loadable[]): Promise<LoadedPlugin> {
  const builtIn = builtIns.find(({ definition }) => definition.name === use.use)
  const { found, source } = builtIn ? { found: builtIn, source: 'built-in' } : await fromModule(use)
  const make = () => makePlugin(found.definition, use.options)
  const plugin = make()
  // Tests do so for the built-in plugins, of which each start would pay for it.
  if (!builtIn) for (const operation of plugin.operations ?? []) operation?.checkCall?.()
  return { definition: found.definition, [MADE_FOR]: found[MADE_FOR], source, make, plugin }
}

async function fromModule(use: PluginUse): Promise<{ found: Loadable; source: string }> {
  const url = await resolveModule(use.use, use.from)
  const source = fileURLToPath(url)
  const found = loadable(await importModule(url, source), source)
  const { name, create } = found.definition
  const wrong = ageProblem(found[MADE_FOR]) ?? nameProblem(name)
  if (wrong) throw new Error(`${wrong} (its name is "${name}")`)
  if (typeof create !== 'function') throw new Error(`its definition in ${source} must have create()`)
  return { found, source }
}

async function importModule(url: URL, file: string): Promise<Record<string, unknown>> {
  try {
    return await withinDeadline(import(url.href), LOAD_MS)
  } catch (cause) {
    throw new Error(`${file} cannot be loaded: ${loadMessage(cause, file)}`, { cause })
  }
}

function loadMessage(error: unknown, file: string): string {
  if (error instanceof Overdue) return `the module did not load within ${LOAD_MS / 1000} s`
  if (error instanceof SyntaxError) return `${error.message}. \`node --check ${file}\` shows where`
  // With custom loaders (node --import), errors of Node have no codes.
  const message = messageOf(error)
  if (/^Cannot find (?:package|module)/.test(message))
    return `${message}. Install its dependencies in its own folder (npm install)`
  if (/unknown.file.extension/i.test(message)) return `${message}. Compile it to JavaScript`
  return message
}

function loadable(module: Record<string, unknown>, file: string): Loadable {
  // A CommonJS module that was compiled from ESM has its default export inside the default export that Node gives it.
  const inner = module.default as { default?: unknown } | undefined | null
  for (const candidate of [module.default, inner?.default]) {
    if (isLoadable(candidate)) return candidate
    if (isMarked(candidate))
      throw new Error(`the default export of ${file} is an already created plugin: export what definePlugin returns`)
  }
  throw new Error(`${file} has no default export from definePlugin`)
}

function isLoadable(value: unknown): value is Loadable {
  return typeof value === 'function' && isMarked(value) && typeof (value as Partial<Loadable>).definition === 'object'
}

function isMarked(value: unknown): boolean {
  return (typeof value === 'function' || (typeof value === 'object' && value !== null)) && MADE_FOR in value
}
