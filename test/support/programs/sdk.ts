import { S3, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { Endpoint } from '../../suites/sign.js'

/** The AWS SDK for one server, until the test ends. It repeats nothing: what does not work at once is to be seen. */
export function sdkFor(t: { teardown(run: () => unknown): void }, server: Endpoint, more: S3ClientConfig = {}): S3 {
  const client = new S3({
    endpoint: server.endpoint,
    region: server.region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey },
    ...more,
  })
  t.teardown(() => client.destroy())
  return client
}

/** The bytes of an object, or of a part or range of it. */
export async function bodyOf(s3: S3, asked: Parameters<S3['getObject']>[0]): Promise<Buffer> {
  const { Body } = await s3.getObject(asked)
  return Buffer.from((await Body?.transformToByteArray()) ?? [])
}
