import type { PluginHooks } from './hooks.js'
import { type AnyOperation, MADE_FOR, PLUGIN_API, type Plugin } from './plugin.js'
import { PluginError } from './plugin-error.js'
import { nameProblem } from './plugin-name.js'
import { isHotClass, type StorageClass } from './storage-class.js'
import { collisions, rowsOf } from './table.js'

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
const HOOKS: Readonly<Record<keyof PluginHooks, true>> = {
  objectStored: true,
  objectDeleted: true,
  objectTagged: true,
  objectMoved: true,
}

/**
 * Throws PluginError with all that keeps these plugins from running: each must be what its type says, keep to the requests that are its own, and collide with none
 * of the others.
 * @param core the server's own plugins, which may answer any request
 */
export function checkPlugins(plugins: readonly Plugin[], core: readonly Plugin[]): void {
  const problems = pluginProblems(plugins, core)
  if (problems.length > 0) throw new PluginError(problems)
}

/** As checkPlugins; the problems in sentences. */
export function pluginProblems(plugins: readonly Plugin[], core: readonly Plugin[] = []): string[] {
  const problems = plugins.flatMap((plugin) => problemsOf(plugin))
  // What is malformed has no routes to compare.
  return problems.length > 0 ? problems : clashes([...core, ...plugins])
}

function problemsOf(given: unknown): string[] {
  if (typeof given === 'function') return ['a plugin is given as the function that makes it: call it, with its options']
  if (typeof given !== 'object' || given === null) return ['a plugin is given that is none: see definePlugin']
  const plugin = given as Plugin
  const wrong = nameProblem(plugin.name) ?? ageProblem(plugin[MADE_FOR])
  const problems = wrong === undefined ? shapeProblems(plugin) : [wrong]
  return problems.map((problem) => `the plugin "${plugin.name}": ${problem}`)
}

/** What is wrong with a plugin that was made for this agreement between plugins and servers; undefined for nothing. */
export function ageProblem(madeFor: unknown): string | undefined {
  if (madeFor === undefined || madeFor === PLUGIN_API) return undefined
  const advice = Number(madeFor) > PLUGIN_API ? 'update dealgate' : 'update the plugin'
  return `it is made for version ${madeFor} of the plugin interface, and this is version ${PLUGIN_API}: ${advice}`
}

function shapeProblems(plugin: Plugin): string[] {
  const { operations, storageClasses, jobs, outputMetadata, start, stop } = plugin
  const malformed = [
    ...Object.entries({ operations: operations ?? null, storageClasses, jobs, outputMetadata })
      .filter(([, list]) => list !== undefined && !Array.isArray(list))
      .map(([what]) => `${what} must be a list${what === 'operations' ? ', which may be empty' : ''}`),
    ...Object.entries({ start, stop })
      .filter(([, called]) => called !== undefined && typeof called !== 'function')
      .map(([what]) => `${what} must be a function`),
    ...hookProblems(plugin.hooks),
  ]
  return malformed.length > 0 ? malformed : memberProblems(plugin)
}

function hookProblems(hooks: unknown = {}): string[] {
  if (typeof hooks !== 'object' || hooks === null) return ['hooks must be an object']
  return Object.entries(hooks).flatMap(([hook, called]) => {
    if (!Object.hasOwn(HOOKS, hook)) return [`there is no hook ${hook}, but ${Object.keys(HOOKS).join(', ')}`]
    return typeof called === 'function' ? [] : [`the hook ${hook} must be a function`]
  })
}

function memberProblems({ name, operations, storageClasses = [], jobs = [] }: Plugin): string[] {
  return [
    ...operations.flatMap((operation) => operationProblems(name, operation)),
    ...storageClasses.flatMap(classProblems),
    ...jobs
      .filter((kind) => !String(kind?.name).startsWith(`${name}:`) || typeof kind.run !== 'function')
      .map((kind) => `jobs named ${kind?.name} must have a name that begins with ${name}: and run()`),
  ]
}

function classProblems(offered: StorageClass | undefined): string[] {
  const { name, transition } = offered ?? {}
  if (!isText(name) || !/^[A-Z][A-Z0-9_]{0,63}$/.test(name) || typeof transition !== 'function')
    return [`the storage class ${name} must have a name like GLACIER and transition()`]
  return isHotClass(name) ? [`the storage class ${name} is the server's own`] : []
}

function operationProblems(plugin: string, operation: AnyOperation): string[] {
  if (!isText(operation?.name) || !/^[A-Za-z][A-Za-z0-9]{0,63}$/.test(operation.name))
    return ['an operation must have a name of letters and digits']
  const { source, run, access, deadlineMs } = operation
  const problems: (string | undefined)[] = [
    isText(source) ? undefined : 'must name its source',
    typeof run === 'function' ? undefined : 'must have run()',
    [undefined, 'signed', 'anonymous', 'public'].includes(access) ? undefined : 'must have an access that there is',
    deadlineMs === undefined || (deadlineMs > 0 && deadlineMs < 2 ** 31) ? undefined : 'must have a sane deadlineMs',
    routeProblem(plugin, operation.on),
  ]
  return problems.filter((problem) => problem !== undefined).map((problem) => `operation ${operation.name} ${problem}`)
}

/** Whoever does not know a sub-resource takes PUT and DELETE for those of the object itself, which is why plugins do not get them. */
function routeProblem(plugin: string, on: AnyOperation['on'] | undefined): string | undefined {
  const { method, resource, path, query = [], params = [], header, headers = [] } = on ?? {}
  const words = [query, params, headers]
  if (!METHODS.includes(String(method)) || !words.every((list) => Array.isArray(list) && list.every(isText)))
    return 'must say in `on` which requests it answers'
  if (header !== undefined && (!isText(header) || header !== header.toLowerCase()))
    return 'must name its header in lower case'
  switch (resource) {
    case 'service':
      return isText(path) && new RegExp(`^/-/${plugin}/v[1-9]\\d{0,3}(?:/|$)`).test(path)
        ? undefined
        : `must have a path below /-/${plugin}/v1/`
    case 'bucket':
    case 'object':
      if (method === 'PUT' || method === 'DELETE') return `must be asked for with GET, HEAD or POST, not ${method}`
      return query.some((name) => new RegExp(`^x-${plugin}(?:-|=|$)`).test(name))
        ? undefined
        : `must have a sub-resource of its own, x-${plugin} or x-${plugin}-..., in \`query\``
    default:
      return 'must be about the service, a bucket or an object'
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function clashes(plugins: readonly Plugin[]): string[] {
  return [
    ...doubled(plugins.map(({ name }) => [name, name])).map(([name]) => `there are two plugins named "${name}"`),
    ...collisions(rowsOf(plugins)),
    ...doubled(plugins.flatMap(({ name, storageClasses = [] }) => storageClasses.map((s) => [s.name, name]))).map(
      ([offered, ...owners]) => `plugins ${owners.join(' and ')} both offer the storage class ${offered}`,
    ),
    ...doubled(plugins.flatMap(({ name, jobs = [] }) => jobs.map((kind) => [kind.name, name]))).map(
      ([kind, ...owners]) => `plugins ${owners.join(' and ')} both have jobs named ${kind}`,
    ),
  ]
}

/** Names that come more than once, each with its owners in quotes. */
function doubled(pairs: readonly (readonly [name: string, owner: string])[]): string[][] {
  const owners = new Map<string, string[]>()
  for (const [name, owner] of pairs) owners.set(name, [...(owners.get(name) ?? []), `"${owner}"`])
  return [...owners].filter(([, all]) => all.length > 1).map(([name, all]) => [name, ...all])
}
