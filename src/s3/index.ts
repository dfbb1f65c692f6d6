import type { Plugin } from '../plugins/forms/plugin.js'
import { createBucket } from './bucket/create-bucket.js'
import { deleteBucket } from './bucket/delete-bucket.js'
import { deleteObjects } from './bucket/delete-objects.js'
import { getBucketLocation } from './bucket/get-bucket-location.js'
import { headBucket } from './bucket/head-bucket.js'
import { listObjectVersions } from './bucket/list-object-versions.js'
import { listObjects } from './bucket/list-objects.js'
import { listObjectsV2 } from './bucket/list-objects-v2.js'
import { postObject } from './bucket/post-object.js'
import { preflightBucket } from './bucket/preflight-bucket.js'
import { deleteBucketPolicy } from './configuration/access/delete-bucket-policy.js'
import { deletePublicAccessBlock } from './configuration/access/delete-public-access-block.js'
import { getBucketAcl } from './configuration/access/get-bucket-acl.js'
import { getBucketOwnershipControls } from './configuration/access/get-bucket-ownership-controls.js'
import { getBucketPolicy } from './configuration/access/get-bucket-policy.js'
import { getBucketPolicyStatus } from './configuration/access/get-bucket-policy-status.js'
import { getObjectAcl } from './configuration/access/get-object-acl.js'
import { getPublicAccessBlock } from './configuration/access/get-public-access-block.js'
import { putBucketAcl } from './configuration/access/put-bucket-acl.js'
import { putBucketOwnershipControls } from './configuration/access/put-bucket-ownership-controls.js'
import { putBucketPolicy } from './configuration/access/put-bucket-policy.js'
import { putObjectAcl } from './configuration/access/put-object-acl.js'
import { putPublicAccessBlock } from './configuration/access/put-public-access-block.js'
import { configurationsById } from './configuration/configurations-by-id.js'
import { deleteBucketCors } from './configuration/delete-bucket-cors.js'
import { deleteBucketLifecycle } from './configuration/delete-bucket-lifecycle.js'
import { deleteBucketTagging } from './configuration/delete-bucket-tagging.js'
import { getBucketCors } from './configuration/get-bucket-cors.js'
import { getBucketLifecycleConfiguration } from './configuration/get-bucket-lifecycle-configuration.js'
import { getBucketTagging } from './configuration/get-bucket-tagging.js'
import { putBucketCors } from './configuration/put-bucket-cors.js'
import { putBucketLifecycleConfiguration } from './configuration/put-bucket-lifecycle-configuration.js'
import { putBucketLogging } from './configuration/put-bucket-logging.js'
import { putBucketRequestPayment } from './configuration/put-bucket-request-payment.js'
import { putBucketTagging } from './configuration/put-bucket-tagging.js'
import { copyObject } from './copy/copy-object.js'
import { abortMultipartUpload } from './multipart/abort-multipart-upload.js'
import { completeMultipartUpload } from './multipart/complete-multipart-upload.js'
import { createMultipartUpload } from './multipart/create-multipart-upload.js'
import { listMultipartUploads } from './multipart/list-multipart-uploads.js'
import { listParts } from './multipart/list-parts.js'
import { uploadPart } from './multipart/upload-part.js'
import { uploadPartCopy } from './multipart/upload-part-copy.js'
import { deleteObject } from './object/delete-object.js'
import { getObject } from './object/get-object.js'
import { getObjectAttributes } from './object/get-object-attributes.js'
import { getObjectLegalHold } from './object/get-object-legal-hold.js'
import { getObjectRetention } from './object/get-object-retention.js'
import { headObject } from './object/head-object.js'
import { preflightObject } from './object/preflight-object.js'
import { putObject } from './object/put-object.js'
import { refusedOperations } from './refused.js'
import { live, ready } from './service/health.js'
import { listBuckets } from './service/list-buckets.js'
import { shareObject } from './share/share-object.js'
import { restoreObject } from './storage-class/restore-object.js'
import { deleteObjectTagging } from './tagging/delete-object-tagging.js'
import { getObjectTagging } from './tagging/get-object-tagging.js'
import { putObjectTagging } from './tagging/put-object-tagging.js'
import { unconfiguredOperations } from './unconfigured.js'

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
    putBucketTagging,
    getBucketTagging,
    deleteBucketTagging,
    putObjectTagging,
    getObjectTagging,
    deleteObjectTagging,
    putBucketCors,
    getBucketCors,
    deleteBucketCors,
    preflightBucket,
    preflightObject,
    getBucketPolicy,
    putBucketPolicy,
    deleteBucketPolicy,
    getBucketPolicyStatus,
    getBucketAcl,
    putBucketAcl,
    getObjectAcl,
    putObjectAcl,
    getBucketOwnershipControls,
    putBucketOwnershipControls,
    getPublicAccessBlock,
    putPublicAccessBlock,
    deletePublicAccessBlock,
    ...configurationsById,
    ...unconfiguredOperations,
    putBucketLogging,
    putBucketRequestPayment,
    getObjectLegalHold,
    getObjectRetention,
    putBucketLifecycleConfiguration,
    getBucketLifecycleConfiguration,
    deleteBucketLifecycle,
    shareObject,
    live,
    ready,
    ...refusedOperations,
  ],
}
