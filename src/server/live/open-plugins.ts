import { identityPolicyProblem } from '../../access/door/identity-policies.js'
import type { Credentials, GatewayAccount } from '../../auth/caller.js'
import { AccountNames } from '../../auth/identities/canonical-id.js'
import { staticCredentials } from '../../auth/identities/credentials.js'
import type { Logger } from '../../common/log.js'
import { RunningPlugins } from '../../plugins/loading/running-plugins.js'
import { type OpenedSts, openSts } from '../../s3/sts/open-sts.js'
import type { Backends } from '../backends.js'
import { createCorePlugins } from '../core-plugins.js'
import type { Caches } from '../metrics/cache-metrics.js'
import type { ScrapeFor } from '../metrics/plugin.js'
import type { ProxyOptions } from '../proxy-options.js'
import type { LiveSettings } from './live-settings.js'

export interface PluginSources {
  readonly options: ProxyOptions
  readonly backends: Backends
  readonly settings: LiveSettings
  readonly region: string
  readonly log: Logger
  readonly scrape: ScrapeFor
  readonly caches: Caches
  /** Resolves when the requests that are in progress now have ended. */
  readonly requestsEnded: () => Promise<void>
}

export interface OpenedPlugins {
  readonly plugins: RunningPlugins
  readonly sts: OpenedSts
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  /** Of the accounts of these key pairs, as far as they are known. */
  readonly accountNames: AccountNames
  /** True for the access keys that this server accepts. */
  isOwnKey(accessKeyId: string): Promise<boolean>
}

/**
 * Creates the plugins, which are not started yet, and what finds the identities of callers. They need each other: the
 * policy of an identity names actions of plugins, and the plugin of STS issues credentials.
 * @throws PluginError for plugins that are malformed or conflict
 */
export function openPlugins(sources: PluginSources): OpenedPlugins {
  const { options, backends, settings, region, log, scrape, caches, requestsEnded } = sources
  const policyProblem = (document: unknown) => identityPolicyProblem(document, plugins.set.pluginActions)
  const sts = openSts({
    ...backends,
    credentials: (accessKeyId) => credentials(accessKeyId),
    ownAccount: ownAccountOf(options.gateway),
    policyProblem,
    now: options.now ?? Date.now,
    tokenUse: caches.tokens,
  })
  const core = createCorePlugins({
    options,
    backends,
    region,
    log,
    client: settings.webhooks,
    rows: () => plugins.set.table.rows,
    expansions: () => plugins.set.expansions,
    sts: sts.parts,
    scrape,
  })
  const plugins: RunningPlugins = new RunningPlugins({
    core,
    added: options.plugins ?? [],
    checked: options.pluginsChecked ?? false,
    deadlineMs: settings.limits.pluginDeadlineMs,
    log,
    requestsEnded,
  })
  const accountNames = new AccountNames()
  const { identities } = options
  const find = typeof identities === 'function' ? identities : staticCredentials(identities, policyProblem)
  if (typeof identities !== 'function') for (const identity of identities) accountNames.learn(identity)
  const credentials = async (accessKeyId: string) => {
    const identity = await find(accessKeyId)
    if (identity) accountNames.learn(identity)
    return identity
  }
  return {
    plugins,
    sts,
    credentials,
    accountNames,
    isOwnKey: async (id) => sts.sessions.has(id) || (await credentials(id)) !== undefined,
  }
}

/** Returns a function that finds the current keys of the server's own account. */
function ownAccountOf({ account, keys }: ProxyOptions['gateway']): () => Promise<GatewayAccount> {
  return async () => {
    const given = typeof account === 'function' ? await account() : account
    return keys?.latest(given) ?? given
  }
}
