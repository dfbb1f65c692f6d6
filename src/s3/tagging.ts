import { S3Error } from '../../common/errors/s3-error.js'
import { askedOf } from '../access/required-actions.js'
import type { Tag } from '../api/access.js'
import type { S3Request } from '../api/request.js'
import type { Precondition } from '../api/store.js'
import { requireDocument } from '../http/read-request.js'
import { empty, noContent, xml } from '../http/reply.js'
import { BUCKET_TAGS, OBJECT_TAGS, readTagging, taggingDocument } from '../http/tags.js'
import { defineOperation } from '../plugins/define-plugin.js'
import { bucketSetting } from './bucket/bucket-setting.js'
import { causeOf } from './object/attributes.js'
import { refOf, versionHeaders } from './versions/version.js'

/** An object without tags has an empty set; only buckets answer NoSuchTagSet. */
export const getObjectTagging = defineOperation({
  name: 'GetObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html',
  access: 'owner',
  action: 's3:GetObjectTagging',
  on: { method: 'GET', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const object = await context.store.head(request.bucket, request.key, ref)
    return xml(taggingDocument(object.tags ?? []), versionHeaders(object))
  },
})

export const putObjectTagging = defineOperation({
  name: 'PutObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html',
  access: 'owner',
  action: 's3:PutObjectTagging',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const bytes = await requireDocument(request.body, context.limits.maxDocumentBytes)
    const tags = await readTagging(bytes, OBJECT_TAGS)
    // The decision before the body was read could not know the tags.
    const { bucket, key } = request
    const versionId = request.query.get('versionId')
    await context.authorizer.decide(askedOf('s3:PutObjectTagging', { bucket, key, versionId }, { requested: tags }))
    const cause = causeOf('ObjectTagging:Put', request, context)
    return empty(versionHeaders(await context.store.setTags(bucket, key, tags, cause, ref, whileTagged(request))))
  },
})

export const deleteObjectTagging = defineOperation({
  name: 'DeleteObjectTagging',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjectTagging.html',
  access: 'owner',
  action: 's3:DeleteObjectTagging',
  on: { method: 'DELETE', resource: 'object', query: ['tagging'], params: ['versionId'] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const cause = causeOf('ObjectTagging:Delete', request, context)
    const { bucket, key } = request
    const object = await context.store.setTags(bucket, key, undefined, cause, ref, whileTagged(request))
    return noContent(versionHeaders(object))
  },
})

/** See OwnTerms.tags. */
function whileTagged({ own }: Pick<S3Request, 'own'>): Precondition | undefined {
  const before = own?.tags
  return (
    before &&
    ((object) => {
      const tags = new Map(object?.tags?.map(({ key, value }) => [key, value]))
      if (tags.size !== before.length || before.some(({ key, value }) => tags.get(key) !== value))
        throw new S3Error('PreconditionFailed', { message: 'The object has other tags by now.' })
    })
  )
}

export const bucketTagging = bucketSetting({
  name: 'BucketTagging',
  subresource: 'tagging',
  action: 'BucketTagging',
  get: {
    async run({ bucket }, { settings }) {
      const tags = await settings.confirmed(bucket, 'tagging')
      return tags ? xml(taggingDocument(tags)) : 'NoSuchTagSet'
    },
  },
  put: {
    async run(document, { bucket, headers }, { settings }) {
      const tags = await readTagging(document, BUCKET_TAGS)
      // In S3, a bucket with an empty set of tags has none.
      if (tags.length === 0) await settings.delete(bucket, 'tagging')
      else await settings.set(bucket, 'tagging', tags)
      // minio-js takes 204 for a failure: https://github.com/minio/minio-js/blob/8.0.7/src/internal/client.ts (setTagging).
      return /\bminio-js\//.test(headers['user-agent'] ?? '') ? empty() : noContent()
    },
  },
  remove: { run: (bucket, { settings }) => settings.delete(bucket, 'tagging') },
})

declare module '../api/settings.js' {
  interface SettingTypes {
    tagging: readonly Tag[]
  }
}
