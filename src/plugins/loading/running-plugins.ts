import type { Plugin, PluginServices } from '../../api/plugin.js'
import type { Logger } from '../../common/log.js'
import { containPlugin } from '../contain.js'
import { metadataActionsOf } from '../forms/metadata-actions.js'
import { outputMetadataOf } from '../forms/output-metadata.js'
import { PluginError } from '../forms/plugin-error.js'
import { actionNames, isRowAction } from '../forms/row-action.js'
import { storageClassesOf } from '../forms/storage-class.js'
import type { SharedHost } from '../host/open-host.js'
import type { OwnJobs } from '../jobs/open-jobs.js'
import { createTable } from '../table.js'
import { checkCalls, checkPlugins } from './check-plugins.js'
import { type Begun, endPeriodicWork, startPlugin, stopPlugin } from './plugin-lives.js'

interface RunningPluginsOptions {
  /** The server's own plugins, which stay. */
  readonly core: readonly Plugin[]
  readonly added: readonly Plugin[]
  /** See `ProxyOptions.pluginsChecked`. */
  readonly checked: boolean
  /** See `Limits.pluginDeadlineMs`. */
  readonly deadlineMs: number
  readonly log: Logger
  /** Resolves when the requests have ended that are in progress now. */
  readonly requestsEnded: () => Promise<void>
}

/** What plugins get when they start. */
interface PluginSurroundings {
  readonly shared: Omit<SharedHost, 'offered'>
  readonly jobs: Pick<OwnJobs, 'replace'>
}

/**
 * The plugins of a server. A running plugin can be replaced by one with other options: the new one starts beside it, as
 * a plugin of a second server on the same state would; then it gets all new requests, jobs and hooks; then the former
 * one ends its periodic work, and the new one begins its own; and when no request and no job needs the former one any
 * more, it stops.
 */
export class RunningPlugins {
  readonly #options: RunningPluginsOptions
  /** As they were given, by name. */
  #given: ReadonlyMap<string, Plugin>
  #set: PluginSet
  readonly #begun = new Map<string, Begun>()
  /** What plugins offer each other: one object, which all hosts have. */
  readonly #offered: PluginServices = {}
  readonly #retired = new Set<Begun>()
  #surroundings: PluginSurroundings | undefined
  #changing: Promise<void> = Promise.resolve()

  /** @throws PluginError for plugins that are malformed or conflict */
  constructor(options: RunningPluginsOptions) {
    const { added, deadlineMs } = options
    this.#options = options
    this.#set = this.#combine(added, deadlineMs)
    this.#given = byName(added)
  }

  /** Those that are not the server's own, as they were given. */
  get added(): readonly Plugin[] {
    return [...this.#given.values()]
  }

  /** What they are together, now. */
  get set(): PluginSet {
    return this.#set
  }

  /** Starts one after the other. If one fails, stops those before it, and throws PluginError. */
  async start(surroundings: PluginSurroundings): Promise<void> {
    this.#surroundings = surroundings
    this.#offer()
    try {
      for (const plugin of this.#set.plugins) this.#begun.set(plugin.name, await this.#begin(plugin))
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Stops them in reverse order, and those that have been replaced. Never rejects. */
  async stop(): Promise<void> {
    await this.#changing
    const all = [...this.#begun.values(), ...this.#retired].reverse()
    this.#begun.clear()
    this.#retired.clear()
    for (const begun of all) await stopPlugin(begun, this.#options.log)
  }

  /**
   * Starts those of these plugins that are not the objects that run, so that they can take over.
   * @param added plugins of the same names
   * @param deadlineMs see `RunningPluginsOptions`
   * @throws PluginError for plugins that are malformed, conflict, have other names or fail to start
   */
  async prepare(added: readonly Plugin[], deadlineMs: number): Promise<Prepared> {
    const { log } = this.#options
    const set = this.#combine(added, deadlineMs)
    const given = byName(added)
    if (given.size !== this.#given.size || [...given.keys()].some((name) => !this.#given.has(name)))
      throw new PluginError(['a running server can change the options of its plugins, not which plugins it has'])
    const begun: Begun[] = []
    const discard = async () => {
      for (const one of begun.reverse()) await stopPlugin(one, log)
    }
    try {
      for (const plugin of set.plugins) {
        if (given.get(plugin.name) !== this.#given.get(plugin.name)) begun.push(await this.#begin(plugin, true))
      }
    } catch (error) {
      await discard()
      throw error
    }
    return { apply: async () => this.#apply(set, given, begun), discard }
  }

  #combine(added: readonly Plugin[], deadlineMs: number): PluginSet {
    const { core, checked } = this.#options
    const set = combinePlugins(core, added, deadlineMs)
    if (!checked) checkCalls(added)
    return set
  }

  #apply(set: PluginSet, given: ReadonlyMap<string, Plugin>, begun: readonly Begun[]): void {
    this.#set = set
    if (begun.length === 0) return
    const former = begun.flatMap(({ plugin }) => this.#begun.get(plugin.name) ?? [])
    for (const one of begun) this.#begun.set(one.plugin.name, one)
    for (const one of former) this.#retired.add(one)
    this.#given = given
    this.#offer()
    const jobsEnded = this.#surroundings?.jobs.replace(kindsOf(set))
    const requestsEnded = this.#options.requestsEnded()
    this.#changing = this.#changing.then(() => this.#passOn(former, begun))
    void Promise.all([jobsEnded, requestsEnded, this.#changing]).then(() => this.#retire(former))
  }

  /** Two plugins of one server would not exclude each other by leases. */
  async #passOn(former: readonly Begun[], begun: readonly Begun[]): Promise<void> {
    await Promise.all(former.map((one) => endPeriodicWork(one, this.#options.log)))
    for (const { open } of begun) open.release()
  }

  async #retire(former: readonly Begun[]): Promise<void> {
    for (const one of former) if (this.#retired.delete(one)) await stopPlugin(one, this.#options.log)
  }

  #begin(plugin: Plugin, held = false): Promise<Begun> {
    if (!this.#surroundings) throw new Error('the plugins have not been started')
    return startPlugin(plugin, { ...this.#surroundings.shared, offered: this.#offered }, this.#options.log, { held })
  }

  #offer(): void {
    const offered = this.#offered as Record<string, unknown>
    for (const name of Object.keys(offered)) delete offered[name]
    Object.assign(offered, ...this.#set.plugins.map(({ offers }) => offers))
  }
}

function byName(plugins: readonly Plugin[]): ReadonlyMap<string, Plugin> {
  return new Map(plugins.map((plugin) => [plugin.name, plugin]))
}

/** The kinds of jobs that these plugins run. */
export function kindsOf({ plugins }: Pick<PluginSet, 'plugins'>) {
  return plugins.flatMap((plugin) => plugin.jobs ?? [])
}

type PluginSet = ReturnType<typeof combinePlugins>

/**
 * Combines the server's own plugins with the added ones, which run contained.
 * @param deadlineMs time that an added plugin has to answer, see `Limits.pluginDeadlineMs`
 * @throws PluginError for plugins that are malformed or conflict
 */
function combinePlugins(core: readonly Plugin[], added: readonly Plugin[], deadlineMs: number) {
  checkPlugins(added, core)
  const plugins = [...core, ...added.map((plugin) => containPlugin(plugin, { deadlineMs }))]
  return {
    plugins,
    table: createTable(plugins),
    storageClasses: storageClassesOf(plugins),
    outputMetadata: outputMetadataOf(plugins),
    metadataActions: metadataActionsOf(plugins),
    pluginActions: pluginActionsOf(plugins),
    expansions: plugins.flatMap((plugin) => plugin.expansions ?? []),
  }
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

/** A change that is ready. One of the two is called, once. */
export interface Prepared {
  /** Uses it from now on. Requests in progress continue with what they began with. Never rejects. */
  apply(): Promise<void>
  /** Gives it up. Never rejects. */
  discard(): Promise<void>
}
