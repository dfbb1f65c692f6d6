import { createHash } from 'node:crypto'
import { Pool } from 'undici'
import type { Logger } from '../log.js'
import { accountGateway } from './account-gateway.js'
import { anonymousGateway } from './anonymous-gateway.js'
import { type Brand, brandNames } from './brand.js'
import { FeatureCache } from './features.js'
import type { Gateway } from './gateway.js'
import type { MarkerLookup } from './level-listing.js'
import { RestClient } from './rest-client.js'
import { Rpc } from './rpc.js'
import { AccountSession, type AccountSource, AnonymousSession } from './session.js'
import { type LinkedAnswer, type LinkedRequest, openLink } from './share-link.js'
import { SnapshotCache } from './snapshot-cache.js'
import type { Tools } from './tools.js'

/** Connections for JSON-RPC calls. */
const RPC_CONNECTIONS = 64
const DEFAULT_SNAPSHOT_BYTES = 128 * 1024 * 1024

export interface GatewayPoolOptions {
  /** The gateway's address: http or https, with a base path if it has one. */
  readonly url: string | URL
  readonly brand: Brand
  readonly log: Logger
  /** Until a call or download has the head of its answer, ms. Default 30 000. */
  readonly timeoutMs?: number
  /** Without a byte of a body while one is wanted, ms. Default 60 000. */
  readonly idleMs?: number
  /** Memory for what listings have read, kept for their next pages, bytes. Default 128 MiB. */
  readonly snapshotBytes?: number
  /** Which of these prefixes are folder objects by the proxy's own records; gateways of files do not list a folder object that has children. */
  readonly isMarker?: MarkerLookup
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/** The connections to one gateway, and the accounts they are used for. */
export interface GatewayPool {
  /** The gateway as one account sees it. The same account gets the same sessions; a function is asked at each log-in, and known by its identity. */
  for(account: AccountSource): Gateway
  /**
   * The gateway as somebody without log-in sees it: its bucket policies decide, and what they refuse is AccessDenied.
   * @param account asked what the gateway can do, and what has to be known beside of objects that it has let be used
   */
  anonymous(account: AccountSource): Gateway
  /** Follows a link that the gateway has signed, whosever account it was made by. Throws S3Error. */
  openLink(link: LinkedRequest): Promise<LinkedAnswer>
  /** Somebody else may have changed anything: what listings have read is not shown any more. */
  forget(): void
  /** Ends all connections; calls under way fail. */
  close(): Promise<void>
}

/** Throws TypeError for an address or brand that cannot be. */
export function createGatewayPool(options: GatewayPoolOptions): GatewayPool {
  const { log, timeoutMs = 30_000, idleMs = 60_000, now = Date.now } = options
  const url = checkedUrl(options.url)
  const names = brandNames(options.brand)
  const pool = new Pool(url.origin, { connections: RPC_CONNECTIONS, connect: { timeout: timeoutMs } })
  const rest = new RestClient({ url, timeoutMs, idleMs })
  const rpc = new Rpc({ pool, basePath: url.pathname.replace(/\/+$/, ''), names, log, timeoutMs, idleMs })
  const shared = {
    rpc,
    rest,
    address: url,
    names,
    log,
    timeoutMs,
    features: new FeatureCache(names, now),
    snapshots: new SnapshotCache(options.snapshotBytes ?? DEFAULT_SNAPSHOT_BYTES, now),
    isMarker: options.isMarker,
  }
  const views = new Views((account) => {
    const tools = { ...shared, session: new AccountSession(rpc, account, now) }
    return { tools, gateway: accountGateway(tools) }
  })
  return {
    for: (account) => views.get(account).gateway,
    anonymous(account) {
      const { tools, gateway } = views.get(account)
      return anonymousGateway({ ...shared, session: new AnonymousSession(rpc), own: tools }, gateway)
    },
    openLink: (link) => openLink(shared, link),
    forget: () => shared.snapshots.everythingChanged(),
    async close() {
      shared.snapshots.clear()
      rest.close()
      await pool.destroy()
    },
  }
}

interface View {
  readonly tools: Tools
  readonly gateway: Gateway
}

/** One for each account. */
class Views {
  readonly #create: (account: AccountSource) => View
  readonly #bySource = new WeakMap<() => unknown, View>()
  readonly #byKeys = new Map<string, View>()

  constructor(create: (account: AccountSource) => View) {
    this.#create = create
  }

  get(account: AccountSource): View {
    if (typeof account === 'function') {
      const known = this.#bySource.get(account) ?? this.#create(account)
      this.#bySource.set(account, known)
      return known
    }
    const id = createHash('sha256')
      .update(JSON.stringify([account.accessKey, account.secretKey]))
      .digest('base64')
    const known = this.#byKeys.get(id) ?? this.#create(account)
    this.#byKeys.set(id, known)
    return known
  }
}

function checkedUrl(url: string | URL): URL {
  const parsed = new URL(url)
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    throw new TypeError('the gateway address must be http: or https:')
  if (parsed.username || parsed.search || parsed.hash)
    throw new TypeError('the gateway address takes no user, query or fragment')
  return parsed
}
