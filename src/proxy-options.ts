import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SessionToken } from './auth/authenticate.js'
import type { Credentials, GatewayAccount, Identity } from './auth/caller.js'
import type { Brand } from './gateway/brand.js'
import type { Limits } from './limits.js'
import type { Logger } from './log.js'
import type { Webhook } from './notifications/webhooks.js'
import type { Plugin } from './registry/plugin.js'
import type { OperationTable } from './registry/table.js'
import type { State } from './state/state.js'

export interface ProxyOptions {
  gateway: {
    /** Address of the object gateway, such as http://127.0.0.1:9100. */
    url: string
    /** Brand words of its paths and headers; the neutral ones by default. */
    brand?: Partial<Brand>
    /** The account this proxy acts as, or where to ask for it at every log-in. */
    account: GatewayAccount | (() => Promise<GatewayAccount>)
    /** How long an answer may take to begin, ms; default 30,000. */
    timeoutMs?: number
  }
  /** The S3 key pairs that are let in: a list, or a look-up. */
  identities: readonly Identity[] | Credentials
  /** Folder for records, staged parts and spooled bodies. One process at a time. Needed unless `state` is given. */
  data?: string
  /** A state that was opened already; it is not closed with the proxy. */
  state?: State
  /** Keyv URL for the records when not in SQLite in `data`: redis://... or postgres://... */
  stateUrl?: string
  /** Default us-east-1. */
  region?: string
  limits?: Partial<Limits>
  log?: Logger
  /** One line a request; default true. */
  accessLog?: boolean
  /** Prefixes of the path that clients sign and a proxy in front of this one takes away. */
  signedBasePaths?: readonly string[]
  /** Hosts below which buckets have names of their own: with `s3.example.com`, `photos.s3.example.com` is the bucket `photos`. Default none. */
  domains?: readonly string[]
  /**
   * Take X-Forwarded-Host and X-Forwarded-Proto for what the client asked for. Default false: only for a server that nobody reaches but through a reverse proxy
   * which sets both itself.
   */
  trustForwardedHost?: boolean
  /** Requests with X-Amz-Security-Token: refuse them (default), or ignore the token. */
  sessionToken?: SessionToken
  /**
   * Scheme and host that share links are made for (`POST /{bucket}/{key}?x-share=`). Default: the gateway's own, which then has to be reachable by whoever follows
   * them. If it is this server's, requests that come by such a link are passed on to the gateway, which checks them.
   */
  shareUrl?: string
  /** Age at which an unfinished multipart upload is removed, ms; default 7 days, 0 for never. */
  uploadExpiryMs?: number
  /** Age at which a job that has ended is forgotten, ms since its end; default 7 days, 0 for never. Its client token counts as long. */
  jobExpiryMs?: number
  /** How often to look whether lifecycle rules have something to do, ms; default one hour, 0 for never. */
  lifecycleIntervalMs?: number
  /** Where buckets can send their notifications. */
  webhooks?: readonly Webhook[]
  /** Age at which a notification that no webhook takes is given up, ms; default 24 hours. */
  notificationMaxAgeMs?: number
  /** Pause before a notification is sent again, ms, doubled each time; default one second. */
  notificationRetryMs?: number
  /** Made by what definePlugin returns: `[hello({ word: 'Hi' })]`. */
  plugins?: readonly Plugin[]
  /** The time by which lifecycle rules are carried out, ms since 1970; default the system's. */
  now?: () => number
  /** Serve the gateway's own paths (`/gateway/...`) too, for clients of its JSON-RPC and its web pages; never object data. Default false. */
  passthrough?: boolean
}

/** An S3 endpoint as a handler: mount it in Express at any path, or give it to http.createServer. */
export interface Proxy {
  (incoming: IncomingMessage, outgoing: ServerResponse, next?: unknown): void
  readonly operations: OperationTable['rows']
  /** Throws S3Error when the gateway cannot be reached or refuses the log-in. */
  ready(): Promise<void>
  /** From now on `/-/ready` says no; requests are still served. */
  shutDown(): void
  /** Ends what runs in the background and closes the state. Requests must have ended. */
  close(): Promise<void>
}
