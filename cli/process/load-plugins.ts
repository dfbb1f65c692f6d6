import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { z } from 'zod'
import { isRecord } from '../../common/json.js'
import { Overdue, withinDeadline } from '../../common/time.js'
import type { Plugin } from '../../src/api/plugin.js'
import { ageProblem, nameProblem, pluginProblems } from '../../src/plugins/check-plugins.js'
import { messageOf } from '../../src/plugins/deadlines.js'
import { MADE_FOR, makePlugin, type PluginDefinition, PluginError } from '../../src/plugins/define-plugin.js'

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
  const { name, create, standard } = found.definition
  const wrong = ageProblem(found[MADE_FOR]) ?? nameProblem(name) ?? (standard && 'claims to be a standard plugin')
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
  // The entry `dealgate` had these names before `dealgate/plugin` was there.
  if (/'dealgate' does not provide an export named/.test(messageOf(error)))
    return `${messageOf(error)}. A plugin imports from 'dealgate/plugin', and what is about money from 'dealgate/paid'`
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

/** The conditions of `import`: https://nodejs.org/api/packages.html#conditional-exports */
const CONDITIONS = ['node', 'import', 'module-sync', 'default']

/**
 * Resolves a module as an import in `folder` would: a package by name, from the nearest node_modules at or above the
 * folder; a path that starts with `.` or `/`; a file URL. A path may be a folder: then its package.json determines the
 * file, or it is index.js. (Node 20 resolves only relative to the calling module.) Throws Error with a message for the
 * user.
 */
export async function resolveModule(specifier: string, folder: string): Promise<URL> {
  if (specifier.startsWith('file:')) return fileOf(fileURLToPath(specifier))
  if (/^(?:\.{0,2}[/\\]|\.{1,2}$|[A-Za-z]:[/\\])/.test(specifier)) return fileOf(resolve(folder, specifier))
  return packageFile(specifier, folder)
}

async function fileOf(path: string): Promise<URL> {
  const found = await kindOf(path)
  if (found === undefined) throw new Error(`there is no file or folder ${path}`)
  return found === 'file' ? pathToFileURL(path) : entryOf(path, '.')
}

async function packageFile(specifier: string, folder: string): Promise<URL> {
  const [, name, rest] = /^((?:@[^/@]+\/)?[^/@.][^/@]*)(\/.+)?$/.exec(specifier) ?? []
  if (name === undefined) throw new Error('this is neither a package name nor a path')
  for (let at = resolve(folder); ; at = dirname(at)) {
    const found = join(at, 'node_modules', name)
    if ((await kindOf(found)) === 'folder') return entryOf(found, `.${rest ?? ''}`)
    if (dirname(at) === at) break
  }
  throw new Error(
    `no such package in node_modules at or above ${resolve(folder)}: install it there, or begin the path of a file with ./`,
  )
}

/** Returns the file that a package exports at a subpath; `.` is the package itself. */
async function entryOf(folder: string, subpath: string): Promise<URL> {
  const { exports, main } = await packageJson(folder)
  const given = exports === undefined ? undefined : exported(exports, subpath)
  const candidates =
    exports !== undefined
      ? [given]
      : subpath !== '.'
        ? [subpath]
        : [main, main && `${main}.js`, main && `${main}/index.js`, 'index.js']
  for (const candidate of candidates) {
    if (typeof candidate !== 'string') continue
    const file = join(folder, candidate)
    if ((await kindOf(file)) === 'file') return pathToFileURL(file)
  }
  throw new Error(
    `${folder} has no module${subpath === '.' ? '' : ` ${subpath}`} to load: see "exports" in its package.json`,
  )
}

interface PackageJson {
  readonly exports?: unknown
  readonly main?: string
}

async function packageJson(folder: string): Promise<PackageJson> {
  const file = join(folder, 'package.json')
  if ((await kindOf(file)) === undefined) return {}
  try {
    return JSON.parse(await readFile(file, 'utf8')) as PackageJson
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

function exported(exports: unknown, subpath: string): string | undefined {
  const bySubpath = isRecord(exports) && Object.keys(exports).some((key) => key.startsWith('.'))
  if (bySubpath) return chosen((exports as Record<string, unknown>)[subpath])
  return subpath === '.' ? chosen(exports) : undefined
}

function chosen(target: unknown): string | undefined {
  if (typeof target === 'string') return target
  const branches = Array.isArray(target)
    ? target
    : isRecord(target)
      ? Object.entries(target)
          .filter(([condition]) => CONDITIONS.includes(condition))
          .map(([, branch]) => branch)
      : []
  for (const branch of branches) {
    const found = chosen(branch)
    if (found !== undefined) return found
  }
  return undefined
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  return found.isDirectory() ? 'folder' : 'file'
}
