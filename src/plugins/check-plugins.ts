import type { StorageClass } from '../api/context.js'
import type { PluginHooks } from '../api/hooks.js'
import type { AnyOperation } from '../api/operation.js'
import type { Plugin } from '../api/plugin.js'
import { actionNames, isRowAction } from './actions.js'
import { messageOf } from './deadlines.js'
import { ACCESSES, MADE_FOR, type MadePlugin, PLUGIN_API, PluginError, STANDARD } from './define-plugin.js'
import { isHotClass } from './storage-class.js'
import { collisions, rowsOf } from './table.js'

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
const HOOKS: Readonly<Record<keyof PluginHooks, true>> = {
  objectStored: true,
  objectDeleted: true,
  objectTagged: true,
  objectMoved: true,
  inventoryFailed: true,
}

/**
 * Throws PluginError with every problem that keeps these plugins from running: each must match its type, answer only
 * requests in its own namespace, and not conflict with another plugin.
 * @param core the server's own plugins, which may answer any request
 */
export function checkPlugins(plugins: readonly Plugin[], core: readonly Plugin[]): void {
  const problems = pluginProblems(plugins, core)
  if (problems.length > 0) throw new PluginError(problems)
}

/** Like checkPlugins, but returns the problems as sentences. */
export function pluginProblems(plugins: readonly Plugin[], core: readonly Plugin[] = []): string[] {
  const problems = [...core.flatMap(undeclared), ...plugins.flatMap((plugin) => problemsOf(plugin))]
  // A malformed plugin has no routes to compare.
  return problems.length > 0 ? problems : clashes([...core, ...plugins])
}

/**
 * Throws PluginError for calls of these plugins whose members have like names. That reads all schemas, which the first
 * request to each call would do otherwise.
 */
export function checkCalls(plugins: readonly Plugin[]): void {
  const problems = plugins.flatMap(({ name, operations }) =>
    operations.flatMap(({ checkCall }) => {
      try {
        checkCall?.()
        return []
      } catch (error) {
        return [`the plugin "${name}": ${messageOf(error)}`]
      }
    }),
  )
  if (problems.length > 0) throw new PluginError(problems)
}

/** The server's own operations may answer any request, and declare their access like all others. */
function undeclared({ name, operations }: Plugin): string[] {
  return operations.flatMap((operation) =>
    accessProblems(operation, name).map((problem) => `the plugin "${name}": operation ${operation.name} ${problem}`),
  )
}

function problemsOf(given: unknown): string[] {
  if (typeof given === 'function') return ['a plugin is given as its factory function: call it with its options']
  if (typeof given !== 'object' || given === null)
    return ['a value is given as a plugin that is not one: see definePlugin']
  const plugin = given as MadePlugin
  const wrong = nameProblem(plugin.name, plugin[STANDARD]) ?? ageProblem(plugin[MADE_FOR])
  const problems = wrong === undefined ? shapeProblems(plugin) : [wrong]
  return problems.map((problem) => `the plugin "${plugin.name}": ${problem}`)
}

/** Returns the problem of a plugin that was built for another API version; undefined if there is none. */
export function ageProblem(madeFor: unknown): string | undefined {
  if (madeFor === undefined || madeFor === PLUGIN_API) return undefined
  const advice = Number(madeFor) > PLUGIN_API ? 'update dealgate' : 'update the plugin'
  return `it was built for version ${madeFor} of the plugin API, and this is version ${PLUGIN_API}: ${advice}`
}

function shapeProblems(plugin: MadePlugin): string[] {
  const { operations, storageClasses, jobs, outputMetadata, metadataActions, gauges } = plugin
  const { demandsEncryption, reconfigure, requestEnded, start, stop } = plugin
  const malformed = [
    ...Object.entries({ operations: operations ?? null, storageClasses, jobs, outputMetadata, gauges })
      .filter(([, list]) => list !== undefined && !Array.isArray(list))
      .map(([what]) => `${what} must be a list${what === 'operations' ? ', which may be empty' : ''}`),
    ...Object.entries({ demandsEncryption, reconfigure, requestEnded, start, stop })
      .filter(([, called]) => called !== undefined && typeof called !== 'function')
      .map(([what]) => `${what} must be a function`),
    ...hookProblems(plugin.hooks),
    ...actionProblems(metadataActions),
    ...gaugeProblems(gauges),
    ...inventoryProblems(plugin.inventory),
  ]
  return malformed.length > 0 ? malformed : memberProblems(plugin)
}

function gaugeProblems(gauges: unknown): string[] {
  if (!Array.isArray(gauges)) return []
  const wellFormed = gauges.every(
    (gauge) => /^[a-z][a-z0-9_]{0,63}$/.test(gauge?.name) && isText(gauge.help) && typeof gauge.read === 'function',
  )
  const once = new Set(gauges.map((gauge) => gauge?.name)).size === gauges.length
  return wellFormed && once
    ? []
    : ['each of the gauges must have a name of its own of lower-case letters, digits and _, `help` and `read`']
}

function inventoryProblems(inventory: unknown): string[] {
  if (inventory === undefined) return []
  const { fields, read } = Object(inventory) as { fields?: unknown; read?: unknown }
  const wellFormed =
    typeof read === 'function' &&
    Array.isArray(fields) &&
    fields.every(
      (field) =>
        /^x-[A-Z][A-Za-z0-9]{0,63}$/.test(field?.name) &&
        ['text', 'integer', 'time'].includes(field.type) &&
        isText(field.summary),
    )
  return wellFormed
    ? []
    : [
        'inventory must have `read` and fields, each with a name like x-DealState, a type of text, integer or time, and a summary',
      ]
}

function actionProblems(actions: unknown = {}): string[] {
  const wellFormed =
    typeof actions === 'object' &&
    actions !== null &&
    Object.entries(actions).every(([name, action]) => name === name.toLowerCase() && isText(action))
  return wellFormed ? [] : ['metadataActions must have lower-case names, each with an action']
}

function hookProblems(hooks: unknown = {}): string[] {
  if (typeof hooks !== 'object' || hooks === null) return ['hooks must be an object']
  return Object.entries(hooks).flatMap(([hook, called]) => {
    if (!Object.hasOwn(HOOKS, hook)) return [`there is no hook ${hook}; the hooks are ${Object.keys(HOOKS).join(', ')}`]
    return typeof called === 'function' ? [] : [`the hook ${hook} must be a function`]
  })
}

function memberProblems({ name, operations, storageClasses = [], jobs = [], ...plugin }: MadePlugin): string[] {
  return [
    ...operations.flatMap((operation) => operationProblems(name, operation, plugin[STANDARD])),
    ...storageClasses.flatMap(classProblems),
    ...jobs
      .filter((kind) => !String(kind?.name).startsWith(`${name}:`) || typeof kind.run !== 'function')
      .map((kind) => `the kind of jobs ${kind?.name} must have a name that begins with ${name}: and a run()`),
  ]
}

function classProblems(offered: StorageClass | undefined): string[] {
  const { name, transition } = offered ?? {}
  if (!isText(name) || !/^[A-Z][A-Z0-9_]{0,63}$/.test(name) || typeof transition !== 'function')
    return [`the storage class ${name} must have a name like GLACIER and transition()`]
  return isHotClass(name) ? [`the storage class ${name} is the server's own`] : []
}

function operationProblems(plugin: string, operation: AnyOperation, standard = false): string[] {
  if (!isText(operation?.name) || !/^[A-Za-z][A-Za-z0-9]{0,63}$/.test(operation.name))
    return ['an operation must have a name of letters and digits']
  const { source, run, deadlineMs, keeps } = operation
  const problems: (string | undefined)[] = [
    isText(source) ? undefined : 'must name its source',
    typeof run === 'function' ? undefined : 'must have run()',
    ...accessProblems(operation, plugin),
    standard ? undefined : foreignAction(plugin, operation),
    keeps === undefined ? undefined : 'must not have `keeps`: multipart uploads belong to the server',
    deadlineMs === undefined || (deadlineMs > 0 && deadlineMs < 2 ** 31)
      ? undefined
      : 'must have a deadlineMs between 0 and 2^31',
    standard ? undefined : routeProblem(plugin, operation.on),
  ]
  return problems.filter((problem) => problem !== undefined).map((problem) => `operation ${operation.name} ${problem}`)
}

/** A policy that names the actions of one plugin must not decide about another plugin. */
function foreignAction(plugin: string, { action, access }: AnyOperation): string | undefined {
  if (!isRowAction(action)) return undefined
  if (action === 'none')
    return access === 'public' ? undefined : 'must declare an `action`: only public operations have none'
  const foreign = actionNames(action, plugin).find((name) => !name.startsWith(`${plugin}:`))
  return foreign === undefined ? undefined : `must declare actions of its own, ${plugin}:..., not ${foreign}`
}

/** Returns the problems of the declaration of access, which every operation must have. */
export function accessProblems({ access, action, needs, on, call, name }: AnyOperation, plugin: string): string[] {
  if (access === undefined) return [`must declare its \`access\`: ${ACCESSES.join(', ')}`]
  if (!ACCESSES.includes(access)) return [`must have an \`access\` of ${ACCESSES.join(', ')}`]
  if (access === 'bearer' && (on?.resource !== 'service' || !call || call.job !== undefined))
    return ['must not have the access bearer: that is for calls of the service without a job']
  const takesBody = on?.method === 'PUT' || on?.method === 'POST'
  return [
    ...(access === 'owner' && on?.resource === 'service'
      ? ['must not have the access owner: the service has no owner']
      : []),
    ...(takesBody && on.resource !== 'service' && !call && access !== 'public' && !isNeeds(needs)
      ? ['takes a body and must declare in `needs` which right that asks for, such as { key: "write" }']
      : []),
    ...(isRowAction(action) ? [] : [`must declare its \`action\`, such as '${plugin}:${name}'`]),
    ...(needs !== undefined && !isNeeds(needs) ? ['must have `needs` that there are'] : []),
  ]
}

/** A value in plain JavaScript may be anything. */
function isNeeds(needs: unknown): boolean {
  if (needs === 'form') return true
  if (typeof needs !== 'object' || needs === null) return false
  const { key, some, bucket } = needs as Readonly<Record<string, unknown>>
  const isWay = (way: unknown) => way === 'read' || way === 'write'
  return (
    isWay(key) || isWay(some) || some === 'any' || (Array.isArray(bucket) && bucket.length > 0 && bucket.every(isWay))
  )
}

/**
 * Returns the problem of a route. Plugins cannot use PUT and DELETE on buckets and objects: a server that does not know
 * the sub-resource would apply them to the object itself.
 */
function routeProblem(plugin: string, on: AnyOperation['on'] | undefined): string | undefined {
  const { method, resource, path, query = [], params = [], header, headers = [] } = on ?? {}
  const words = [query, params, headers]
  if (!METHODS.includes(String(method)) || !words.every((list) => Array.isArray(list) && list.every(isText)))
    return 'must declare in `on` which requests it answers'
  if (header !== undefined && (!isText(header) || header !== header.toLowerCase()))
    return 'must name its header in lower case'
  switch (resource) {
    case 'service':
      return isText(path) && new RegExp(`^/-/${plugin}/v[1-9]\\d{0,3}(?:/|$)`).test(path)
        ? undefined
        : `must have a path below /-/${plugin}/v1/`
    case 'bucket':
    case 'object':
      if (method === 'PUT' || method === 'DELETE') return `must use GET, HEAD or POST, not ${method}`
      return query.some((name) => new RegExp(`^x-${plugin}(?:-|=|$)`).test(name))
        ? undefined
        : `must have a sub-resource of its own, x-${plugin} or x-${plugin}-..., in \`query\``
    default:
      return 'must have the resource service, bucket or object'
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
    ...doubled(plugins.flatMap(({ name, offers = {} }) => Object.keys(offers).map((one) => [one, name]))).map(
      ([offered, ...owners]) => `plugins ${owners.join(' and ')} both offer ${offered} to others`,
    ),
    ...doubled(plugins.flatMap(({ name, expansions = [] }) => expansions.map((one) => [one.name, name]))).map(
      ([value, ...owners]) => `plugins ${owners.join(' and ')} both define expand=${value}`,
    ),
    ...doubled(plugins.flatMap(({ name, inventory }) => (inventory?.fields ?? []).map((one) => [one.name, name]))).map(
      ([field, ...owners]) => `plugins ${owners.join(' and ')} both have the field ${field} of inventories`,
    ),
    ...doubled(plugins.flatMap(({ name, jobs = [] }) => jobs.map((kind) => [kind.name, name]))).map(
      ([kind, ...owners]) => `plugins ${owners.join(' and ')} both have jobs named ${kind}`,
    ),
  ]
}

/** Returns the names that occur more than once, each with its owners in quotes. */
function doubled(pairs: readonly (readonly [name: string, owner: string])[]): string[][] {
  const owners = new Map<string, string[]>()
  for (const [name, owner] of pairs) owners.set(name, [...(owners.get(name) ?? []), `"${owner}"`])
  return [...owners].filter(([, all]) => all.length > 1).map(([name, all]) => [name, ...all])
}

/**
 * Returns the problem of a plugin's name, as a predicate after "the plugin x"; undefined if there is none.
 * @param standard the plugin ships with this package, and may have a reserved name
 */
export function nameProblem(name: unknown, standard = false): string | undefined {
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,31}$/.test(name))
    return 'must have a name of at most 32 lower-case letters, digits and -, a letter first'
  if (!standard && (RESERVED.has(name) || TAKEN.test(name))) return 'has a reserved name: choose another'
  return undefined
}

/** First segments below `/-/` that the server uses or reserves, and names of its own and of standard plugins. */
const RESERVED = new Set([
  'live',
  'ready',
  'health',
  'metrics',
  'version',
  'capabilities',
  'docs',
  'console',
  'reload',
  'plugins',
  'jobs',
  'activity',
  'batch',
  'inventory',
  'upkeep',
  'usage',
  'quota',
  'encryption',
  'events',
  'auth',
  'sts',
  'inbox',
  'outbox',
  's3',
  'self',
  'notifications',
  'gateway',
  'keys',
  'accounts',
  'changes',
  'options',
  'share',
  'policy',
  'requests',
  'lifecycle',
  'zip',
])

/**
 * Names that would collide with `?x-id` and `?x-amz-...`, because sub-resources of plugins begin with `x-` and the
 * plugin's name.
 */
const TAKEN = /^(id|amz|cloud|dealgate)(-|$)/
