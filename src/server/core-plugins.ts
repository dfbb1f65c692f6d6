import type { Expansion } from '../api/context.js'
import type { Plugin } from '../api/plugin.js'
import type { Logger } from '../common/log.js'
import { gatewayPlugin } from '../plugins/gateway-calls.js'
import { jobsPlugin } from '../plugins/job-calls.js'
import { serverPlugin } from '../plugins/server-calls.js'
import type { OperationTable } from '../plugins/table.js'
import { s3Plugin } from '../s3/index.js'
import { notificationOperations, notifications } from '../s3/notifications/plugin.js'
import type { WebhookClient } from '../s3/notifications/webhook-client.js'
import { type StsParts, stsPlugin } from '../s3/sts/plugin.js'
import { selfPlugin } from '../s3/virtual-bucket.js'
import type { Backends } from './backends.js'
import { metricsPlugin, type ScrapeFor } from './metrics/metrics-server.js'
import type { ProxyOptions } from './proxy-options.js'

function noGateway(): never {
  throw new Error('there is no gateway: this is a description of the operations')
}

/** Lists the operations that every server has, for documentation; `createCorePlugins` creates the ones that run. */
export const corePlugins: readonly Pick<Plugin, 'name' | 'operations'>[] = [
  s3Plugin,
  jobsPlugin,
  gatewayPlugin({ account: noGateway, calls: noGateway }),
  serverPlugin(noGateway),
  selfPlugin(() => []),
  stsPlugin({
    sessions: { issue: noGateway },
    principals: { keep: noGateway },
    standing: { accountOf: noGateway },
    limits: { run: noGateway },
    ownAccount: noGateway,
    policyProblem: noGateway,
    now: noGateway,
  }),
  metricsPlugin(noGateway),
  {
    name: 'notifications',
    operations: notificationOperations({ knows: () => false, send: async () => undefined }),
  },
]

export interface CorePluginParts {
  readonly options: Pick<
    ProxyOptions,
    'gateway' | 'metricsApart' | 'reload' | 'notificationMaxAgeMs' | 'notificationRetryMs'
  >
  readonly backends: Pick<Backends, 'state' | 'settings' | 'pool'>
  readonly region: string
  readonly log: Logger
  readonly client: WebhookClient
  readonly sts: StsParts
  readonly scrape: ScrapeFor
  /** The operations of all plugins; called when a client reads a description of the server. */
  readonly rows: () => OperationTable['rows']
  /** The meanings of values of `expand`, likewise. */
  readonly expansions: () => readonly Expansion[]
}

/** Creates the plugins that every server runs. */
export function createCorePlugins({
  options,
  backends,
  rows,
  expansions,
  sts,
  scrape,
  ...parts
}: CorePluginParts): readonly Plugin[] {
  return [
    s3Plugin,
    jobsPlugin,
    gatewayPlugin({ account: options.gateway.account, calls: (account) => backends.pool.calls(account) }),
    serverPlugin(options.reload),
    selfPlugin(rows, expansions),
    stsPlugin(sts),
    ...(options.metricsApart ? [] : [metricsPlugin(scrape)]),
    notifications({
      ...parts,
      state: backends.state,
      settings: backends.settings,
      giveUpAfterMs: options.notificationMaxAgeMs,
      firstRetryMs: options.notificationRetryMs,
    }),
  ]
}
