import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import { Overdue, withinDeadline } from '../../common/deadline.js'
import { messageOf } from '../blame.js'
import { ageProblem, pluginProblems } from '../check-plugins.js'
import { makePlugin } from '../make-plugin.js'
import { MADE_FOR, type Plugin, type PluginDefinition } from '../plugin.js'
import { PluginError } from '../plugin-error.js'
import { nameProblem } from '../plugin-name.js'
import { resolveModule } from './resolve-module.js'

/** A plugin that the configuration asks for. */
export interface PluginUse {
  /** Name of a plugin that comes along, or of a package, or the path of a file or folder. */
  readonly use: string
  readonly options?: unknown
  /** Folder that paths and packages are looked for from. */
  readonly from: string
}

/** What is needed of a PluginFactory: one of another copy of this package has no more in common with ours. */
export interface Loadable {
  readonly definition: PluginDefinition<z.ZodType>
  readonly [MADE_FOR]: number
}

export interface LoadedPlugin extends Loadable {
  /** `built-in`, or the file that it was loaded from. */
  readonly source: string
  /** A fresh one at each call, with the options that were given. */
  readonly make: () => Plugin
  readonly plugin: Plugin
}

/** How long the module of a plugin may take to load, ms. */
const LOAD_MS = 30_000

/** Loads and makes all, in order; throws PluginError with every problem that stands in the way of any. Nothing is started. */
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
  return { definition: found.definition, [MADE_FOR]: found[MADE_FOR], source, make, plugin: make() }
}

async function fromModule(use: PluginUse): Promise<{ found: Loadable; source: string }> {
  const url = await resolveModule(use.use, use.from)
  const source = fileURLToPath(url)
  const found = loadable(await importModule(url, source), source)
  const { name, create } = found.definition
  const wrong = ageProblem(found[MADE_FOR]) ?? nameProblem(name)
  if (wrong) throw new Error(`${wrong} (it calls itself "${name}")`)
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
  if (error instanceof Overdue) return `the module has not been ready within ${LOAD_MS / 1000} s`
  if (error instanceof SyntaxError) return `${error.message}. \`node --check ${file}\` shows where`
  // Where loaders are at work (node --import), errors of Node have lost their codes.
  const message = messageOf(error)
  if (/^Cannot find (?:package|module)/.test(message))
    return `${message}. Install what it needs in its own folder (npm install)`
  if (/unknown.file.extension/i.test(message)) return `${message}. Compile it to JavaScript`
  return message
}

function loadable(module: Record<string, unknown>, file: string): Loadable {
  // A CommonJS module that was compiled from ESM has its default export inside the one that Node gives it.
  const inner = module.default as { default?: unknown } | undefined | null
  for (const candidate of [module.default, inner?.default]) {
    if (isLoadable(candidate)) return candidate
    if (isMarked(candidate))
      throw new Error(
        `the default export of ${file} is a plugin that is made already: export what definePlugin returns`,
      )
  }
  throw new Error(`${file} has no default export that was made with definePlugin`)
}

function isLoadable(value: unknown): value is Loadable {
  return typeof value === 'function' && isMarked(value) && typeof (value as Partial<Loadable>).definition === 'object'
}

function isMarked(value: unknown): boolean {
  return (typeof value === 'function' || (typeof value === 'object' && value !== null)) && MADE_FOR in value
}
