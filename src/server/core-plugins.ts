import { identityPolicyProblem } from '../access/documents.js'
import type { Credentials, GatewayAccount } from '../api/identity.js'
import type { Plugin } from '../api/plugin.js'
import { AccountNames, staticCredentials } from '../auth/credentials.js'
import { jobsPlugin } from '../plugins/jobs/job-calls.js'
import { combinePlugins, type PluginSet } from '../plugins/running-plugins.js'
import { s3Plugin } from '../s3/index.js'
import { type OpenedSts, openSts, type StsDeps, stsPlugin } from '../s3/sts/plugin.js'
import { accessPlugin } from './access-calls.js'
import type { Backends } from './backends.js'
import { gatewayPlugin } from './gateway-calls.js'
import type { LiveSettings } from './live.js'
import type { Changes } from './manage/changes.js'
import type { Caches } from './metrics/gauges.js'
import { metricsPlugin, type ScrapeFor } from './metrics/metrics-plugin.js'
import type { ProxyOptions } from './proxy-options.js'
import { serverPlugin } from './server-plugin.js'
import type { Simulate } from './simulate.js'

function noGateway(): never {
  throw new Error('there is no gateway: this is a description of the operations')
}

/** Lists the operations that every server has, for documentation; `createCorePlugins` creates the ones that run. */
export const corePlugins: readonly Pick<Plugin, 'name' | 'operations'>[] = [
  s3Plugin,
  jobsPlugin,
  gatewayPlugin({ account: noGateway, calls: noGateway }),
  serverPlugin({ reload: noGateway, changes: noGateway }),
  accessPlugin({ simulate: noGateway, credentials: noGateway }),
  stsPlugin({
    sessions: { issue: noGateway },
    principals: { keep: noGateway },
    acceptedTokens: { accountOf: noGateway },
    webIdentities: undefined,
    keyPairs: noGateway,
    limits: { run: noGateway },
    ownAccount: noGateway,
    policyProblem: noGateway,
    now: noGateway,
  }),
  metricsPlugin(noGateway),
]

interface CorePluginDeps {
  readonly options: Pick<ProxyOptions, 'gateway' | 'metricsApart' | 'reload' | 'shownOptions'>
  readonly backends: Pick<Backends, 'pool'>
  readonly sts: StsDeps
  readonly scrape: ScrapeFor
  readonly changes: Changes
  readonly access: Parameters<typeof accessPlugin>[0]
}

/** Creates the plugins that every server runs. */
function createCorePlugins({ options, backends, sts, scrape, changes, access }: CorePluginDeps): readonly Plugin[] {
  return [
    s3Plugin,
    jobsPlugin,
    gatewayPlugin({ account: options.gateway.account, calls: (account) => backends.pool.calls(account) }),
    serverPlugin({
      reload: options.reload,
      changes: () => changes,
      options: options.shownOptions,
    }),
    accessPlugin(access),
    stsPlugin(sts),
    ...(options.metricsApart ? [] : [metricsPlugin(scrape)]),
  ]
}

interface PluginSources {
  readonly options: ProxyOptions
  readonly backends: Backends
  readonly settings: LiveSettings
  readonly scrape: ScrapeFor
  readonly changes: Changes
  readonly caches: Caches
  /** Called once the contexts of requests are there. */
  readonly simulate: Simulate
}

export interface OpenedPlugins {
  readonly plugins: PluginSet
  readonly sts: OpenedSts
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  /** Names of the accounts of these key pairs, as far as they are known. */
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
  const { options, backends, settings, scrape, changes, caches, simulate } = sources
  const policyProblem = (document: unknown) => identityPolicyProblem(document, plugins.actions)
  const sts = openSts({
    ...backends,
    credentials: (accessKeyId) => credentials(accessKeyId),
    ownAccount: ownAccountOf(options.gateway),
    policyProblem,
    webIdentities: options.webIdentities,
    now: options.now ?? Date.now,
    tokenUse: caches.tokens,
  })
  const core = createCorePlugins({
    options,
    backends,
    sts: sts.parts,
    scrape,
    changes,
    access: { simulate, credentials: (accessKeyId) => credentials(accessKeyId) },
  })
  const plugins: PluginSet = combinePlugins({
    core,
    added: options.plugins ?? [],
    checked: options.pluginsChecked ?? false,
    limits: settings.limits,
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
