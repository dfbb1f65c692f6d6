import type { Logger } from '../../common/log.js'
import { withinDeadline } from '../../common/time.js'
import type { OutputMetadata, StorageClass, StorageClasses } from '../api/context.js'
import type { Limits } from '../api/limits.js'
import type { Plugin } from '../api/plugin.js'
import { actionNames, isRowAction, metadataActionsOf } from './actions.js'
import { checkCalls, checkPlugins } from './check-plugins.js'
import { containPlugin } from './contain/contain-plugin.js'
import { messageOf } from './deadlines.js'
import type { MadePlugin } from './define-plugin.js'
import { PluginError } from './define-plugin.js'
import { ATTACH, type OpenHost, openHost, type SharedHost } from './host.js'
import { createTable } from './table.js'

interface Combination {
  readonly core: readonly Plugin[]
  readonly added: readonly Plugin[]
  /** See `ProxyOptions.pluginsChecked`. */
  readonly checked: boolean
  readonly limits: Pick<Limits, 'pluginDeadlineMs' | 'hookDeadlineMs'>
}

export type PluginSet = ReturnType<typeof combinePlugins>

/**
 * Combines the server's own plugins with the added ones, which run contained.
 * @throws PluginError for plugins that are malformed or conflict
 */
export function combinePlugins({ core, added, checked, limits }: Combination) {
  checkPlugins(added, core)
  const plugins = [...core, ...added.map((plugin) => containPlugin(plugin, limits))]
  const table = createTable(plugins)
  // Asked twice by each write: to await what most plugins do not have would take a turn of the microtasks for each.
  const demanding = plugins.filter((plugin) => plugin.demandsEncryption)
  if (!checked) checkCalls(added)
  return {
    plugins,
    table,
    storageClasses: storageClassesOf(plugins),
    outputMetadata: outputMetadataOf(plugins),
    metadataActions: metadataActionsOf(plugins),
    async demandsEncryption(bucket: string): Promise<boolean> {
      for (const plugin of demanding) if (await plugin.demandsEncryption?.(bucket)) return true
      return false
    },
    actions: pluginActionsOf(plugins),
    expansions: plugins.flatMap((plugin) => plugin.expansions ?? []),
    inventories: plugins.flatMap((plugin) => plugin.inventory ?? []),
    jobs: plugins.flatMap((plugin) => plugin.jobs ?? []),
    /** See `Plugin.reconfigure`. @param options by the name of the plugin; others keep theirs */
    reconfigure(options: Readonly<Record<string, unknown>>): () => void {
      const changes = plugins.flatMap((plugin) =>
        Object.hasOwn(options, plugin.name) ? (plugin.reconfigure?.(options[plugin.name]) ?? []) : [],
      )
      return () => {
        for (const use of changes) use()
      }
    },
  }
}

/** Returns the storage classes by name. `checkPlugins` has refused two of one name. */
function storageClassesOf(plugins: readonly Plugin[]): StorageClasses {
  const offered = plugins.flatMap(({ storageClasses = [] }) => storageClasses)
  return new Map<string, StorageClass>(offered.map((one) => [one.name, one]))
}

function outputMetadataOf(plugins: readonly Plugin[]): OutputMetadata {
  const names = plugins.flatMap((plugin) => plugin.outputMetadata ?? [])
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}

type Acting = Pick<Plugin, 'name' | 'operations' | 'storageClasses' | 'jobs' | 'metadataActions'>

/** Returns the names of the actions that plugins ask for, without those of S3: what policies may name. */
export function pluginActionsOf(plugins: readonly Acting[]): readonly string[] {
  const names = plugins.flatMap(({ name, operations, storageClasses = [], jobs = [], metadataActions = {} }) => [
    // A plugin in plain JavaScript may not have been checked yet.
    ...operations.flatMap(({ action }) => (isRowAction(action) ? actionNames(action, name) : [])),
    ...storageClasses.flatMap(({ action }) => action ?? []),
    ...jobs.map((kind) => kind.name),
    ...Object.values(metadataActions),
  ])
  return [...new Set(names)].filter((name) => !name.startsWith('s3:')).sort()
}

interface LifeTimes {
  readonly startMs: number
  readonly stopMs: number
}

const standard: LifeTimes = { startMs: 30_000, stopMs: 30_000 }

/** Stops the started plugins in reverse order. Never rejects: errors and timeouts are logged. */
type StopPlugins = () => Promise<void>

/**
 * Starts one plugin after the other. If one fails or takes too long, stops it and those before it, and throws
 * PluginError.
 */
export async function startPlugins(
  plugins: readonly Plugin[],
  shared: Omit<SharedHost, 'offered'>,
  log: Logger,
  times: LifeTimes = standard,
): Promise<StopPlugins> {
  const offered = Object.assign({}, ...plugins.map(({ offers }) => offers))
  const begun: StartedPlugin[] = []
  const stop = async () => {
    for (let next = begun.pop(); next; next = begun.pop()) await stopPlugin(next, log, times.stopMs)
  }
  for (const plugin of plugins) {
    const open = openHost(plugin.name, { ...shared, offered }, log.child({ plugin: plugin.name }))
    begun.push({ plugin, open })
    try {
      await withinDeadline(start(plugin, open), times.startMs)
    } catch (cause) {
      await stop()
      throw new PluginError([`the plugin "${plugin.name}" failed to start: ${messageOf(cause)}`], { cause })
    }
  }
  return stop
}

interface StartedPlugin {
  readonly plugin: Plugin
  readonly open: OpenHost
}

async function start(plugin: MadePlugin, { host }: OpenHost): Promise<void> {
  plugin[ATTACH]?.(host)
  await plugin.start?.(host)
}

/** Ends the periodic work of a plugin, then stops it. */
async function stopPlugin({ plugin, open }: StartedPlugin, log: Logger, stopMs: number): Promise<void> {
  const ending = async (what: string, end: () => Promise<void> | undefined) => {
    try {
      await withinDeadline((async () => end())(), stopMs)
    } catch (err) {
      log.error({ err, plugin: plugin.name }, what)
    }
  }
  await ending('periodic work of a plugin failed to end', () => open.stop())
  await ending('a plugin failed to stop', () => plugin.stop?.())
}
