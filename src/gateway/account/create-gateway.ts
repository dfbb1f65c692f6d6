import type { Logger } from '../../../common/log.js'
import type { Gateway } from '../../api/gateway.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { KnownStores } from '../../api/known-stores.js'
import { type Brand, brandNames } from '../brand.js'
import { InDoubtWrites } from '../calls/in-doubt.js'
import { platformKeyPair } from '../calls/platform-key-pair.js'
import { RestClient } from '../calls/rest-client.js'
import { Rpc } from '../calls/rpc.js'
import type { GatewayClient, MarkerLookup } from '../client.js'
import { GATEWAY_TIMEOUT_MS, type GatewayTls, type GatewayWatch, unwatched } from '../gateway-call.js'
import { SnapshotCache } from '../listing/snapshot-cache.js'
import { ConnectionPool } from '../transport/connection-pool.js'
import type { OwnWire } from '../transport/wire.js'
import { type AccountCalls, accountCalls } from './account-calls.js'
import { accountGateway, guardGateway, Views } from './account-gateway.js'
import { anonymousGateway } from './anonymous-gateway.js'
import { ExactPaths } from './exact-paths.js'
import { FeatureCache, knownStores } from './features.js'
import type { AccountKeys, AccountSource } from './log-in.js'
import { AccountSession, AnonymousSession, LogIn } from './session.js'
import { type LinkedAnswer, type LinkedRequest, openLink } from './share-link.js'

/** JSON-RPC calls at a time, and as many replies that are read while they arrive. */
const MAX_CALLS = 64
const DEFAULT_SNAPSHOT_BYTES = 128 * 1024 * 1024

export interface GatewayPoolOptions {
  /** Address of the gateway: http or https, with a base path if it has one. */
  readonly url: string | URL
  readonly brand: Brand
  readonly log: Logger
  /** For an https: address. */
  readonly tls?: GatewayTls | undefined
  /** Makes what carries requests to the gateway, where that is part of the same server. Default: connections. */
  readonly wire?: OwnWire | undefined
  /** Longest wait for the head of an answer, ms. Default 30 000. */
  readonly timeoutMs?: number
  /** Longest pause without a byte of a body while one is wanted, ms. Default 60 000. */
  readonly idleMs?: number
  /** Memory for levels that listings have read, kept for their next pages, bytes. Default 128 MiB. */
  readonly snapshotBytes?: number
  /**
   * Tells which prefixes are folder objects by the proxy's own records. Gateways that keep objects as files do not list
   * a folder object that has children.
   */
  readonly isMarker?: MarkerLookup
  /** Keys of accounts that have changed; default none. */
  readonly keys?: AccountKeys
  /** Milliseconds since 1970. */
  readonly now?: () => number
  /** Default: no one watches. */
  readonly watch?: GatewayWatch
}

interface GatewayUsage {
  readonly connections: readonly {
    readonly use: string
    readonly busy: number
    readonly free: number
    /** Requests that wait for a connection. */
    readonly waiting: number
  }[]
  readonly listings: { readonly hits: number; readonly misses: number }
}

/** The connections to one gateway, shared by all accounts. */
export interface GatewayPool {
  /**
   * The gateway as one account sees it. Equal key pairs share a session. A function is called at each log-in and
   * identified by reference.
   */
  for(account: AccountSource): Gateway
  /**
   * The gateway as a caller without a log-in sees it: its bucket policies decide, and a refusal is AccessDenied.
   * @param account used to query the gateway's features and to look up objects that the gateway has allowed the caller
   * to use
   */
  anonymous(account: AccountSource): Gateway
  /** Like `for`, with the buckets of staged parts, which the others hide. */
  unhidden(account: AccountSource): Gateway
  /** Calls about the account and the gateway. */
  calls(account: AccountSource): AccountCalls
  /** The state stores that the gateway remembers, queried with the account. */
  knownStores(account: AccountSource): KnownStores
  /** Asks for the key pair of a user of the task platform: see platform-key-pair.ts. */
  keyPairOf(token: string): Promise<GatewayAccount | undefined>
  /** Follows a link that the gateway has signed for any account. Throws S3Error. */
  openLink(link: LinkedRequest): Promise<LinkedAnswer>
  /** Invalidates all cached listings, because something outside this proxy may have changed anything. */
  forget(): void
  /** Connections by use, and what the cache of listings has saved. */
  usage(): GatewayUsage
  /** Closes all connections. Calls in progress fail. */
  close(): Promise<void>
}

/** Throws TypeError for an invalid address or brand. */
export function createGatewayPool(options: GatewayPoolOptions): GatewayPool {
  const { log, timeoutMs = GATEWAY_TIMEOUT_MS, idleMs = 60_000, now = Date.now, tls, watch = unwatched } = options
  const url = checkedUrl(options.url)
  const names = brandNames(options.brand)
  const rest = new RestClient({
    url,
    wire: options.wire?.(url, () => new ConnectionPool(url, tls, timeoutMs)),
    tls,
    timeoutMs,
    idleMs,
    watch,
  })
  const basePath = url.pathname.replace(/\/+$/, '')
  const rpc = new Rpc({
    wire: rest.wire,
    maxCalls: MAX_CALLS,
    basePath,
    names,
    timeoutMs,
    idleMs,
    watch,
  })
  const inDoubt = new InDoubtWrites(log)
  const shared = {
    rpc,
    rest,
    address: url,
    names,
    log,
    timeoutMs,
    features: new FeatureCache(names, now),
    inDoubt,
    snapshots: new SnapshotCache(options.snapshotBytes ?? DEFAULT_SNAPSHOT_BYTES, now),
    isMarker: options.isMarker,
    watch,
  }
  const paths = new ExactPaths(log, now)
  const views = new Views<View>((account) => {
    const logIn = new LogIn({ rpc, account, keys: options.keys, now, log })
    const client = { ...shared, session: new AccountSession(rpc, logIn, now) }
    const anonymous = { ...shared, session: new AnonymousSession(rpc), account: client }
    const calls = accountCalls(client, logIn, options.keys)
    const bare = accountGateway(client, anonymous)
    return {
      anonymous,
      gateway: guardGateway(bare, client, paths, 'hidden'),
      unhidden: guardGateway(bare, client, paths, 'shown'),
      knownStores: knownStores(client),
      calls,
    }
  })
  return {
    for: (account) => views.get(account).gateway,
    anonymous(account) {
      const { anonymous, gateway } = views.get(account)
      return guardGateway(anonymousGateway(anonymous, gateway), anonymous, paths, 'hidden')
    },
    unhidden: (account) => views.get(account).unhidden,
    calls: (account) => views.get(account).calls,
    knownStores: (account) => views.get(account).knownStores,
    keyPairOf: (token) => platformKeyPair(shared, token),
    openLink: (link) => openLink(shared, link),
    usage: () => ({
      connections: rest.usage(rpc.waiting),
      listings: shared.snapshots,
    }),
    forget: () => shared.snapshots.everythingChanged(),
    async close() {
      inDoubt.close()
      shared.snapshots.clear()
      rest.close()
    },
  }
}

interface View {
  /** The client without a log-in. */
  readonly anonymous: GatewayClient
  readonly gateway: Gateway
  readonly unhidden: Gateway
  readonly knownStores: KnownStores
  readonly calls: AccountCalls
}

function checkedUrl(url: string | URL): URL {
  const parsed = new URL(url)
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    throw new TypeError('the gateway address must begin with http: or https:')
  if (parsed.username || parsed.search || parsed.hash)
    throw new TypeError('the gateway address must have no user, query or fragment')
  return parsed
}
