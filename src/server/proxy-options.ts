import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics.js'
import type { Ownership } from '../api/access.js'
import type { Credentials, GatewayAccount, Identity, WebIdentities } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { Plugin } from '../api/plugin.js'
import type { State } from '../api/state.js'
import type { SessionToken } from '../auth/signer.js'
import type { GatewayPoolOptions } from '../gateway/account/create-gateway.js'
import type { AccountKeys } from '../gateway/account/log-in.js'
import type { Brand } from '../gateway/brand.js'
import type { OperationTable } from '../plugins/table.js'
import type { WorkerOfServer } from '../state/backend.js'
import type { AuditLog } from './audit.js'
import type { ConsoleAddress } from './console-address.js'
import type { ShownOption } from './manage/list-options.js'
import type { ScrapeFor } from './metrics/metrics-plugin.js'
import type { CreatePassthrough } from './passthrough.js'
import type { Reload } from './server-plugin.js'
import type { TrafficBounds } from './traffic/gate.js'

export interface ProxyOptions {
  gateway: Pick<GatewayPoolOptions, 'tls' | 'timeoutMs' | 'wire'> & {
    /** Address of the object gateway, such as http://127.0.0.1:9100. */
    url: string
    /** Address of the gateway in share links; default `url`. */
    publicUrl?: string
    /** Brand words of its paths and headers; default `gateway` and `cloud`. */
    brand?: Partial<Brand>
    /** The account that this proxy acts as, or a function that returns it and is called at every log-in. */
    account: GatewayAccount | (() => Promise<GatewayAccount>)
    /**
     * Keeps keys of accounts that RotateCredentials changes. Without it, that call is NotImplemented.
     */
    keys?: AccountKeys
  }
  /** The accepted S3 key pairs: a list, or a look-up function. */
  identities: readonly Identity[] | Credentials
  /** The OpenID Connect issuer whose tokens AssumeRoleWithWebIdentity accepts; default none. */
  webIdentities?: WebIdentities | undefined
  /** Folder for records, staged parts and spooled bodies, used by one process at a time. Required without `state`. */
  data?: string
  /** In a process that shares `data` with other processes of one server. */
  worker?: WorkerOfServer
  /** An open state. The proxy does not close it. */
  state?: State
  /** Keyv URL of a database for the records: redis://... or postgres://...; default SQLite in `data`. */
  stateUrl?: string | undefined
  /** Timeout of calls to that database, ms; default 3000. Then requests that need it fail until it answers. */
  stateTimeoutMs?: number
  /**
   * Where parts of multipart uploads wait: in `data` (default), in a hidden bucket of the gateway, or in a folder on a
   * file system that all proxies share. With `stateUrl` and the default, all requests of one upload must reach one
   * proxy.
   */
  staging?: 'local' | 'gateway' | { readonly folder: string }
  /** With `stateUrl`: lease time of locks, ms; default 30,000. All proxies must use the same value. */
  lockLeaseMs?: number
  /** Default us-east-1. */
  region?: string
  /** Object ownership of new buckets; default BucketOwnerEnforced, which disables ACLs. */
  objectOwnership?: Ownership
  /** Classes that only name a price, such as STANDARD_IA: keep as labels of objects (default), or refuse. */
  storageClassLabels?: 'keep' | 'refuse'
  limits?: Partial<Limits>
  /**
   * Requests and bytes per second, and requests in progress: in total, per address and per access key. Default none.
   */
  traffic?: TrafficBounds
  /** What `POST /-/reload` does; default NotImplemented. */
  reload?: Reload
  /** The options in force, without secrets, for `/-/options/v1`; default NotImplemented. */
  shownOptions?: () => readonly ShownOption[]
  log?: Logger
  /** Logs one line per request; default true. */
  accessLog?: boolean
  /** Format of the access log, whose lines `accessLine` then takes; default `json`. */
  accessFormat?: 'json' | 's3'
  /** Takes the lines of the access log; default `log`. */
  accessLine?: (line: string) => void
  /** Takes the changes of access, settings and spending; default none. */
  audit?: AuditLog
  /** Gets the metrics of this proxy, of this one alone; default new ones. */
  metrics?: Metrics
  /** Answers `/-/metrics`, which callers with all rights may read; default the metrics of this proxy. */
  scrape?: ScrapeFor
  /** Buckets that have metrics of their own; default none. */
  metricsBuckets?: readonly string[]
  /** The metrics are served elsewhere: `/-/metrics` is not an operation of this endpoint. Default false. */
  metricsApart?: boolean
  /** Path prefixes, percent-encoded, that clients sign and a reverse proxy removes. */
  signedBasePaths?: readonly string[]
  /**
   * Hosts for virtual-hosted addressing: with `s3.example.com`, `photos.s3.example.com` is the bucket `photos`. Default
   * none.
   */
  domains?: readonly string[]
  /**
   * Use X-Forwarded-Host and X-Forwarded-Proto as the client's host and protocol; default false. Safe only if every
   * request passes a reverse proxy that sets both headers.
   */
  trustForwardedHost?: boolean
  /**
   * Addresses of reverse proxies, and blocks such as 10.0.0.0/8, whose X-Forwarded-For and X-Forwarded-Proto name the
   * client's address and protocol, for conditions of policies and the access log; default none. With it,
   * `trustForwardedHost` believes these proxies alone.
   */
  trustedProxies?: readonly string[]
  /**
   * Handling of X-Amz-Security-Token beside a permanent key pair: refuse the request (default), or ignore the token.
   * Temporary credentials of this server always need theirs.
   */
  sessionToken?: SessionToken
  /**
   * Accepts signature version 2, which boto3 uses for presigned URLs and forms; default true. It covers neither the
   * body nor the parameters of listings.
   */
  signatureV2?: boolean
  /**
   * Scheme and host of share links (`POST /{bucket}/{key}?x-share=`). Default the gateway's own, which users of the
   * links must be able to reach. If it is this server's address, the server forwards requests of share links to the
   * gateway, which verifies them.
   */
  shareUrl?: string | undefined
  /** Age at which an incomplete multipart upload is removed, ms; default 7 days, 0 for never. */
  uploadExpiryMs?: number
  /** Time after which an ended job and its client token are removed, ms; default 7 days, 0 for never. */
  jobExpiryMs?: number
  /** Interval at which lifecycle rules are checked, ms; default one hour, 0 for never. */
  lifecycleIntervalMs?: number
  /** Time after which the lines of the access log of a bucket are written into its target, ms; default 5 minutes. */
  bucketLogIntervalMs?: number
  /** Most bytes of such lines that wait in `data`; the oldest are dropped then. Default 256 MiB. */
  bucketLogBytes?: number
  /**
   * Names below which buckets are hosts of websites, such as `web.example` for `photos.web.example`; also a bucket that
   * is named as a host is one. Default: buckets are not websites. `Proxy.websites` serves them.
   */
  websiteDomains?: readonly string[] | undefined
  /** Plugins, created by the functions that definePlugin returns: `[hello({ word: 'Hi' })]`. */
  plugins?: readonly Plugin[]
  /** The schemas of their calls have been checked before, which takes time at each start. Default false. */
  pluginsChecked?: boolean
  /** Address of the task platform, for plugins; default none. */
  platformUrl?: string | undefined
  /** Address of the storage payment API, for plugins; default none. */
  paymentUrl?: string | undefined
  /**
   * Key that seals secrets in records of plugins, 32 bytes. Default: one that the first use makes in `data`, except
   * with `stateUrl`, where all servers need the same.
   */
  sealingKey?: Uint8Array | undefined
  /** What is encrypted: objects whose request or bucket asks for it (default), or all new objects. */
  encryption?: 'asked' | 'all'
  /**
   * File of keys, which must exist: identities and recipients of age. Default: one that the first use makes in `data`,
   * except with `stateUrl`, where all servers need the same.
   */
  encryptionKeys?: string | undefined
  /** Recipients, `age1...`, who can open all that this server encrypts. */
  encryptionRecipient?: readonly string[]
  /** Program that prints the keys of age for a name, its argument, which the file does not have. */
  encryptionCommand?: string | undefined
  /** Accept keys of clients (SSE-C) without TLS from other machines, too. Default false. */
  customerKeysOverHttp?: boolean
  /** Clock of lifecycle rules and plugins, ms since 1970; default the system clock. */
  now?: () => number
  /** The console whose pages may read the answers of this endpoint; default none. */
  console?: ConsoleAddress | undefined
  /** Serves the gateway's own paths (`/gateway/...`), too: JSON-RPC, never object data. Default: none does. */
  passthrough?: CreatePassthrough | undefined
}

/** Options that a proxy can change while it serves requests. */
export interface LiveOptions
  extends Pick<ProxyOptions, 'traffic' | 'limits' | 'accessLog' | 'domains' | 'trustForwardedHost' | 'trustedProxies'> {
  /** Other options of plugins that take them without a restart, by the name of the plugin; others keep theirs. */
  pluginOptions?: Readonly<Record<string, unknown>>
}

/** An S3 endpoint as a handler: mount it in Express at any path, or pass it to http.createServer. */
export interface Proxy {
  (incoming: IncomingMessage, outgoing: ServerResponse, next?: unknown): void
  readonly operations: OperationTable['rows']
  /** Serves buckets as websites. Their pages may run scripts: never at a host and port that serve anything else. */
  readonly websites: (incoming: IncomingMessage, outgoing: ServerResponse) => void
  /** Rejects with an S3Error if the gateway is unreachable or refuses the log-in. */
  ready(): Promise<void>
  /** Makes `/-/ready` fail and ends waits for jobs. Requests are still served. */
  shutDown(): void
  /**
   * Checks other options.
   * @returns uses them from now on
   * @throws TypeError for an invalid domain or address, PluginError for options that a plugin cannot use
   */
  prepare(options: LiveOptions): () => void
  /** Stops background work and closes the state, unless `state` was given. Requests must have ended. */
  close(): Promise<void>
}
