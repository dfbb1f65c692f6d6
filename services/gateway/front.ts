import { GatewayError } from './errors.js'
import { type GatewayExchange, isOwnPath, replyRestError, replyXmlError } from './exchange.js'
import type { Feature } from './features.js'
import { networkControl } from './rest/deal-envelope.js'
import {
  dealList,
  dealOfBucket,
  dealOfObject,
  dealProgress,
  dealStatus,
  evictObject,
  listProviders,
  verifyObject,
} from './rest/deals.js'
import { download, sharedObject } from './rest/download.js'
import { keyPair } from './rest/key-pair.js'
import { makeTask, showTask } from './rest/offline-deals.js'
import { retrieveBucket, retrieveObject, sendCar } from './rest/retrieve.js'
import { upload } from './rest/upload.js'
import { methods } from './rpc/methods.js'
import { readRequest } from './rpc/protocol.js'
import { webrpc } from './rpc/webrpc.js'

export interface Endpoint {
  readonly feature?: Feature
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** Behind the path of the gateway. */
  readonly path: string
  /**
   * Throws what `replyRestError` answers.
   * @param rest the path behind the name of the endpoint, percent-encoded
   */
  readonly handle: (exchange: GatewayExchange, rest: string) => Promise<void> | void
}

/** What answers requests, once the table of routes has their endpoint. */
export interface Front {
  readonly endpoints: readonly Endpoint[]
  /** Comes before all else, the check of the token included. True when it has answered. */
  admit(exchange: GatewayExchange): boolean
  /** Answers a request with a bearer token that is none. */
  refuseToken(exchange: GatewayExchange): void
  /** Answers a request for a path outside of the gateway's own: an object on its S3 side. */
  shared(exchange: GatewayExchange): Promise<void>
  /**
   * Answers a request that no endpoint takes.
   * @param allowed the methods that its path takes; none for an unknown path
   */
  unrouted(exchange: GatewayExchange, allowed: readonly string[]): void
}

export const plainFront: Front = {
  endpoints: [
    { method: 'GET', path: '/', handle: keyPair },
    { method: 'POST', path: '/webrpc/*', handle: webrpc(methods, readRequest) },
    { method: 'PUT', path: '/upload/*', handle: upload },
    { method: 'GET', path: '/download/*', handle: download },
    { method: 'HEAD', path: '/download/*', handle: download },
    { method: 'POST', path: '/deal/*', handle: dealOfObject },
    { method: 'POST', path: '/deals/*', handle: dealOfBucket },
    { method: 'POST', path: '/offlinedeals/*', handle: makeTask },
    { method: 'GET', path: '/offlinedeals/*', handle: showTask, feature: 'offline-deals' },
    { method: 'GET', path: '/car/*', handle: sendCar, feature: 'offline-deals' },
    { method: 'HEAD', path: '/car/*', handle: sendCar, feature: 'offline-deals' },
    { method: 'GET', path: '/retrieve/*', handle: retrieveObject },
    { method: 'GET', path: '/bucket/*', handle: retrieveBucket },
    { method: 'GET', path: '/dealprogress/*', handle: dealProgress, feature: 'deal-tokens' },
    { method: 'GET', path: '/dealstatus/*', handle: dealStatus, feature: 'deal-status' },
    { method: 'GET', path: '/deallist/*', handle: dealList, feature: 'deal-list' },
    { method: 'GET', path: '/providers/*', handle: listProviders, feature: 'deal-providers' },
    { method: 'POST', path: '/evict/*', handle: evictObject, feature: 'deal-eviction' },
    { method: 'POST', path: '/verify/*', handle: verifyObject, feature: 'deal-verification' },
    { method: 'POST', path: '/network/*', handle: networkControl, feature: 'network-control' },
  ],
  admit: () => false,
  refuseToken(exchange) {
    const error = new GatewayError('InvalidToken')
    if (isOwnPath(exchange.context, exchange.target.path)) replyRestError(exchange, error)
    else replyXmlError(exchange, error)
  },
  shared: sharedObject,
  unrouted(exchange, allowed) {
    if (allowed.length === 0) replyRestError(exchange, new GatewayError('NotFound'))
    else replyRestError(exchange, new GatewayError('MethodNotAllowed'), ['Allow', allowed.join(', ')])
  },
}
