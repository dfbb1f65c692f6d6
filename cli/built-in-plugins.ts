import { joinWebhooks, parseWebhook, parseWebhookSecret } from '../plugins/notifications/webhooks.js'
import type { Upkeep } from '../plugins/upkeep/index.js'
import type { Config } from './config/config.js'
import * as defaults from './default-plugins.js'
import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from './process/load-plugins.js'
import type { Managed } from './serve/managed.js'
import * as standard from './standard-plugins.js'

/** What loads the module of a plugin. */
type Load = () => Promise<{ readonly default: Loadable }>

/** Starts before all others, wherever a list names it: it queues the events of what they do. */
const FIRST = 'notifications'

/** All plugins that ship with dealgate, by name. */
const builtIn: Readonly<Record<string, Load>> = { ...standard, ...defaults }

/** Loads the plugins of these names that ship with dealgate; by default all of them. */
export async function builtInPlugins(names: readonly string[] = Object.keys(builtIn)): Promise<Loadable[]> {
  const loads = names.flatMap((name) => (Object.hasOwn(builtIn, name) ? (builtIn[name] ?? []) : []))
  return Promise.all(loads.map(async (load) => (await load()).default))
}

type PluginConfig = Pick<
  Config,
  | 'plugins'
  | 'webhook'
  | 'webhookSecret'
  | 'notificationMaxAgeMs'
  | 'batchRate'
  | 'inventoryIntervalMs'
  | 'inventoryFileRows'
  | 'inventoryRate'
>

/** What plugins get of a server that runs: what they change and read, and as whom its owner acts. */
type Served = Pick<Managed, 'keys' | 'accounts' | 'owner'> & { readonly upkeep: Upkeep }

/**
 * Loads the configured plugins, or the built-in ones, and no code of others. The standard ones run beside a list that
 * does not name them, but not beside an empty one. Throws PluginError.
 * @param served absent where the plugins are only described
 */
export async function obtainPlugins(config: PluginConfig, served?: Served): Promise<LoadedPlugin[]> {
  const { plugins } = config
  const listed = plugins ?? Object.keys(defaults).map(useOf)
  const runs = (name: string) => listed.some(({ use }) => use === name)
  const others = Object.keys(standard).filter((name) => !runs(name))
  const added = plugins?.length === 0 ? [] : others.map(useOf)
  const own: Readonly<Record<string, object>> = {
    ...pluginOptionsOf(config),
    ...(served && {
      keys: { ...listedOptions(config, 'keys'), store: served.keys },
      accounts: { ...listedOptions(config, 'accounts'), store: served.accounts },
      upkeep: { ...listedOptions(config, 'upkeep'), reads: served.upkeep },
      task: { ...listedOptions(config, 'task'), owner: served.owner.user },
      pay: { ...listedOptions(config, 'pay'), owner: served.owner.wallet },
    }),
  }
  const uses = [...added, ...listed]
    .map((one) => (own[one.use] ? { ...one, options: own[one.use] } : one))
    .sort((a, b) => Number(b.use === FIRST) - Number(a.use === FIRST))
  return loadPlugins(uses, await builtInPlugins(uses.map(({ use }) => use)))
}

function useOf(use: string): PluginUse {
  return { use, from: '.' }
}

/**
 * What the configuration of the server says to standard plugins, by their names. Their entries in the list of plugins
 * precede it.
 */
export function pluginOptionsOf(config: PluginConfig): Readonly<Record<string, object>> {
  return Object.fromEntries(
    Object.entries(optionsOf(config)).map(([name, options]) => [name, { ...options, ...listedOptions(config, name) }]),
  )
}

/** The options that the list of plugins gives to one. */
function listedOptions({ plugins }: PluginConfig, name: string): object {
  return Object(plugins?.find(({ use }) => use === name)?.options)
}

function optionsOf({
  webhook,
  webhookSecret,
  notificationMaxAgeMs,
  batchRate,
  inventoryIntervalMs,
  inventoryFileRows,
  inventoryRate,
}: PluginConfig): Readonly<Record<string, object>> {
  return {
    notifications: {
      webhooks: [...joinWebhooks(webhook.map(parseWebhook), webhookSecret.map(parseWebhookSecret)).values()],
      giveUpAfterMs: notificationMaxAgeMs,
    },
    batch: { rate: batchRate },
    inventory: { intervalMs: inventoryIntervalMs, fileRows: inventoryFileRows, rate: inventoryRate },
  }
}
