import { type Front, plainAnswers } from './handler.js'
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
  ...plainAnswers,
  shared: sharedObject,
}
