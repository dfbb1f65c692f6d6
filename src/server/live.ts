import { identityPolicyProblem } from '../access/documents.js'
import type { Registered } from '../api/context.js'
import type { Hooks } from '../api/hooks.js'
import type { Credentials, GatewayAccount } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { Plugin } from '../api/plugin.js'
import { AccountNames, staticCredentials } from '../auth/identities/credentials.js'
import type { Logger } from '../common/log.js'
import { addressing } from '../http/addressing.js'
import { RunningPlugins } from '../plugins/loading/running-plugins.js'
import type { OperationTable } from '../plugins/table.js'
import { WebhookClient } from '../s3/notifications/webhook-client.js'
import { joinWebhooks } from '../s3/notifications/webhooks.js'
import { type OpenedSts, openSts } from '../s3/sts/plugin.js'
import type { Backends } from './backends.js'
import { createCorePlugins } from './core-plugins.js'
import { defaultLimits } from './limits.js'
import type { Caches } from './metrics/gauges.js'
import type { ScrapeFor } from './metrics/metrics-server.js'
import type { LiveOptions, ProxyOptions, Proxy as S3Proxy } from './proxy-options.js'
import type { Traffic } from './traffic/traffic.js'

/** Checked settings that are not in use yet. */
interface NextSettings {
  readonly limits: Limits
  use(): void
}

/** The settings of a proxy that can change while it serves requests. */
export class LiveSettings {
  readonly webhooks: WebhookClient
  accessLog: boolean
  readonly #options: ProxyOptions
  readonly #limits: Replaceable<Limits>
  readonly #addressing: Replaceable<ReturnType<typeof addressing>>

  /** @throws TypeError for an invalid domain or address */
  constructor(options: ProxyOptions) {
    this.#options = options
    this.#limits = replaceable({ ...defaultLimits, ...options.limits })
    this.#addressing = replaceable(addressing(options))
    this.webhooks = new WebhookClient(joinWebhooks(options.webhooks ?? []))
    this.accessLog = options.accessLog ?? true
  }

  /** The present ones, also after a change. */
  get limits(): Limits {
    return this.#limits.values
  }

  /** The present one, also after a change. */
  get addressing(): ReturnType<typeof addressing> {
    return this.#addressing.values
  }

  /** @throws TypeError for an invalid domain or address */
  prepare(next: LiveOptions): NextSettings {
    const webhooks = joinWebhooks(next.webhooks ?? [])
    const limits = { ...defaultLimits, ...(next.limits ?? this.#options.limits) }
    const hosts = addressing({ ...this.#options, ...next })
    return {
      limits,
      use: () => {
        this.#limits.replace(limits)
        this.#addressing.replace(hosts)
        this.webhooks.replace(webhooks)
        this.accessLog = next.accessLog ?? true
      },
    }
  }
}

/** Values that a reload can replace while others hold `values`. */
interface Replaceable<T extends object> {
  /** Shows the present values. It cannot be written to. */
  readonly values: T
  /** @param next with the same members */
  replace(next: T): void
}

function replaceable<T extends object>(first: T): Replaceable<T> {
  let present = first
  const getters = Object.keys(first).map((name) => [
    name,
    { enumerable: true, get: () => present[name as keyof T] } satisfies PropertyDescriptor,
  ])
  return {
    values: Object.freeze(Object.defineProperties({}, Object.fromEntries(getters))) as T,
    replace(next) {
      present = next
    },
  }
}

/** The operations of the plugins that run: others may run after a reload. */
export function tableOf(plugins: Pick<RunningPlugins, 'set'>): OperationTable {
  return {
    get rows() {
      return plugins.set.table.rows
    },
    select: (head) => plugins.set.table.select(head),
  }
}

/** The registrations of the plugins that run. */
export function registeredBy(plugins: Pick<RunningPlugins, 'set'>, hooks: Hooks): Registered {
  return {
    hooks,
    get storageClasses() {
      return plugins.set.storageClasses
    },
    outputMetadata: (name) => plugins.set.outputMetadata(name),
    get expansions() {
      return plugins.set.expansions
    },
    get actions() {
      return plugins.set.pluginActions
    },
  }
}

interface Reloadable {
  readonly live: LiveSettings
  readonly plugins: RunningPlugins
  readonly traffic: Pick<Traffic, 'bounds'>
  /** The names of operations that have metrics of their own. Those of plugins that have gone stay. */
  readonly operations: Set<string>
  readonly useGauges: (plugins: readonly Plugin[]) => void
}

/** Checks and prepares the options of a reload. All that can fail is done before any of it is in use. */
export function reloading({ live, plugins, traffic, operations, useGauges }: Reloadable): S3Proxy['prepare'] {
  return async (next: LiveOptions) => {
    const settings = live.prepare(next)
    const nextPlugins = await plugins.prepare(next.plugins ?? plugins.added, settings.limits.pluginDeadlineMs)
    return {
      async apply() {
        settings.use()
        traffic.bounds = next.traffic ?? {}
        await nextPlugins.apply()
        for (const { operation } of plugins.set.table.rows) operations.add(operation.name)
        useGauges(plugins.set.plugins)
      },
      discard: () => nextPlugins.discard(),
    }
  }
}

interface Turn {
  running: number
  /** Set once no more requests join it. */
  onEnd: (() => void) | undefined
  readonly leave: () => void
}

/** Counts requests, so that one can wait for those that are in progress at a moment. */
export class RequestTurns {
  #present = newTurn()
  #earlier: Promise<unknown> = Promise.resolve()

  /** @returns to be called once, when the request has ended */
  enter(): () => void {
    this.#present.running++
    return this.#present.leave
  }

  /** Resolves when the requests have ended that are in progress now. */
  async ended(): Promise<void> {
    const turn = this.#present
    this.#present = newTurn()
    const own = new Promise<void>((resolve) => {
      if (turn.running === 0) resolve()
      else turn.onEnd = resolve
    })
    this.#earlier = Promise.all([this.#earlier, own])
    await this.#earlier
  }
}

function newTurn(): Turn {
  const turn: Turn = {
    running: 0,
    onEnd: undefined,
    leave() {
      turn.running--
      if (turn.running === 0) turn.onEnd?.()
    },
  }
  return turn
}

interface PluginSources {
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
