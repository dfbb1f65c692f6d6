/**
 * A plugin with one call on the service and one on a bucket.
 *
 *   dealgate serve --plugin ./dist/examples/hello-plugin/index.js
 *   curl --aws-sigv4 aws:amz:us-east-1:s3 -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" http://127.0.0.1:9000/-/hello/v1/greeting
 */
import { defineCall, definePlugin, S3Error, z } from 'dealgate/plugin'

const source = 'docs/plugins.md#the-example'
const result = z.object({ Text: z.string() })

export default definePlugin({
  name: 'hello',
  summary: 'Greets callers and buckets.',
  options: z.object({ word: z.string().default('Hello').describe('The greeting.') }),
  create: ({ word }) => ({
    operations: [
      defineCall({
        name: 'GetGreeting',
        source,
        summary: 'Greets the caller by its access key.',
        access: 'signed',
        on: { method: 'GET', resource: 'service', path: '/-/hello/v1/greeting' },
        result,
        answer: async (_, { caller }) => ({ Text: `${word}, ${caller?.identity.accessKeyId}!` }),
      }),
      defineCall({
        name: 'GetBucketGreeting',
        source,
        summary: 'Greets an existing bucket.',
        access: 'owner',
        on: { method: 'GET', resource: 'bucket', subresource: 'x-hello' },
        result,
        async answer({ request }, { gateway }) {
          const { bucket } = request
          if (!(await gateway.bucketExists(bucket)))
            throw new S3Error('NoSuchBucket', { fields: { BucketName: bucket } })
          return { Text: `${word}, ${bucket}!` }
        },
      }),
    ],
  }),
})
