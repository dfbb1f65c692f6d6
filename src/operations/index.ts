import type { Plugin } from '../registry/plugin.js'
import { createBucket } from './bucket/create-bucket.js'
import { deleteBucket } from './bucket/delete-bucket.js'
import { deleteBucketCors } from './bucket/delete-bucket-cors.js'
import { deleteBucketTagging } from './bucket/delete-bucket-tagging.js'
import { deleteObjects } from './bucket/delete-objects.js'
import { getBucketCors } from './bucket/get-bucket-cors.js'
import { getBucketLocation } from './bucket/get-bucket-location.js'
import { getBucketTagging } from './bucket/get-bucket-tagging.js'
import { getBucketVersioning } from './bucket/get-bucket-versioning.js'
import { headBucket } from './bucket/head-bucket.js'
import { listObjectVersions } from './bucket/list-object-versions.js'
import { listObjects } from './bucket/list-objects.js'
import { listObjectsV2 } from './bucket/list-objects-v2.js'
import { preflightBucket } from './bucket/preflight-bucket.js'
import { putBucketCors } from './bucket/put-bucket-cors.js'
import { putBucketTagging } from './bucket/put-bucket-tagging.js'
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
import { getObjectAttributes } from './object/get-object-attributes.js'
import { getObjectTagging } from './object/get-object-tagging.js'
import { headObject } from './object/head-object.js'
import { preflightObject } from './object/preflight-object.js'
import { putObject } from './object/put-object.js'
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
    live,
    ready,
  ],
}
