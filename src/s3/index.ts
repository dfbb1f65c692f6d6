import type { Plugin } from '../api/plugin.js'
import { getBucketAcl, getObjectAcl, putBucketAcl, putObjectAcl } from './access/acl-operations.js'
import { bucketPolicy, bucketPolicyStatus } from './access/bucket-policy-operations.js'
import { bucketOwnershipControls } from './access/ownership-controls.js'
import { publicAccessBlock } from './access/public-access-block.js'
import { createBucket, deleteBucket, getBucketLocation, headBucket } from './bucket/bucket.js'
import { bucketCors } from './bucket/cors.js'
import { deleteObjects } from './bucket/delete-objects.js'
import { configurationsById, fixedSettings } from './bucket/fixed-settings.js'
import { listBuckets } from './bucket/list-buckets.js'
import { listObjects, listObjectsV2 } from './bucket/list-objects.js'
import { postObject } from './bucket/post-object.js'
import { preflightBucket, preflightObject } from './bucket/preflight.js'
import { bucketWebsite } from './bucket/website.js'
import { live, ready } from './health.js'
import { bucketLifecycle } from './lifecycle/operations.js'
import { bucketLogging } from './logging/operations.js'
import { completeMultipartUpload } from './multipart/complete-multipart-upload.js'
import { createMultipartUpload } from './multipart/create-multipart-upload.js'
import { listMultipartUploads, listParts } from './multipart/lists.js'
import { abortMultipartUpload } from './multipart/upload.js'
import { uploadPart, uploadPartCopy } from './multipart/upload-part.js'
import { copyObject } from './object/copy-object.js'
import { deleteObject } from './object/delete-object.js'
import { bucketEncryption } from './object/encryption.js'
import { getObjectAttributes } from './object/get-object-attributes.js'
import { putObject } from './object/put-object.js'
import { getObject, headObject } from './object/read-object.js'
import { restoreObject } from './object/restore.js'
import { refusedOperations } from './refused.js'
import { shareObject } from './share.js'
import { bucketTagging, deleteObjectTagging, getObjectTagging, putObjectTagging } from './tagging.js'
import { listObjectVersions } from './versions/list-versions.js'
import { objectLockConfiguration } from './versions/lock-configuration.js'
import {
  getObjectLegalHold,
  getObjectRetention,
  putObjectLegalHold,
  putObjectRetention,
} from './versions/object-lock.js'
import { bucketVersioning } from './versions/versioning.js'

/** Core S3, as a plugin. */
export const s3Plugin: Plugin = {
  name: 's3',
  operations: [
    listBuckets,
    createBucket,
    deleteBucket,
    headBucket,
    getBucketLocation,
    listObjects,
    listObjectsV2,
    listObjectVersions,
    putObject,
    postObject,
    getObject,
    headObject,
    getObjectAttributes,
    deleteObject,
    deleteObjects,
    copyObject,
    restoreObject,
    createMultipartUpload,
    uploadPart,
    uploadPartCopy,
    completeMultipartUpload,
    abortMultipartUpload,
    listParts,
    listMultipartUploads,
    ...bucketTagging,
    putObjectTagging,
    getObjectTagging,
    deleteObjectTagging,
    ...bucketCors,
    ...bucketEncryption,
    preflightBucket,
    preflightObject,
    ...bucketPolicy,
    ...bucketPolicyStatus,
    getBucketAcl,
    putBucketAcl,
    getObjectAcl,
    putObjectAcl,
    ...bucketOwnershipControls,
    ...publicAccessBlock,
    ...configurationsById,
    ...bucketLogging,
    ...bucketWebsite,
    ...fixedSettings,
    ...bucketVersioning,
    ...objectLockConfiguration,
    getObjectRetention,
    putObjectRetention,
    getObjectLegalHold,
    putObjectLegalHold,
    ...bucketLifecycle,
    shareObject,
    live,
    ready,
    ...refusedOperations,
  ],
}
