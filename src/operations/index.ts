import type { Plugin } from '../registry/plugin.js'
import { configurationsById } from './bucket/configurations-by-id.js'
import { createBucket } from './bucket/create-bucket.js'
import { deleteBucket } from './bucket/delete-bucket.js'
import { deleteBucketCors } from './bucket/delete-bucket-cors.js'
import { deleteBucketEncryption } from './bucket/delete-bucket-encryption.js'
import { deleteBucketLifecycle } from './bucket/delete-bucket-lifecycle.js'
import { deleteBucketPolicy } from './bucket/delete-bucket-policy.js'
import { deleteBucketReplication } from './bucket/delete-bucket-replication.js'
import { deleteBucketTagging } from './bucket/delete-bucket-tagging.js'
import { deleteBucketWebsite } from './bucket/delete-bucket-website.js'
import { deleteObjects } from './bucket/delete-objects.js'
import { deletePublicAccessBlock } from './bucket/delete-public-access-block.js'
import { getBucketAbac } from './bucket/get-bucket-abac.js'
import { getBucketAccelerateConfiguration } from './bucket/get-bucket-accelerate-configuration.js'
import { getBucketAcl } from './bucket/get-bucket-acl.js'
import { getBucketCors } from './bucket/get-bucket-cors.js'
import { getBucketEncryption } from './bucket/get-bucket-encryption.js'
import { getBucketLifecycleConfiguration } from './bucket/get-bucket-lifecycle-configuration.js'
import { getBucketLocation } from './bucket/get-bucket-location.js'
import { getBucketLogging } from './bucket/get-bucket-logging.js'
import { getBucketOwnershipControls } from './bucket/get-bucket-ownership-controls.js'
import { getBucketPolicy } from './bucket/get-bucket-policy.js'
import { getBucketPolicyStatus } from './bucket/get-bucket-policy-status.js'
import { getBucketReplication } from './bucket/get-bucket-replication.js'
import { getBucketRequestPayment } from './bucket/get-bucket-request-payment.js'
import { getBucketTagging } from './bucket/get-bucket-tagging.js'
import { getBucketVersioning } from './bucket/get-bucket-versioning.js'
import { getBucketWebsite } from './bucket/get-bucket-website.js'
import { getObjectLockConfiguration } from './bucket/get-object-lock-configuration.js'
import { getPublicAccessBlock } from './bucket/get-public-access-block.js'
import { headBucket } from './bucket/head-bucket.js'
import { listObjectVersions } from './bucket/list-object-versions.js'
import { listObjects } from './bucket/list-objects.js'
import { listObjectsV2 } from './bucket/list-objects-v2.js'
import { postObject } from './bucket/post-object.js'
import { preflightBucket } from './bucket/preflight-bucket.js'
import { putBucketAcl } from './bucket/put-bucket-acl.js'
import { putBucketCors } from './bucket/put-bucket-cors.js'
import { putBucketLifecycleConfiguration } from './bucket/put-bucket-lifecycle-configuration.js'
import { putBucketLogging } from './bucket/put-bucket-logging.js'
import { putBucketOwnershipControls } from './bucket/put-bucket-ownership-controls.js'
import { putBucketPolicy } from './bucket/put-bucket-policy.js'
import { putBucketRequestPayment } from './bucket/put-bucket-request-payment.js'
import { putBucketTagging } from './bucket/put-bucket-tagging.js'
import { putPublicAccessBlock } from './bucket/put-public-access-block.js'
import { abortMultipartUpload } from './multipart/abort-multipart-upload.js'
import { completeMultipartUpload } from './multipart/complete-multipart-upload.js'
import { createMultipartUpload } from './multipart/create-multipart-upload.js'
import { listMultipartUploads } from './multipart/list-multipart-uploads.js'
import { listParts } from './multipart/list-parts.js'
import { uploadPart } from './multipart/upload-part.js'
import { uploadPartCopy } from './multipart/upload-part-copy.js'
import { copyObject } from './object/copy-object.js'
import { deleteObject } from './object/delete-object.js'
import { deleteObjectTagging } from './object/delete-object-tagging.js'
import { getObject } from './object/get-object.js'
import { getObjectAcl } from './object/get-object-acl.js'
import { getObjectAttributes } from './object/get-object-attributes.js'
import { getObjectLegalHold } from './object/get-object-legal-hold.js'
import { getObjectRetention } from './object/get-object-retention.js'
import { getObjectTagging } from './object/get-object-tagging.js'
import { headObject } from './object/head-object.js'
import { preflightObject } from './object/preflight-object.js'
import { putObject } from './object/put-object.js'
import { putObjectAcl } from './object/put-object-acl.js'
import { putObjectTagging } from './object/put-object-tagging.js'
import { restoreObject } from './object/restore-object.js'
import { shareObject } from './object/share-object.js'
import { refusedOperations } from './refused.js'
import { live, ready } from './service/health.js'
import { listBuckets } from './service/list-buckets.js'

/** Core S3, in the form that every plugin has. */
export const s3Plugin: Plugin = {
  name: 's3',
  operations: [
    listBuckets,
    createBucket,
    deleteBucket,
    headBucket,
    getBucketLocation,
    getBucketVersioning,
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
    deleteBucketEncryption,
    deleteBucketReplication,
    deleteBucketWebsite,
    getBucketAbac,
    getBucketAccelerateConfiguration,
    getBucketEncryption,
    getBucketLogging,
    getBucketReplication,
    getBucketRequestPayment,
    getBucketWebsite,
    getObjectLockConfiguration,
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
