import { deleteBucket, listBuckets, makeBucket } from './buckets.js'
import { fenceUpload } from './fence-upload.js'
import { listObjects } from './listing/list-objects.js'
import type { RpcMethod } from './method.js'
import { listAllBucketPolicies, setBucketPolicy } from './policies.js'
import { presignedGet } from './presigned-get.js'
import { removeObject } from './remove-object.js'
import { serverInfo, storageInfo } from './server.js'
import { createUrlToken, login, setAuth } from './session.js'
import { stateEpoch } from './state-epoch.js'
import { uploadQuota } from './upload-quota.js'

const all: readonly RpcMethod[] = [
  login,
  listBuckets,
  makeBucket,
  deleteBucket,
  listAllBucketPolicies,
  setBucketPolicy,
  listObjects,
  createUrlToken,
  removeObject,
  fenceUpload,
  presignedGet,
  setAuth,
  storageInfo,
  serverInfo,
  stateEpoch,
  uploadQuota,
]

/** Methods by full name, such as `web.Login`. */
export const methods: ReadonlyMap<string, RpcMethod> = new Map(all.map((method) => [method.name, method]))
