import type { Plugin } from '../registry/plugin.js'
import { createBucket } from './bucket/create-bucket.js'
import { deleteBucket } from './bucket/delete-bucket.js'
import { deleteBucketCors } from './bucket/delete-bucket-cors.js'
import { deleteBucketOwnershipControls } from './bucket/delete-bucket-ownership-controls.js'
import { deleteBucketPolicy } from './bucket/delete-bucket-policy.js'
import { deleteBucketTagging } from './bucket/delete-bucket-tagging.js'
import { deleteObjects } from './bucket/delete-objects.js'
import { deletePublicAccessBlock } from './bucket/delete-public-access-block.js'
import { getBucketAcl } from './bucket/get-bucket-acl.js'
import { getBucketCors } from './bucket/get-bucket-cors.js'
import { getBucketLocation } from './bucket/get-bucket-location.js'
import { getBucketOwnershipControls } from './bucket/get-bucket-ownership-controls.js'
import { getBucketPolicy } from './bucket/get-bucket-policy.js'
import { getBucketPolicyStatus } from './bucket/get-bucket-policy-status.js'
import { getBucketTagging } from './bucket/get-bucket-tagging.js'
import { getBucketVersioning } from './bucket/get-bucket-versioning.js'
import { getPublicAccessBlock } from './bucket/get-public-access-block.js'
import { headBucket } from './bucket/head-bucket.js'
import { listObjectVersions } from './bucket/list-object-versions.js'
import { listObjects } from './bucket/list-objects.js'
import { listObjectsV2 } from './bucket/list-objects-v2.js'
import { preflightBucket } from './bucket/preflight-bucket.js'
import { putBucketAcl } from './bucket/put-bucket-acl.js'
import { putBucketCors } from './bucket/put-bucket-cors.js'
import { putBucketOwnershipControls } from './bucket/put-bucket-ownership-controls.js'
import { putBucketPolicy } from './bucket/put-bucket-policy.js'
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
import { getObjectTagging } from './object/get-object-tagging.js'
import { headObject } from './object/head-object.js'
import { preflightObject } from './object/preflight-object.js'
import { putObject } from './object/put-object.js'
import { putObjectAcl } from './object/put-object-acl.js'
import { putObjectTagging } from './object/put-object-tagging.js'
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
    getObject,
    headObject,
    getObjectAttributes,
    deleteObject,
    deleteObjects,
    copyObject,
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
    deleteBucketOwnershipControls,
    getPublicAccessBlock,
    putPublicAccessBlock,
    deletePublicAccessBlock,
    live,
    ready,
  ],
}
